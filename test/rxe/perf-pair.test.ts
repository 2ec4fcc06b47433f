// Measurements that fail: they end, and say why.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WorkCompletionError, type Context } from '../../lib/index.js';
import { measureWriteBandwidth } from '../../lib/perf/pair/bandwidth.js';
import { EndpointPair } from '../../lib/perf/pair/endpoint-pair.js';
import { measureSendLatency } from '../../lib/perf/pair/latency.js';
import { device, deviceB } from '../support/device.js';

let contexts: [Context, Context];
let pair: EndpointPair;

beforeEach(async () => {
  contexts = [device(), device(deviceB)];
  pair = await EndpointPair.connect({ context: contexts[0], port: 1 }, { context: contexts[1], port: 1 });
});
afterEach(() => pair.close());

/** End a sends to a queue pair that does not exist. */
async function misdirect(timeout: number): Promise<void> {
  await pair.a.qp.modify({ qpState: 'reset' });
  await pair.a.qp.connect({ ...pair.b.told, qpNum: 0xabcdef }, { timeout });
}

const measurements = { measureWriteBandwidth, measureSendLatency };
const brief = { size: 100, duration: 20, warmUp: 0 };

describe.each(Object.entries(measurements))('%s', (_name, measure) => {
  it('leaves nothing outstanding, and can be repeated', async () => {
    const results = [await measure(pair, brief), await measure(pair, { ...brief, size: 70_000 })];
    expect(results.map(({ size }) => size)).toEqual([100, 70_000]);
    expect([pair.a, pair.b].map(({ qp }) => qp.sendQueue.outstanding + qp.receiveQueue.outstanding)).toEqual([
      0, 0,
    ]);
    for (const { pd } of [pair.a, pair.b]) {
      const named = (() => {
        try {
          pd.close();
        } catch (error) {
          return (error as Error).message;
        }
        return '';
      })();
      expect(named).toMatch(/queue pair/);
      expect(named).not.toMatch(/memory region/);
    }
  });

  it('fails when the peer does not answer', async () => {
    await misdirect(14);
    const failure = await measure(pair, brief).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(WorkCompletionError);
    expect((failure as WorkCompletionError).status).toBe('retryExcErr');
  });

  it('says what is outstanding when no completion comes', async () => {
    // The device tries again after 4.3 s, and is silent until then.
    await misdirect(20);
    await expect(measure(pair, { ...brief, stallTimeout: 50 })).rejects.toMatchObject({
      code: 'ERR_RDMA_TIMEOUT',
      message: expect.stringMatching(
        /^no completion for 50 ms, with \d+ (writes|sends and 1 receives) of 100 bytes.* outstanding/,
      ) as string,
    });
  });

  it.each([0, -1, 1.5, 2 ** 31 + 1])('refuses messages of %d bytes', async (size) => {
    await expect(measure(pair, { ...brief, size })).rejects.toThrow(RangeError);
  });
});
