import { describe, expect, it } from 'vitest';
import { Access, GRH_BYTES, type ExtendedSendRequest, type SendOp } from '../../lib/index.js';
import {
  ALL_REMOTE,
  completions,
  connect,
  connectedPair,
  device,
  deviceA,
  deviceB,
  end,
  pattern,
  succeeded,
} from '../support/device.js';

const ALL: readonly SendOp[] = [
  'send',
  'sendWithImm',
  'sendWithInv',
  'rdmaWrite',
  'rdmaWriteWithImm',
  'rdmaRead',
  'atomicCmpAndSwp',
  'atomicFetchAndAdd',
  'localInv',
  'bindMw',
];

/** Two connected ends, of which a posts in the extended way. */
async function pair(sendOps = ALL) {
  const a = end(deviceA, { qp: { sendOps, maxInlineData: 128, maxSendSge: 4 } });
  const b = end(deviceB, { access: ALL_REMOTE | Access.MW_BIND });
  await connect(a, b);
  return { a, b };
}

describe('extended posting', () => {
  it('sends, with and without immediate data', async () => {
    const { a, b } = await pair();
    for (const i of [0, 1]) b.qp.postRecv({ wrId: i, sge: { mr: b.mr, offset: 4096 * i, length: 4096 } });
    pattern(3000, 1).copy(a.mr.buffer);
    const sge = { mr: a.mr, length: 3000 };
    a.qp.postSendEx([
      { wrId: 10, opcode: 'send', sge, signaled: false },
      { wrId: 11, opcode: 'sendWithImm', immData: 0xcafe0001, sge },
    ]);
    expect(await succeeded(a.cq)).toMatchObject({ wrId: 11n, opcode: 'send' });
    const [first, second] = await completions(b.cq, 2);
    expect(first).toMatchObject({ wrId: 0n, byteLen: 3000 });
    expect(first!.immData).toBeUndefined();
    expect(second).toMatchObject({ wrId: 1n, byteLen: 3000, immData: 0xcafe0001 });
    for (const i of [0, 1]) expect(b.mr.buffer.subarray(4096 * i, 4096 * i + 3000)).toEqual(pattern(3000, 1));
    expect(a.cq.room).toBe(a.cq.cqe);
  });

  it('writes, reads and does atomics', async () => {
    const { a, b } = await pair();
    pattern(500, 2).copy(a.mr.buffer);
    a.qp.postSendEx({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 500 }, remote: b.mr.remote(64) });
    await succeeded(a.cq);
    expect(b.mr.buffer.subarray(64, 564)).toEqual(pattern(500, 2));
    a.qp.postSendEx({
      opcode: 'rdmaRead',
      sge: { mr: a.mr, offset: 1000, length: 500 },
      remote: b.mr.remote(64),
    });
    expect(await succeeded(a.cq)).toMatchObject({ opcode: 'rdmaRead' });
    expect(a.mr.buffer.subarray(1000, 1500)).toEqual(pattern(500, 2));
    b.mr.buffer.writeBigUInt64LE(41n, 0);
    a.qp.postSendEx([
      {
        opcode: 'atomicFetchAndAdd',
        compareAdd: 1,
        sge: { mr: a.mr, offset: 2000, length: 8 },
        remote: b.mr.remote(0),
      },
      {
        opcode: 'atomicCmpAndSwp',
        compareAdd: 42,
        swap: 7,
        sge: { mr: a.mr, offset: 2008, length: 8 },
        remote: b.mr.remote(0),
      },
    ]);
    for (const completion of await completions(a.cq, 2)) expect(completion.status).toBe('success');
    expect([2000, 2008].map((at) => a.mr.buffer.readBigUInt64LE(at))).toEqual([41n, 42n]);
    expect(b.mr.buffer.readBigUInt64LE(0)).toBe(7n);
  });

  it('writes with immediate data', async () => {
    const { a, b } = await pair();
    b.qp.postRecv({ wrId: 4 });
    pattern(100, 3).copy(a.mr.buffer);
    a.qp.postSendEx({
      opcode: 'rdmaWriteWithImm',
      immData: 9,
      sge: { mr: a.mr, length: 100 },
      remote: b.mr.remote(),
    });
    await succeeded(a.cq);
    expect(await succeeded(b.cq)).toMatchObject({ opcode: 'recvRdmaWithImm', immData: 9, byteLen: 100 });
    expect(b.mr.buffer.subarray(0, 100)).toEqual(pattern(100, 3));
  });

  it('sends bytes of its own, and elements of one length', async () => {
    const { a, b } = await pair();
    for (const i of [0, 1, 2]) b.qp.postRecv({ sge: { mr: b.mr, offset: 1000 * i, length: 1000 } });
    a.qp.postSendEx({ opcode: 'send', inline: pattern(100, 4) });
    await succeeded(a.cq);
    pattern(300, 5).copy(a.mr.buffer);
    a.qp.postSendEx({
      opcode: 'send',
      sge: [0, 100, 200].map((offset) => ({ mr: a.mr, offset, length: 100 })),
    });
    await succeeded(a.cq);
    a.qp.postSendEx({ opcode: 'send' });
    await succeeded(a.cq);
    const received = await completions(b.cq, 3);
    expect(received.map(({ byteLen }) => byteLen)).toEqual([100, 300, 0]);
    expect(b.mr.buffer.subarray(0, 100)).toEqual(pattern(100, 4));
    expect(b.mr.buffer.subarray(1000, 1300)).toEqual(pattern(300, 5));
  });

  it('refuses elements of several lengths, of which the provider of rxe sends wrong bytes', async () => {
    const { a } = await pair();
    const sge = [
      { mr: a.mr, length: 10 },
      { mr: a.mr, offset: 100, length: 20 },
    ];
    expect(() => a.qp.postSendEx({ opcode: 'send', sge })).toThrow(/use postSend\(\)/);
    expect(a.qp.sendQueue.outstanding).toBe(0);
  });

  it('sends datagrams', async () => {
    const a = end(deviceA, { qp: { type: 'ud', sendOps: ['send', 'sendWithImm'] } });
    const b = end(deviceB, { qp: { type: 'ud' } });
    await a.qp.start();
    await b.qp.start();
    const to = b.qp.endpoint();
    b.qp.postRecv({ sge: { mr: b.mr, length: 1024 } });
    const ah = await a.pd.createAh({ dgid: to.gid });
    pattern(64, 6).copy(a.mr.buffer);
    a.qp.postSendEx({
      opcode: 'sendWithImm',
      immData: 77,
      sge: { mr: a.mr, length: 64 },
      ud: { ah, remoteQpn: to.qpNum, remoteQkey: to.qkey! },
    });
    await succeeded(a.cq);
    expect(await succeeded(b.cq)).toMatchObject({ immData: 77, srcQp: a.qp.qpNum });
    expect(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 64)).toEqual(pattern(64, 6));
    expect(() => end(deviceA, { qp: { type: 'ud', sendOps: ['rdmaWrite'] } })).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_UNSUPPORTED', syscall: 'ibv_create_qp_ex' }) as Error,
    );
  });

  it('binds and invalidates windows, and lets a peer invalidate them', async () => {
    const { a: one, b: other } = await pair();
    // The end with the windows posts in the extended way here.
    const [a, b] = [other, one];
    const mr = b.pd.regMrSync(8192, { access: ALL_REMOTE | Access.MW_BIND });
    const mw = b.pd.allocMw(2);
    for (const way of ['owner', 'peer']) {
      b.qp.bindMw(mw, { mr });
      expect(await succeeded(b.cq)).toMatchObject({ opcode: 'bindMw' });
      pattern(100, 7).copy(a.mr.buffer);
      a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 100 }, remote: mw.remote() });
      await succeeded(a.cq);
      expect(mr.buffer.subarray(0, 100)).toEqual(pattern(100, 7));
      if (way === 'owner') {
        b.qp.invalidateMw(mw);
        expect(await succeeded(b.cq)).toMatchObject({ opcode: 'localInv' });
      }
    }
    b.qp.invalidateMw(mw);
    await succeeded(b.cq);
    const theirs = a.pd.allocMw(2);
    a.qp.bindMw(theirs, { mr: a.mr });
    await succeeded(a.cq);
    a.qp.postRecv({ sge: { mr: a.mr, length: 16 } });
    b.qp.postSendEx({ opcode: 'sendWithInv', inline: Buffer.from('gone'), invalidateRkey: theirs.rkey });
    await succeeded(b.cq);
    expect(await succeeded(a.cq)).toMatchObject({ invalidatedRkey: theirs.rkey });
    b.qp.postSendEx({
      opcode: 'rdmaWrite',
      inline: Buffer.from('no'),
      remote: { address: a.mr.address, rkey: theirs.rkey },
    });
    const [completion] = await completions(b.cq);
    expect(completion!.status).toBe('remAccessErr');
  });

  it('posts all or none, and only what the queue pair was made for', async () => {
    const { a, b } = await pair(['send']);
    const fails = (requests: unknown, expected: object) =>
      expect(() => a.qp.postSendEx(requests as ExtendedSendRequest)).toThrow(
        expect.objectContaining(expected) as Error,
      );
    const sge = { mr: a.mr, length: 8 };
    const good = { opcode: 'send', sge };
    const remote = b.mr.remote();
    fails([good, { opcode: 'rdmaWrite', sge, remote }], { code: 'ERR_RDMA_INVALID_DESCRIPTOR', posted: 0 });
    fails({ opcode: 'atomicWrite', remote, value: 1 }, { code: 'ERR_RDMA_INVALID_DESCRIPTOR' });
    fails({ opcode: 'nonsense' }, { code: 'ERR_OUT_OF_RANGE' });
    fails({ opcode: 'flush', remote, length: 8 }, { code: 'ERR_OUT_OF_RANGE' });
    fails({ opcode: 'atomicWrite', value: 1 }, { code: 'ERR_INVALID_ARG_TYPE' });
    fails(null, { code: 'ERR_INVALID_ARG_TYPE' });
    fails({ opcode: 'send', sge: { mr: {} } }, { code: 'ERR_INVALID_ARG_TYPE' });
    fails({ opcode: 'send', inline: Buffer.alloc(1000) }, { code: 'ERR_RDMA_LIMIT' });
    expect(a.qp.sendQueue.outstanding).toBe(0);
    fails(
      Array.from({ length: a.qp.sendQueue.capacity + 1 }, () => good),
      { code: 'ERR_RDMA_QUEUE_FULL' },
    );
    expect(() => b.qp.postSendEx({ opcode: 'send', sge: { mr: b.mr, length: 8 } })).toThrow(
      /was created without sendOps/,
    );
    const reset = a.pd.createQp({ type: 'rc', cq: a.cq, sendOps: ['send'] });
    expect(() => reset.postSendEx({ opcode: 'send', sge })).toThrow(/must be RTS/);
    expect(a.cq.poll()).toEqual([]);
    b.qp.postRecv({ sge: { mr: b.mr, length: 8 } });
    a.qp.postSend({ opcode: 'send', sge });
    await succeeded(a.cq);
    await succeeded(b.cq);
  });

  it('writes atomically where kernel and device do, and fails where they do not', async () => {
    const { a, b } = await pair(['send', 'atomicWrite']);
    a.qp.postSendEx({ opcode: 'atomicWrite', value: 0x0102030405060708n, remote: b.mr.remote(64) });
    const [completion] = await completions(a.cq);
    // IBV_DEVICE_ATOMIC_WRITE
    const has = (a.context.queryDevice().deviceCapFlagsEx & (1n << 40n)) !== 0n;
    if (has) {
      expect(completion).toMatchObject({ status: 'success', opcode: 'atomicWrite' });
      expect(b.mr.buffer.readBigUInt64LE(64)).toBe(0x0102030405060708n);
    } else {
      expect(completion!.status).toBe('locQpOpErr');
      expect(b.mr.buffer.readBigUInt64LE(64)).toBe(0n);
    }
  });

  it.each([
    [{ sendOps: ['tso'] }, 'ERR_RDMA_UNSUPPORTED'],
    [{ sendOps: ['flush'] }, 'ERR_RDMA_UNSUPPORTED'],
    [{ createFlags: 1 << 1 }, 'ERR_RDMA_UNSUPPORTED'],
    [{ sourceQpn: 5 }, 'ERR_RDMA_UNSUPPORTED'],
    [{ maxTsoHeader: 64 }, 'ERR_RDMA_UNSUPPORTED'],
    [{ sendOps: ['nonsense'] }, 'ERR_OUT_OF_RANGE'],
    [{ sendOps: 'send' }, 'ERR_INVALID_ARG_TYPE'],
    [{ createFlags: 1 << 20 }, 'ERR_OUT_OF_RANGE'],
    [{ createFlags: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ sourceQpn: 2 ** 24 }, 'ERR_OUT_OF_RANGE'],
    [{ maxTsoHeader: 2 ** 16 }, 'ERR_OUT_OF_RANGE'],
    [{ openQpNum: 5 }, 'ERR_OUT_OF_RANGE'],
    [{ xrcd: {} }, 'ERR_INVALID_ARG_TYPE'],
  ])('a queue pair with %j is refused', (options, code) => {
    const context = device();
    const request = { type: 'rc', cq: context.createCq(), ...options };
    expect(() => context.allocPd().createQp(request as never)).toThrow(
      expect.objectContaining({ code }) as Error,
    );
  });
});

it('connectedPair() posts in the plain way', async () => {
  const { a } = await connectedPair();
  expect(() => a.qp.sendTso({ header: Buffer.alloc(8), mss: 100, sge: { mr: a.mr } })).toThrow(
    /sendOp 'tso'/,
  );
});
