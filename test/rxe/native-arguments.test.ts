// The functions of the addon, called past TypeScript with whatever there is: always an error of JavaScript, never a crash, and
// nothing is left behind.
import { describe, expect, it } from 'vitest';
import { Access } from '../../lib/index.js';
import { native } from '../../lib/verbs/native.js';
import { ALL_REMOTE, connectedPair } from '../support/device.js';

const addon = native() as unknown as Record<string, (...args: unknown[]) => unknown>;

/** Those that take no native object do what they are asked for with any number. */
const WITHOUT_OBJECTS = new Set([
  ...['setCallbacks', 'deviceList', 'openDevice', 'createEventChannel', 'connectionManagerContexts'],
  ...['getAddressInfo', 'udpSourcePort', 'headerConstants', 'forkStatus', 'forkInit', 'importDevice'],
  ...['wcStatusString', 'nodeTypeString', 'portStateString', 'eventTypeString', 'cmEventString'],
  ...['wrOpcodeString', 'rateToMult', 'multToRate', 'rateToMbps', 'mbpsToRate'],
]);
const functions = Object.keys(addon).filter((name) => !WITHOUT_OBJECTS.has(name));

const nonsense: unknown[] = [
  undefined,
  null,
  true,
  'text',
  Symbol('symbol'),
  {},
  [],
  () => 1,
  -1,
  1.5,
  NaN,
  Infinity,
  2 ** 32,
  2 ** 53,
  -1n,
  2n ** 64n,
  new Uint8Array(0),
  new Uint32Array(1),
  new DataView(new ArrayBuffer(4)),
];

async function settled(work: () => unknown): Promise<unknown> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('functions of the addon', () => {
  it('refuse what is no native object', async () => {
    expect(functions.length).toBeGreaterThan(35);
    for (const name of functions) {
      for (const value of nonsense) {
        const error = await settled(() =>
          addon[name]!(value, value, value, value, value, value, value, value),
        );
        expect(error, `${name}(${typeof value})`).toBeInstanceOf(Error);
      }
      expect(await settled(() => addon[name]!()), name).toBeInstanceOf(Error);
    }
  });

  it('refuse native objects in the wrong places, and wrong values beside right objects', async () => {
    const { a } = await connectedPair({ access: ALL_REMOTE | Access.MW_BIND });
    const srq = a.pd.createSrq();
    const ah = await a.pd.createAh({ dgid: a.qp.endpoint().gid });
    const mw = a.pd.allocMw(2);
    const objects = [a.context, a.pd, a.cq, a.mr, a.qp, srq, ah, mw].map(
      (object) => (object as unknown as { native: unknown }).native,
    );
    // These take no more than an object, or do something at once with a right one and small numbers.
    const acts = /^(?:alloc|query|commandFd|srqNum|createCounters|openXrcd)/;
    for (const name of functions.filter((one) => !acts.test(one))) {
      for (const [i, first] of objects.entries()) {
        // Another part of the values for each object: an emulated machine needs a second for two thousand errors.
        for (const value of [...nonsense, ...objects].filter((_value, k) => k % objects.length === i)) {
          const error = await settled(() =>
            addon[name]!(first, value, value, value, value, value, value, value),
          );
          expect(error, name).toBeInstanceOf(Error);
        }
      }
    }
    expect(a.qp.sendQueue.outstanding).toBe(0);
    expect(a.qp.state).toBe('rts');
  });

  it('refuse what is closed', async () => {
    const { a } = await connectedPair({ access: ALL_REMOTE | Access.MW_BIND });
    const mw = a.pd.allocMw(2);
    const closed = [mw, a.qp, a.mr, a.cq, a.pd, a.context];
    const natives = closed.map((object) => (object as unknown as { native: unknown }).native);
    for (const object of closed) object.close({ cascade: true });
    for (const name of functions) {
      for (const object of natives) {
        const error = await settled(() => addon[name]!(object, object, 1, 1, 1, 1, 1, 1));
        expect(error, name).toBeInstanceOf(Error);
      }
    }
  });
});
