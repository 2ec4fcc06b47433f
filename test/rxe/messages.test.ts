import { describe, expect, it } from 'vitest';
import { CompletionFlags, type SendRequest } from '../../lib/index.js';
import { completions, connectedPair, pattern, succeeded, type End } from '../support/device.js';

const MIB = 1 << 20;
const GUARD = 64;

/** Sizes round about nothing, the path MTU and large messages. */
const sizes = (mtu: number) => [0, 1, 7, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5, 65536, MIB];

/** The bytes of a region from `offset` on, with a guard before and behind that nobody may have touched. */
function expectExactly(mr: End['mr'], offset: number, expected: Buffer): void {
  const got = mr.buffer.subarray(offset - GUARD, offset + expected.length + GUARD);
  const guard = Buffer.alloc(GUARD, 0xee);
  expect(Buffer.compare(got, Buffer.concat([guard, expected, guard])), 'bytes that arrived').toBe(0);
}

async function bigPair(type: 'rc' | 'uc' = 'rc') {
  const pair = await connectedPair({ bytes: 2 * MIB, qp: { type } });
  pair.b.mr.buffer.fill(0xee);
  return pair;
}

describe.each(['rc', 'uc'] as const)('on %s', (type) => {
  it('SEND brings exactly what was sent, of every size', async () => {
    const { a, b } = await bigPair(type);
    for (const size of sizes(a.context.queryPort().activeMtu)) {
      const bytes = pattern(size, size);
      bytes.copy(a.mr.buffer, 128);
      b.mr.buffer.fill(0xee);
      b.qp.postRecv({ wrId: 1000 + size, sge: { mr: b.mr, offset: GUARD, length: MIB } });
      a.qp.postSend({ wrId: size, opcode: 'send', sge: { mr: a.mr, offset: 128, length: size } });
      expect(await succeeded(a.cq)).toMatchObject({ wrId: BigInt(size), opcode: 'send', qpNum: a.qp.qpNum });
      expect(await succeeded(b.cq)).toMatchObject({
        wrId: BigInt(1000 + size),
        opcode: 'recv',
        byteLen: size,
        qpNum: b.qp.qpNum,
      });
      expectExactly(b.mr, GUARD, bytes);
    }
  });

  it('RDMA WRITE puts exactly what was written, of every size', async () => {
    const { a, b } = await bigPair(type);
    for (const size of sizes(a.context.queryPort().activeMtu)) {
      const bytes = pattern(size, size + 1);
      bytes.copy(a.mr.buffer, 0);
      b.mr.buffer.fill(0xee);
      // UC tells the sender nothing of the arrival; the message with immediate data behind it does.
      b.qp.postRecv({});
      a.qp.postSend([
        { wrId: 1, opcode: 'rdmaWrite', sge: { mr: a.mr, length: size }, remote: b.mr.remote(4096) },
        { wrId: 2, opcode: 'rdmaWriteWithImm', remote: b.mr.remote(0, 0), immData: size },
      ]);
      const sent = await completions(a.cq, 2);
      expect(sent.map((one) => [one.wrId, one.status, one.opcode])).toEqual([
        [1n, 'success', 'rdmaWrite'],
        [2n, 'success', 'rdmaWrite'],
      ]);
      expect(await succeeded(b.cq)).toMatchObject({ opcode: 'recvRdmaWithImm', immData: size });
      expectExactly(b.mr, 4096, bytes);
    }
  });

  it.each([0, 1, 0x12345678, 0x80000000, 0xffffffff])(
    'immediate data %i arrives in host order',
    async (immData) => {
      const { a, b } = await bigPair(type);
      b.qp.postRecv([{ wrId: 1, sge: { mr: b.mr, offset: GUARD, length: 100 } }, { wrId: 2 }]);
      a.mr.buffer.write('imm');
      a.qp.postSend([
        { opcode: 'sendWithImm', sge: { mr: a.mr, length: 3 }, immData },
        { opcode: 'rdmaWriteWithImm', sge: { mr: a.mr, length: 3 }, remote: b.mr.remote(1000), immData },
      ]);
      const [send, write] = await completions(b.cq, 2);
      expect(send).toMatchObject({ wrId: 1n, opcode: 'recv', immData, byteLen: 3 });
      expect(write).toMatchObject({ wrId: 2n, opcode: 'recvRdmaWithImm', immData, byteLen: 3 });
      expect(send!.wcFlags! & CompletionFlags.WITH_IMM).not.toBe(0);
      expectExactly(b.mr, GUARD, Buffer.from('imm'));
      expectExactly(b.mr, 1000, Buffer.from('imm'));
    },
  );
});

describe('RDMA READ', () => {
  it('fetches exactly what is there, of every size', async () => {
    const { a, b } = await bigPair();
    for (const size of sizes(a.context.queryPort().activeMtu)) {
      const bytes = pattern(size, size + 2);
      bytes.copy(b.mr.buffer, 512);
      a.mr.buffer.fill(0xee);
      a.qp.postSend({
        wrId: 9,
        opcode: 'rdmaRead',
        sge: { mr: a.mr, offset: GUARD, length: size },
        remote: b.mr.remote(512, size),
      });
      expect(await succeeded(a.cq)).toMatchObject({ wrId: 9n, opcode: 'rdmaRead' });
      expectExactly(a.mr, GUARD, bytes);
    }
  });

  it('has more outstanding than the peer serves at a time', async () => {
    const { a, b } = await connectedPair({ connect: { maxRdAtomic: 2, maxDestRdAtomic: 2 } });
    pattern(40 * 100, 3).copy(b.mr.buffer);
    a.qp.postSend(
      Array.from({ length: 40 }, (_, i) => ({
        wrId: i,
        opcode: 'rdmaRead' as const,
        sge: { mr: a.mr, offset: i * 100, length: 100 },
        remote: b.mr.remote(i * 100, 100),
      })),
    );
    const all = await completions(a.cq, 40);
    expect(all.map((one) => one.wrId)).toEqual(Array.from({ length: 40 }, (_, i) => BigInt(i)));
    expect(a.mr.buffer.subarray(0, 4000)).toEqual(pattern(4000, 3));
  });
});

describe('atomics', () => {
  const MAX = (1n << 64n) - 1n;

  it.each([
    ['adds', 5n, 37n, 42n],
    ['adds nothing', 7n, 0n, 7n],
    ['carries into the upper half', 0xffffffffn, 1n, 0x100000000n],
    ['wraps round', MAX, 2n, 1n],
    ['adds a negative number by wrapping', 10n, MAX, 9n],
  ])('fetch-and-add %s', async (_name, before, add, after) => {
    const { a, b } = await connectedPair();
    b.mr.buffer.fill(0xee);
    b.mr.buffer.writeBigUInt64LE(before, 64);
    a.qp.postSend({
      opcode: 'atomicFetchAndAdd',
      sge: { mr: a.mr, offset: 16, length: 8 },
      remote: b.mr.remote(64, 8),
      compareAdd: add,
    });
    expect(await succeeded(a.cq)).toMatchObject({ opcode: 'fetchAdd' });
    expect(a.mr.buffer.readBigUInt64LE(16)).toBe(before);
    const value = Buffer.alloc(8);
    value.writeBigUInt64LE(after);
    expectExactly(b.mr, 64, value);
  });

  it.each([
    ['swaps what equals', 0x1122334455667788n, 0x1122334455667788n, MAX],
    ['leaves what differs in the lower half', 0x1122334455667788n, 0x1122334455667789n, 0x1122334455667788n],
    ['leaves what differs in the upper half', 0x1122334455667788n, 0x9122334455667788n, 0x1122334455667788n],
  ])('compare-and-swap %s', async (_name, before, compareAdd, after) => {
    const { a, b } = await connectedPair();
    b.mr.buffer.fill(0xee);
    b.mr.buffer.writeBigUInt64LE(before, 128);
    a.qp.postSend({
      opcode: 'atomicCmpAndSwp',
      sge: { mr: a.mr, offset: 8, length: 8 },
      remote: b.mr.remote(128),
      compareAdd,
      swap: MAX,
    });
    expect(await succeeded(a.cq)).toMatchObject({ opcode: 'compSwap' });
    expect(a.mr.buffer.readBigUInt64LE(8)).toBe(before);
    const value = Buffer.alloc(8);
    value.writeBigUInt64LE(after);
    expectExactly(b.mr, 128, value);
  });

  it('of both ends on one place count every addition', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendWr: 64 } });
    const adds = (from: End): SendRequest[] =>
      Array.from({ length: 50 }, () => ({
        opcode: 'atomicFetchAndAdd',
        sge: { mr: from.mr, offset: 8, length: 8 },
        remote: b.mr.remote(4096, 8),
        compareAdd: 3n,
      }));
    const self = b.pd.createQp({ type: 'rc', cq: b.cq });
    await self.connect(self.endpoint());
    a.qp.postSend(adds(a));
    self.postSend(adds(b));
    await Promise.all([completions(a.cq, 50), completions(b.cq, 50)]);
    expect(b.mr.buffer.readBigUInt64LE(4096)).toBe(300n);
  });
});

describe('requests', () => {
  it('carry 64 bits of identity', async () => {
    const { a, b } = await connectedPair();
    const ids = [0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 64n - 1n];
    b.qp.postRecv(ids.map((wrId) => ({ wrId, sge: { mr: b.mr, length: 10 } })));
    a.qp.postSend(ids.map((wrId) => ({ wrId, opcode: 'send', sge: { mr: a.mr, length: 1 } })));
    expect((await completions(a.cq, ids.length)).map((one) => one.wrId)).toEqual(ids);
    expect((await completions(b.cq, ids.length)).map((one) => one.wrId)).toEqual(ids);
  });

  it('gather from and scatter into many regions', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendSge: 4, maxRecvSge: 3 } });
    const second = a.pd.regMrSync(4096);
    const third = b.pd.regMrSync(4096);
    pattern(3000, 1).copy(a.mr.buffer);
    pattern(3000, 2).copy(second.buffer);
    b.qp.postRecv({
      sge: [
        { mr: b.mr, offset: 10, length: 700 },
        { mr: third, length: 1 },
        { mr: b.mr, offset: 2000, length: 5000 },
      ],
    });
    a.qp.postSend({
      opcode: 'send',
      sge: [
        { mr: second, offset: 5, length: 1500 },
        { mr: a.mr, offset: 100, length: 0 },
        { mr: a.mr, offset: 7, length: 600 },
        { mr: second, offset: 2999, length: 1 },
      ],
    });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(2101);
    const sent = Buffer.concat([
      pattern(3000, 2).subarray(5, 1505),
      pattern(3000, 1).subarray(7, 607),
      pattern(3000, 2).subarray(2999),
    ]);
    const got = Buffer.concat([
      b.mr.buffer.subarray(10, 710),
      third.buffer.subarray(0, 1),
      b.mr.buffer.subarray(2000, 3400),
    ]);
    expect(Buffer.compare(sent, got)).toBe(0);
  });

  it('carry bytes inline, which may change at once', async () => {
    const { a, b } = await connectedPair({ qp: { maxInlineData: 128 } });
    b.mr.buffer.fill(0xee);
    const data = pattern(128, 5);
    b.qp.postRecv([
      { sge: { mr: b.mr, offset: 2000, length: 500 } },
      { sge: { mr: b.mr, offset: 4000, length: 500 } },
    ]);
    a.qp.postSend([
      { opcode: 'rdmaWrite', inline: data, remote: b.mr.remote(1000) },
      { opcode: 'send', inline: data.subarray(0, 3) },
      { opcode: 'send', inline: new Uint8Array(0) },
    ]);
    data.fill(0);
    await completions(a.cq, 3);
    const [first, empty] = await completions(b.cq, 2);
    expect([first!.byteLen, empty!.byteLen]).toEqual([3, 0]);
    expectExactly(b.mr, 1000, pattern(128, 5));
    expectExactly(b.mr, 2000, pattern(128, 5).subarray(0, 3));
  });

  it('wait for the READs before them where they are fenced', async () => {
    const { a, b } = await connectedPair({ bytes: 2 * MIB });
    const size = MIB / 4;
    const bytes = pattern(size, 8);
    bytes.copy(b.mr.buffer);
    const sge = { mr: a.mr, length: size };
    a.qp.postSend([
      { wrId: 1, opcode: 'rdmaRead', sge, remote: b.mr.remote(0, size) },
      { wrId: 2, opcode: 'rdmaWrite', sge, remote: b.mr.remote(MIB, size), fence: true },
    ]);
    expect((await completions(a.cq, 2)).map((one) => [one.wrId, one.status])).toEqual([
      [1n, 'success'],
      [2n, 'success'],
    ]);
    expect(Buffer.compare(b.mr.buffer.subarray(MIB, MIB + size), bytes), 'what was read').toBe(0);
  });

  it('make a completion only where asked, unless all do', async () => {
    for (const sqSigAll of [false, true]) {
      const { a, b } = await connectedPair({ qp: { sqSigAll } });
      a.qp.postSend(
        Array.from({ length: 10 }, (_, i) => ({
          wrId: i,
          opcode: 'rdmaWrite' as const,
          sge: { mr: a.mr, length: 8 },
          remote: b.mr.remote(),
          signaled: i % 5 === 4,
        })),
      );
      const expected = sqSigAll ? [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : [4, 9];
      const got = await completions(a.cq, expected.length);
      expect(got.map((one) => Number(one.wrId))).toEqual(expected);
      expect(a.cq.poll()).toEqual([]);
      expect(a.qp.sendQueue.outstanding).toBe(0);
    }
  });

  it('fill the queue exactly, and go on when there is room again', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendWr: 8 } });
    const write = (wrId: number): SendRequest => ({
      wrId,
      opcode: 'rdmaWrite',
      sge: { mr: a.mr, length: 8 },
      remote: b.mr.remote(),
    });
    const room = a.qp.sendQueue.free;
    expect(room).toBeGreaterThanOrEqual(8);
    a.qp.postSend(Array.from({ length: room }, (_, i) => write(i)));
    expect(() => a.qp.postSend(write(99))).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_QUEUE_FULL', qpn: a.qp.qpNum }) as Error,
    );
    await completions(a.cq, room);
    expect(() => a.qp.postSend(Array.from({ length: room + 1 }, (_, i) => write(i)))).toThrow(/do not fit/);
    expect(a.qp.sendQueue.outstanding).toBe(0);
    a.qp.postSend(Array.from({ length: room }, (_, i) => write(100 + i)));
    expect((await completions(a.cq, room)).map((one) => Number(one.wrId))).toEqual(
      Array.from({ length: room }, (_, i) => 100 + i),
    );
  });

  it('go out in one call although there are more than descriptors', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendWr: 100, descriptors: 8 } });
    a.qp.postSend(
      Array.from({ length: 50 }, (_, i) => ({
        wrId: i,
        opcode: 'rdmaWrite' as const,
        inline: undefined,
        sge: { mr: a.mr, offset: i, length: 1 },
        remote: b.mr.remote(i, 1),
      })),
    );
    expect((await completions(a.cq, 50)).map((one) => Number(one.wrId))).toEqual(
      Array.from({ length: 50 }, (_, i) => i),
    );
  });
});
