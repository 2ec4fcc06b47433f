import { describe, expect, it } from 'vitest';
import {
  CompletionRing,
  ReceiveRing,
  RemoteRegion,
  SendFlags,
  SendRing,
  type RdmaError,
} from '../../lib/index.js';
import { connect, connectedPair, pattern, succeeded, type End } from '../support/device.js';

async function ringPair(options: Parameters<typeof connectedPair>[0] = {}) {
  const { a, b } = await connectedPair(options);
  return {
    a: {
      ...a,
      send: new SendRing(a.qp),
      receive: new ReceiveRing(a.qp),
      completions: new CompletionRing(a.cq),
    },
    b: {
      ...b,
      send: new SendRing(b.qp),
      receive: new ReceiveRing(b.qp),
      completions: new CompletionRing(b.cq),
    },
  };
}

/** Polls until a batch has come. */
async function batch(ring: CompletionRing): Promise<number> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const count = ring.poll();
    if (count > 0) return count;
    if (Date.now() > deadline) throw new Error('no completion came in 20 s');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('rings', () => {
  it('carry a stream of messages round their ends many times, in order and whole', async () => {
    const messages = 100_000;
    const slots = 64;
    const size = 32;
    const { a, b } = await ringPair({
      qp: { maxSendWr: slots, maxRecvWr: slots, descriptors: 16 },
      bytes: slots * size,
    });
    let sent = 0;
    let ended = 0;
    let received = 0;
    let posted = 0;
    const deadline = Date.now() + 150_000;
    while (received < messages || ended < messages) {
      while (
        posted - received < slots &&
        posted < messages &&
        b.receive.written < b.receive.capacity &&
        b.receive.free > 0
      ) {
        b.receive.receive(posted, b.mr, (posted % slots) * size, size);
        ++posted;
      }
      b.receive.post();
      while (sent < posted && sent - ended < slots && a.send.written < a.send.capacity && a.send.free > 0) {
        a.mr.buffer.writeUInt32LE(sent, (sent % slots) * size);
        a.mr.buffer.writeUInt32LE(~sent >>> 0, (sent % slots) * size + size - 4);
        a.send.send(sent, a.mr, (sent % slots) * size, size);
        ++sent;
      }
      a.send.post();
      const ends = a.completions.poll();
      for (let i = 0; i < ends; ++i) {
        if (a.completions.status(i) !== 0) throw a.completions.completion(i).error!;
        if (a.completions.id(i) !== ended)
          throw new Error(`request ${a.completions.id(i)} ended in place of ${ended}`);
        ++ended;
      }
      const receives = b.completions.poll();
      for (let i = 0; i < receives; ++i) {
        const id = b.completions.id(i);
        const at = (id % slots) * size;
        if (id !== received || b.completions.byteLength(i) !== size)
          throw new Error(`message ${received} came as ${id}`);
        if (b.mr.buffer.readUInt32LE(at) !== id || b.mr.buffer.readUInt32LE(at + size - 4) !== ~id >>> 0) {
          throw new Error(`message ${id} has other bytes`);
        }
        ++received;
      }
      if (ends === 0 && receives === 0) {
        if (Date.now() > deadline) throw new Error(`${received} of ${messages} messages came`);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    expect([sent, ended, received]).toEqual([messages, messages, messages]);
    expect(a.qp.sendQueue.outstanding).toBe(0);
    expect(b.qp.receiveQueue.outstanding).toBe(0);
  });

  it('carry every operation', async () => {
    const { a, b } = await ringPair({ qp: { maxInlineData: 64 } });
    const remote = b.mr.remote();
    pattern(4096, 9).copy(a.mr.buffer);
    b.mr.buffer.writeBigUInt64LE(0xffff_ffffn, 8192);
    b.mr.buffer.writeBigUInt64LE(5n, 8200);
    for (const id of [1, 2, 3, 4]) b.receive.receive(id, b.mr, 16384 + id * 256, 256);
    expect(b.receive.post()).toBe(4);
    a.send.send(10, a.mr, 0, 100);
    a.send.sendWithImm(11, a.mr, 100, 50, 0xfeedbeef);
    a.send.sendInline(12, pattern(64, 4));
    a.send.rdmaWrite(13, a.mr, 7, 1000, remote, 33);
    a.send.rdmaWriteWithImm(14, a.mr, 0, 10, remote, 4000, 0xffffffff);
    a.send.rdmaRead(15, a.mr, 40_000, 3000, remote, 16);
    a.send.fetchAdd(16, a.mr, 50_000, remote, 8192, 1);
    a.send.compareSwap(17, a.mr, 50_008, remote, 8200, 5n, 0xffff_ffff_ffff_fffen);
    a.send.rdmaWriteInline(18, pattern(60, 5), remote, 12_000);
    expect(a.send.post()).toBe(9);
    const ids: number[] = [];
    while (ids.length < 9) {
      const count = await batch(a.completions);
      for (let i = 0; i < count; ++i) {
        expect(a.completions.status(i)).toBe(0);
        expect(a.completions.qpNum(i)).toBe(a.qp.qpNum);
        ids.push(a.completions.id(i));
      }
    }
    expect(ids).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18]);
    const received: [number, number, number][] = [];
    while (received.length < 4) {
      const count = await batch(b.completions);
      for (let i = 0; i < count; ++i) {
        received.push([
          b.completions.id(i),
          b.completions.byteLength(i),
          b.completions.flags(i) & 2 ? b.completions.immData(i) : 0,
        ]);
      }
    }
    expect(received).toEqual([
      [1, 100, 0],
      [2, 50, 0xfeedbeef],
      [3, 64, 0],
      [4, 10, 0xffffffff],
    ]);
    const source = pattern(4096, 9);
    expect(b.mr.buffer.subarray(33, 1033)).toEqual(source.subarray(7, 1007));
    expect(b.mr.buffer.subarray(16384 + 256, 16384 + 356)).toEqual(source.subarray(0, 100));
    expect(b.mr.buffer.subarray(16384 + 768, 16384 + 832)).toEqual(pattern(64, 4));
    expect(b.mr.buffer.subarray(12_000, 12_061)).toEqual(Buffer.concat([pattern(60, 5), Buffer.alloc(1)]));
    expect(a.mr.buffer.subarray(40_017, 41_017)).toEqual(source.subarray(7, 1007));
    expect(b.mr.buffer.readBigUInt64LE(8192)).toBe(0x1_0000_0000n);
    expect(a.mr.buffer.readBigUInt64LE(50_000)).toBe(0xffff_ffffn);
    expect(b.mr.buffer.readBigUInt64LE(8200)).toBe(0xffff_ffff_ffff_fffen);
    expect(a.mr.buffer.readBigUInt64LE(50_008)).toBe(5n);
  });

  it('carry bytes of a region inline, which may change at once, and be of any region', async () => {
    const { a, b } = await ringPair({ qp: { maxInlineData: 64 } });
    const local = a.pd.regMrSync(4096);
    pattern(64, 1).copy(local.buffer, 100);
    b.receive.receive(1, b.mr, 0, 256);
    b.receive.post();
    a.send.send(1, local, 100, 64, SendFlags.INLINE | SendFlags.SIGNALED);
    expect(a.send.post()).toBe(1);
    local.buffer.fill(0);
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(64);
    expect(b.mr.buffer.subarray(0, 65)).toEqual(Buffer.concat([pattern(64, 1), Buffer.alloc(1)]));
    a.send.send(2, local, 0, a.qp.maxInlineData + 1, SendFlags.INLINE | SendFlags.SIGNALED);
    expect(() => a.send.post()).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_INVALID_DESCRIPTOR',
        message: expect.stringContaining(`maxInlineData is ${a.qp.maxInlineData}`) as string,
      }) as Error,
    );
    expect(a.qp.sendQueue.outstanding).toBe(0);
  });

  it('post to a shared receive queue', async () => {
    const { a, b } = await ringPair();
    const srq = b.pd.createSrq({ maxWr: 8 });
    const qp = b.pd.createQp({ type: 'rc', cq: b.cq, srq });
    expect(() => new ReceiveRing(qp)).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_INVALID_STATE',
        message: expect.stringMatching(/make the ring for that/) as string,
      }) as Error,
    );
    const from = { ...a, qp: a.pd.createQp({ type: 'rc', cq: a.cq }) };
    await connect(from, { ...b, qp });
    const receive = new ReceiveRing(srq);
    const room = receive.free;
    for (let id = 0; id < room; ++id) receive.receive(id, b.mr, id * 64, 64);
    expect(receive.post()).toBe(room);
    receive.receive(room, b.mr, room * 64, 64);
    expect(receive.post()).toBe(0);
    expect(receive.written).toBe(1);
    pattern(64, 2).copy(a.mr.buffer);
    from.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 64 } });
    await succeeded(a.cq);
    expect(await succeeded(b.cq)).toMatchObject({ wrId: 0n, qpNum: qp.qpNum });
    expect(b.mr.buffer.subarray(0, 65)).toEqual(Buffer.concat([pattern(64, 2), Buffer.alloc(1)]));
    expect(receive.post()).toBe(1);
    expect(srq.free).toBe(0);
  });

  it('refuse more bytes inline than there is room for, and invalidation where there is nothing to invalidate', async () => {
    const { a, b } = await ringPair({ qp: { type: 'uc', maxInlineData: 32 } });
    const data = new Uint8Array(a.qp.maxInlineData + 1);
    const tooMuch = expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error;
    expect(() => a.send.sendInline(1, data)).toThrow(tooMuch);
    expect(() => a.send.rdmaWriteInline(1, data, b.mr.remote(), 0)).toThrow(tooMuch);
    expect(() => a.send.rdmaWriteInline(1, data.subarray(1), b.mr.remote(), b.mr.length)).toThrow(tooMuch);
    expect(a.send.written).toBe(0);
    a.send.sendWithInv(1, a.mr, 0, 8, b.mr.rkey);
    expect(() => a.send.post()).toThrow(/opcode 9 cannot be sent on a queue pair of this type/);
  });

  it('carry on what did not fit when there is room', async () => {
    const { a, b } = await ringPair({ qp: { maxSendWr: 4, descriptors: 64 } });
    const room = a.send.free;
    const count = Math.min(a.send.capacity, room + 3);
    for (let id = 0; id < count; ++id) a.send.rdmaWrite(id, a.mr, 0, 8, b.mr.remote(), 0);
    let posted = a.send.post();
    expect(posted).toBe(Math.min(room, count));
    const ids: number[] = [];
    while (ids.length < count) {
      const ended = await batch(a.completions);
      for (let i = 0; i < ended; ++i) ids.push(a.completions.id(i));
      posted += a.send.post();
    }
    expect(posted).toBe(count);
    expect(ids).toEqual(Array.from({ length: count }, (_, i) => i));
  });
});

// Whatever a program writes into the shared memory, the device touches nothing outside a region of the queue pair's own.
describe('descriptors that ask for too much', () => {
  const wrong: [string, (ring: SendRing, end: End, remote: RemoteRegion) => void][] = [
    ['an offset behind the region', (ring, { mr }) => ring.send(1, mr, mr.length + 1, 0)],
    ['a length over the end of the region', (ring, { mr }) => ring.send(1, mr, mr.length - 4, 5)],
    ['a negative offset', (ring, { mr }) => ring.send(1, mr, -8, 8)],
    ['a negative length', (ring, { mr }) => ring.send(1, mr, 8, -1)],
    ['a fractional offset', (ring, { mr }) => ring.send(1, mr, 0.5, 8)],
    ['a fractional length', (ring, { mr }) => ring.send(1, mr, 8, 8.5)],
    ['NaN', (ring, { mr }) => ring.send(1, mr, NaN, 8)],
    ['a length of NaN', (ring, { mr }) => ring.send(1, mr, 0, NaN)],
    ['2^53', (ring, { mr }) => ring.send(1, mr, 2 ** 53, 8)],
    ['2^64', (ring, { mr }) => ring.send(1, mr, 2 ** 64, 8)],
    ['a length of 2^32', (ring, { mr }) => ring.send(1, mr, 0, 2 ** 32)],
    ['a string', (ring, { mr }) => ring.send(1, mr, 'x' as never, 8)],
    ['a region that is none', (ring) => ring.send(1, { slot: 12345 } as never, 0, 8)],
    ['no region', (ring) => ring.send(1, { slot: 0 } as never, 0, 8)],
    [
      'more of the inline area than there is',
      (ring, { qp }) =>
        ring.send(1, { slot: 0xffffffff } as never, 0, qp.maxInlineData + 1, SendFlags.INLINE),
    ],
    [
      'the inline area of a request that is not inline',
      (ring) => ring.send(1, { slot: 0xffffffff } as never, 0, 8),
    ],
    ['flags that do not exist', (ring, { mr }) => ring.send(1, mr, 0, 8, 0x80)],
    [
      'an atomic at an odd address',
      (ring, { mr }, remote) =>
        ring.fetchAdd(1, mr, 0, new RemoteRegion(remote.address + 1n, remote.rkey, 64), 0, 1),
    ],
  ];

  it.each(wrong)('%s', async (_name, write) => {
    const { a, b } = await ringPair();
    write(a.send, a, b.mr.remote());
    let error: RdmaError | undefined;
    try {
      a.send.post();
    } catch (thrown) {
      error = thrown as RdmaError;
    }
    expect(error).toMatchObject({
      code: 'ERR_RDMA_INVALID_DESCRIPTOR',
      message: expect.stringMatching(/^descriptor 0: /) as string,
    });
    expect(a.send.written).toBe(0);
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    await succeeded(a.cq);
  });

  it.each([
    ['behind the remote region', 65_536, 1],
    ['over its end', 65_530, 7],
    ['before it', -1, 1],
    ['at a fraction', 0.5, 1],
    ['at NaN', NaN, 1],
  ])('a remote range %s', async (_name, offset, length) => {
    const { a, b } = await ringPair();
    expect(() => a.send.rdmaWrite(1, a.mr, 0, length, b.mr.remote(), offset)).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
    expect(a.send.written).toBe(0);
  });

  it('of a region that was closed, also when its place in the table serves another', async () => {
    const { a } = await ringPair();
    const old = a.pd.regMrSync(64);
    old.close();
    const others = Array.from({ length: 200 }, () => a.pd.regMrSync(64));
    expect(others.some((region) => region.slot === old.slot)).toBe(false);
    a.send.send(1, old, 0, 8);
    expect(() => a.send.post()).toThrow(/does not exist or is closed/);
  });

  it('with more elements than there are, written by hand', async () => {
    const { a } = await ringPair();
    a.qp.sendQueue.memory.bytes.fill(0xff, a.qp.sendQueue.layout.descriptors);
    for (const count of [1, 3, a.qp.sendQueue.layout.descriptorCount]) {
      expect(() => a.qp.sendQueue.post(count)).toThrow(
        expect.objectContaining({ code: 'ERR_RDMA_INVALID_DESCRIPTOR' }) as Error,
      );
    }
  });

  it('of random bytes: each call posts, or throws, and memory outside stays as it was', async () => {
    const { a, b } = await ringPair({ connect: { retryCnt: 0, timeout: 8 } });
    const canary = a.pd.regMrSync(65_536);
    canary.buffer.fill(0x5a);
    const { layout } = a.qp.sendQueue;
    const memory = a.qp.sendQueue.memory.bytes.buffer;
    const bytes = new Uint8Array(memory, layout.descriptors, 64 * 4);
    let state = 1;
    const random = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 16;
    let refused = 0;
    for (let round = 0; round < 2000; ++round) {
      for (let i = 0; i < bytes.length; ++i) bytes[i] = random() & 0xff;
      // Half of them nearly right: a true region with whatever else.
      if (round % 2 === 0) {
        const words = new Uint32Array(memory, layout.descriptors, 16);
        words[0] = (words[0]! & 0x7ff) | (1 << 16);
        words[2] = a.mr.slot;
        words[4] = 0;
        words[5] = random() & 1;
      }
      try {
        a.qp.sendQueue.post(1 + (random() & 3));
      } catch (error) {
        expect((error as RdmaError).code).toMatch(/^ERR_RDMA_INVALID_/);
        ++refused;
      }
      a.completions.poll();
    }
    expect(refused).toBeGreaterThan(1000);
    expect(canary.buffer.every((byte) => byte === 0x5a)).toBe(true);
    expect(b.context.closed).toBe(false);
  });
});
