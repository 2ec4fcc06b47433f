// What verbs would take, and then crash on, corrupt memory by, or wait for ever: refused before the call, with nothing lost.
import { describe, expect, it } from 'vitest';
import { Access, type RdmaError, type SendRequest } from '../../lib/index.js';
import {
  completions,
  connectedPair,
  device,
  deviceB,
  end,
  deviceA,
  succeeded,
  type End,
} from '../support/device.js';

function refusal(action: () => unknown): RdmaError {
  try {
    action();
  } catch (error) {
    return error as RdmaError;
  }
  throw new Error('it was accepted');
}

/** The connection works after a refusal as if nothing had been. */
async function stillWorks({ a, b }: { a: End; b: End }): Promise<void> {
  expect(a.qp.sendQueue.outstanding).toBe(0);
  a.mr.buffer.write('fine', 0);
  a.qp.postSend({ wrId: 77, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: b.mr.remote(0, 4) });
  expect((await succeeded(a.cq)).wrId).toBe(77n);
  expect(b.mr.buffer.toString('latin1', 0, 4)).toBe('fine');
}

describe('a send request', () => {
  const requests: [string, (pair: { a: End; b: End }) => unknown, string | RegExp][] = [
    ['that is none', () => undefined, 'ERR_INVALID_ARG_TYPE'],
    ['that is a number', () => 5, 'ERR_INVALID_ARG_TYPE'],
    ['without an opcode', () => ({}), 'ERR_OUT_OF_RANGE'],
    ['with an opcode that does not exist', () => ({ opcode: 'teleport' }), 'ERR_OUT_OF_RANGE'],
    ['with an opcode of Object’s', () => ({ opcode: 'constructor' }), 'ERR_OUT_OF_RANGE'],
    [
      'with an offset outside its region',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, offset: a.mr.length + 1 } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with a length outside its region',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, offset: 1, length: a.mr.length } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with a negative offset',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, offset: -1, length: 1 } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with a fractional length',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, length: 0.5 } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with NaN as its length',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, length: NaN } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with a length of 2^32',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, length: 2 ** 32 } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with memory that is no region',
      () => ({ opcode: 'send', sge: { mr: Buffer.alloc(8) } }),
      'ERR_INVALID_ARG_TYPE',
    ],
    [
      'with the region of another protection domain',
      ({ b }) => ({ opcode: 'send', sge: { mr: b.mr, length: 1 } }),
      'ERR_RDMA_INVALID_DESCRIPTOR',
    ],
    [
      'with more elements than the queue has',
      ({ a }) => ({
        opcode: 'send',
        sge: Array.from({ length: a.qp.sendQueue.layout.maxSge + 1 }, () => ({ mr: a.mr, length: 1 })),
      }),
      'ERR_RDMA_LIMIT',
    ],
    [
      'with more bytes inline than the queue takes',
      () => ({ opcode: 'send', inline: new Uint8Array(2000) }),
      'ERR_RDMA_LIMIT',
    ],
    ['with inline data that is none', () => ({ opcode: 'send', inline: 'text' }), 'ERR_INVALID_ARG_TYPE'],
    [
      'with both inline data and a region',
      ({ a }) => ({ opcode: 'send', inline: new Uint8Array(1), sge: { mr: a.mr } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with a remote address where there is none',
      ({ a, b }) => ({ opcode: 'send', sge: { mr: a.mr }, remote: b.mr.remote() }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'without a remote address',
      ({ a }) => ({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 1 } }),
      'ERR_INVALID_ARG_TYPE',
    ],
    [
      'with a remote address of 65 bits',
      ({ a }) => ({
        opcode: 'rdmaWrite',
        sge: { mr: a.mr, length: 1 },
        remote: { address: 1n << 64n, rkey: 1 },
      }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with immediate data of 33 bits',
      ({ a }) => ({ opcode: 'sendWithImm', sge: { mr: a.mr, length: 1 }, immData: 2 ** 32 }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'without its immediate data',
      ({ a }) => ({ opcode: 'sendWithImm', sge: { mr: a.mr, length: 1 } }),
      'ERR_INVALID_ARG_TYPE',
    ],
    [
      'with immediate data that would not be sent',
      ({ a }) => ({ opcode: 'send', sge: { mr: a.mr, length: 1 }, immData: 5 }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'READ inline',
      ({ b }) => ({ opcode: 'rdmaRead', inline: new Uint8Array(8), remote: b.mr.remote() }),
      'ERR_RDMA_INVALID_DESCRIPTOR',
    ],
    [
      'atomic of 4 bytes',
      ({ a, b }) => ({
        opcode: 'atomicFetchAndAdd',
        sge: { mr: a.mr, length: 4 },
        remote: b.mr.remote(),
        compareAdd: 1,
      }),
      'ERR_RDMA_INVALID_DESCRIPTOR',
    ],
    [
      'atomic of 16 bytes',
      ({ a, b }) => ({
        opcode: 'atomicFetchAndAdd',
        sge: { mr: a.mr, length: 16 },
        remote: b.mr.remote(),
        compareAdd: 1,
      }),
      'ERR_RDMA_INVALID_DESCRIPTOR',
    ],
    [
      'atomic at an odd address',
      ({ a, b }) => ({
        opcode: 'atomicFetchAndAdd',
        sge: { mr: a.mr, length: 8 },
        remote: b.mr.remote(4),
        compareAdd: 1,
      }),
      'ERR_RDMA_INVALID_DESCRIPTOR',
    ],
    [
      'atomic without its operand',
      ({ a, b }) => ({ opcode: 'atomicFetchAndAdd', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() }),
      'ERR_INVALID_ARG_TYPE',
    ],
    [
      'that invalidates without an rkey',
      ({ a }) => ({ opcode: 'sendWithInv', sge: { mr: a.mr, length: 1 } }),
      'ERR_INVALID_ARG_TYPE',
    ],
    [
      'that invalidates an rkey of 33 bits',
      ({ a }) => ({ opcode: 'sendWithInv', sge: { mr: a.mr, length: 1 }, invalidateRkey: 2 ** 32 }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with an identifier of 65 bits',
      ({ a }) => ({ wrId: 1n << 64n, opcode: 'send', sge: { mr: a.mr, length: 1 } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with an unsafe number as its identifier',
      ({ a }) => ({ wrId: 2 ** 53, opcode: 'send', sge: { mr: a.mr, length: 1 } }),
      'ERR_OUT_OF_RANGE',
    ],
  ];

  it.each(requests)('%s', async (_name, make, code) => {
    const pair = await connectedPair({ qp: { maxInlineData: 64 } });
    const bad = make(pair) as SendRequest;
    expect(refusal(() => pair.a.qp.postSend(bad))).toMatchObject({ code });
    // In a list, the good ones before it are not posted either.
    const good: SendRequest = {
      opcode: 'rdmaWrite',
      sge: { mr: pair.a.mr, length: 1 },
      remote: pair.b.mr.remote(),
    };
    expect(refusal(() => pair.a.qp.postSend([good, good, bad]))).toMatchObject({ code, posted: 0 });
    await stillWorks(pair);
    expect(pair.a.cq.poll()).toEqual([]);
  });

  it('whose result would go where the device may not write', async () => {
    const pair = await connectedPair();
    const readOnly = pair.a.pd.regMrSync(64, { access: 0 });
    for (const request of [
      { opcode: 'rdmaRead', sge: { mr: readOnly, length: 8 }, remote: pair.b.mr.remote() },
      {
        opcode: 'atomicFetchAndAdd',
        sge: { mr: readOnly, length: 8 },
        remote: pair.b.mr.remote(),
        compareAdd: 1,
      },
    ] as const) {
      expect(refusal(() => pair.a.qp.postSend(request)).message).toMatch(/registered without localWrite/);
    }
    pair.a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: readOnly, length: 8 }, remote: pair.b.mr.remote() });
    await succeeded(pair.a.cq);
    await stillWorks(pair);
  });

  it('that reads on a queue pair without depth for it', async () => {
    const pair = await connectedPair({ connect: { maxRdAtomic: 0 } });
    expect(
      refusal(() =>
        pair.a.qp.postSend({
          opcode: 'rdmaRead',
          sge: { mr: pair.a.mr, length: 8 },
          remote: pair.b.mr.remote(),
        }),
      ).message,
    ).toMatch(/maxRdAtomic/);
    await stillWorks(pair);
  });

  it('longer than the port takes, also when it is READ', async () => {
    const pair = await connectedPair({ qp: { maxSendSge: 16 }, bytes: 1 << 20 });
    const { maxMsgSz } = pair.a.context.queryPort();
    const elements = Math.floor(maxMsgSz / pair.a.mr.length) + 1;
    if (elements > 16) return;
    for (const opcode of ['rdmaRead', 'rdmaWrite', 'send'] as const) {
      const request = {
        opcode,
        sge: Array.from({ length: elements }, () => ({ mr: pair.a.mr })),
        ...(opcode !== 'send' && { remote: pair.b.mr.remote() }),
      };
      expect(refusal(() => pair.a.qp.postSend(request))).toMatchObject({
        code: 'ERR_RDMA_INVALID_DESCRIPTOR',
        message: expect.stringMatching(new RegExp(`more than the ${maxMsgSz} .*maxMsgSz`)) as string,
      });
    }
    await stillWorks(pair);
  });

  it('that a UC queue pair cannot send', async () => {
    const { a, b } = await connectedPair({ qp: { type: 'uc' } });
    for (const opcode of ['rdmaRead', 'atomicFetchAndAdd', 'atomicCmpAndSwp', 'sendWithInv'] as const) {
      const request = {
        opcode,
        sge: { mr: a.mr, length: 8 },
        compareAdd: 1,
        swap: 1,
        invalidateRkey: b.mr.rkey,
        ...(opcode !== 'sendWithInv' && { remote: b.mr.remote() }),
      };
      expect(refusal(() => a.qp.postSend(request))).toMatchObject({ code: 'ERR_RDMA_INVALID_DESCRIPTOR' });
    }
    expect(a.qp.query().qpState).toBe('rts');
  });

  it('with a region that was closed', async () => {
    const pair = await connectedPair();
    const mr = pair.a.pd.regMrSync(64);
    mr.close();
    expect(refusal(() => pair.a.qp.postSend({ opcode: 'send', sge: { mr, length: 1 } }))).toMatchObject({
      code: 'ERR_RDMA_CLOSED',
    });
    await stillWorks(pair);
  });
});

describe('a queue pair in the wrong state', () => {
  it('takes no sends before RTS: verbs would keep them and execute them later', async () => {
    const { a, b } = { a: end(deviceA), b: end(deviceB) };
    const write = () =>
      a.qp.postSend({
        opcode: 'rdmaWrite',
        inline: undefined,
        sge: { mr: a.mr, length: 4 },
        remote: b.mr.remote(),
      });
    expect(refusal(write)).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    await a.qp.init();
    expect(refusal(write).message).toMatch(/state INIT cannot send/);
    const endpoint = b.qp.endpoint();
    await b.qp.connect(a.qp.endpoint());
    await a.qp.connect(endpoint);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(b.mr.buffer.readUInt32LE()).toBe(0);
    await stillWorks({ a, b });
  });

  it('takes no sends in RTR', async () => {
    const { pd, cq, mr, context } = end(deviceA);
    const qp = pd.createQp({ type: 'ud', cq });
    const ah = await pd.createAh({ dgid: context.chooseGid().gid });
    const ud = { ah, remoteQpn: qp.qpNum, remoteQkey: 5 };
    await qp.init({ qkey: 5 });
    await qp.modify({ qpState: 'rtr' });
    qp.postRecv({ sge: { mr, offset: 4096, length: 4096 } });
    const send = () => qp.postSend({ wrId: 2, opcode: 'send', sge: { mr, length: 1 }, ud });
    expect(refusal(send).message).toMatch(/state RTR cannot send/);
    expect(qp.sendQueue.outstanding).toBe(0);
    await qp.modify({ qpState: 'rts', sqPsn: 1 });
    send();
    const both = await completions(cq, 2);
    expect(both.map((one) => [one.opcode, one.status]).sort()).toEqual([
      ['recv', 'success'],
      ['send', 'success'],
    ]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(cq.poll()).toEqual([]);
  });

  it('takes no receives in RESET and in ERR, where they would never end', async () => {
    const { qp, mr } = end(deviceA);
    const receive = () => qp.postRecv({ sge: { mr, length: 1 } });
    expect(refusal(receive)).toMatchObject({
      code: 'ERR_RDMA_INVALID_STATE',
      message: expect.stringMatching(/RESET/) as string,
    });
    await qp.init();
    receive();
    await qp.modify({ qpState: 'err' });
    expect(refusal(receive)).toMatchObject({
      code: 'ERR_RDMA_INVALID_STATE',
      message: expect.stringMatching(/ERR/) as string,
    });
  });

  it.each(['err', 'reset'] as const)('takes no receives while it is on its way to %s', async (qpState) => {
    const { a } = await connectedPair();
    const going = a.qp.modify({ qpState });
    expect(refusal(() => a.qp.postRecv({ sge: { mr: a.mr, length: 1 } }))).toMatchObject({
      code: 'ERR_RDMA_INVALID_STATE',
    });
    await going;
    expect(a.qp.receiveQueue.outstanding).toBe(0);
  });

  it('takes receives again after a modification to ERR that failed', async () => {
    const { a, b } = await connectedPair();
    await expect(a.qp.modify({ qpState: 'err', sqPsn: 1 })).rejects.toThrow();
    expect(a.qp.state).toBe('rts');
    a.qp.postRecv({ sge: { mr: a.mr, length: 8 } });
    b.qp.postSend({ opcode: 'send', sge: { mr: b.mr, length: 8 } });
    await succeeded(a.cq);
  });

  it('is known by query() where its peer alone has brought it there', async () => {
    const { a, b } = await connectedPair();
    const remote = { address: b.mr.address, rkey: b.mr.rkey ^ 0x5500 };
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote });
    await completions(a.cq);
    expect(b.qp.query().qpState).toBe('err');
    expect(b.qp.state).toBe('err');
    expect(refusal(() => b.qp.postRecv({}))).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  });

  it('flushes sends in ERR', async () => {
    const { a } = await connectedPair();
    await a.qp.modify({ qpState: 'err' });
    a.qp.postSend({ wrId: 5, opcode: 'send', sge: { mr: a.mr, length: 1 } });
    const [completion] = await completions(a.cq);
    expect(completion).toMatchObject({ wrId: 5n, status: 'wrFlushErr' });
  });
});

describe('a receive request', () => {
  it.each([
    ['that is none', () => null, 'ERR_INVALID_ARG_TYPE'],
    [
      'outside its region',
      ({ mr }: End) => ({ sge: { mr, offset: 10, length: mr.length } }),
      'ERR_OUT_OF_RANGE',
    ],
    [
      'with too many elements',
      ({ mr, qp }: End) => ({
        sge: Array.from({ length: qp.receiveQueue.layout.maxSge + 1 }, () => ({ mr, length: 1 })),
      }),
      'ERR_RDMA_LIMIT',
    ],
  ])('%s', async (_name, make, code) => {
    const one = end(deviceA);
    await one.qp.init();
    expect(refusal(() => one.qp.postRecv(make(one) as never))).toMatchObject({ code });
    expect(one.qp.receiveQueue.outstanding).toBe(0);
  });

  it('into a region that was closed, or is of another protection domain', async () => {
    const one = end(deviceA);
    await one.qp.init();
    const closed = one.pd.regMrSync(64);
    closed.close();
    expect(refusal(() => one.qp.postRecv({ sge: { mr: closed, length: 1 } }))).toMatchObject({
      code: 'ERR_RDMA_CLOSED',
    });
    const foreign = one.context.allocPd().regMrSync(64);
    expect(refusal(() => one.qp.postRecv({ sge: { mr: foreign } }))).toMatchObject({
      code: 'ERR_RDMA_INVALID_DESCRIPTOR',
      message: expect.stringMatching(/protection domain/) as string,
    });
    expect(one.qp.receiveQueue.outstanding).toBe(0);
    foreign.close();
  });

  it('into memory that the device may not write', async () => {
    const one = end(deviceA);
    await one.qp.init();
    const readOnly = one.pd.regMrSync(64, { access: Access.REMOTE_READ });
    expect(refusal(() => one.qp.postRecv({ sge: { mr: readOnly } }))).toMatchObject({
      code: 'ERR_RDMA_INVALID_DESCRIPTOR',
    });
  });

  it('more than the queue has room for', async () => {
    const one = end(deviceA, { qp: { maxRecvWr: 4 } });
    await one.qp.init();
    const room = one.qp.receiveQueue.free;
    one.qp.postRecv(Array.from({ length: room }, () => ({})));
    expect(refusal(() => one.qp.postRecv({}))).toMatchObject({ code: 'ERR_RDMA_QUEUE_FULL' });
  });
});

it('of a list longer than the descriptors, the parts before the refused one go out, and their number is told', async () => {
  const pair = await connectedPair({ qp: { maxSendWr: 100, descriptors: 8 } });
  const { a, b } = pair;
  const good = { opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote(0, 8) } as const;
  const bad = { ...good, opcode: 'atomicFetchAndAdd', compareAdd: 1, sge: { mr: a.mr, length: 4 } } as const;
  const list: SendRequest[] = [...Array.from({ length: 20 }, () => good), bad];
  expect(refusal(() => a.qp.postSend(list))).toMatchObject({
    code: 'ERR_RDMA_INVALID_DESCRIPTOR',
    posted: 16,
  });
  const ended = await completions(a.cq, 16);
  expect(ended.every(({ status }) => status === 'success')).toBe(true);
  await stillWorks(pair);
});

describe('completion queues', () => {
  it.each([0, -1, 1.5, NaN])('of %s entries', (cqe) => {
    expect(refusal(() => device().createCq({ cqe }))).toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
  });

  it('of more entries than the device has, and on vectors that it does not have', () => {
    const context = device();
    const { maxCqe, numCompVectors } = context.queryDevice();
    expect(refusal(() => context.createCq({ cqe: maxCqe + 5 }))).toMatchObject({
      code: 'ERR_RDMA_LIMIT',
      message: expect.stringContaining('5 above') as string,
    });
    expect(refusal(() => context.createCq({ compVector: numCompVectors }))).toMatchObject({
      code: 'ERR_OUT_OF_RANGE',
    });
  });

  it('polled with a limit that is none', () => {
    const cq = device().createCq();
    for (const limit of [0, -1, 1.5, NaN])
      expect(refusal(() => cq.poll(limit))).toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    expect(cq.poll()).toEqual([]);
  });
});
