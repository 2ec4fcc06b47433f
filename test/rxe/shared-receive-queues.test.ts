import { describe, expect, it } from 'vitest';
import { GRH_BYTES, type QueuePair, type SharedReceiveQueue } from '../../lib/index.js';
import {
  completions,
  connect,
  device,
  deviceA,
  deviceB,
  end,
  pattern,
  succeeded,
  type End,
} from '../support/device.js';

/** A receiver with one shared queue for `count` queue pairs, each connected to one of the sender's. */
async function fanIn(count: number, maxWr = 64) {
  const a = end(deviceA, { cqe: 2048 });
  const b = end(deviceB, { cqe: 2048, bytes: 1 << 18 });
  const srq = b.pd.createSrq({ maxWr });
  const links: { from: QueuePair; at: QueuePair }[] = [];
  for (let i = 0; i < count; ++i) {
    const from = a.pd.createQp({ type: 'rc', cq: a.cq, maxSendWr: 32, maxRecvWr: 1 });
    const at = b.pd.createQp({ type: 'rc', cq: b.cq, srq, maxSendWr: 1 });
    const [endpointFrom, endpointAt] = [from.endpoint(), at.endpoint()];
    await from.connect(endpointAt);
    await at.connect(endpointFrom);
    links.push({ from, at });
  }
  return { a, b, srq, links };
}

const send = (a: End, from: QueuePair, offset: number, length: number) =>
  from.postSend({ opcode: 'send', sge: { mr: a.mr, offset, length } });

describe('a shared receive queue', () => {
  it('serves many queue pairs, and tells which one received', async () => {
    const { a, b, srq, links } = await fanIn(4);
    srq.postRecv(
      Array.from({ length: 8 }, (_, i) => ({
        wrId: 100 + i,
        sge: { mr: b.mr, offset: i * 1024, length: 1024 },
      })),
    );
    pattern(4096, 1).copy(a.mr.buffer);
    for (const [i, { from }] of links.entries()) {
      send(a, from, i * 10, 500);
      send(a, from, i * 10 + 5, 400);
    }
    await completions(a.cq, 8);
    const received = await completions(b.cq, 8);
    expect(received.every((one) => one.status === 'success')).toBe(true);
    expect(received.map((one) => one.wrId).sort()).toEqual(
      Array.from({ length: 8 }, (_, i) => BigInt(100 + i)),
    );
    for (const [i, { at }] of links.entries()) {
      const mine = received.filter((one) => one.qpNum === at.qpNum);
      expect(mine.map((one) => one.byteLen)).toEqual([500, 400]);
      const at0 = (Number(mine[0]!.wrId) - 100) * 1024;
      expect(b.mr.buffer.subarray(at0, at0 + 500)).toEqual(pattern(4096, 1).subarray(i * 10, i * 10 + 500));
    }
    expect(srq.receiveQueue.outstanding).toBe(0);
  });

  it('goes on for many rounds, in whatever order its receives end', async () => {
    const { a, b, srq, links } = await fanIn(3, 8);
    const room = srq.free;
    let next = 0;
    const post = (count: number) =>
      srq.postRecv(Array.from({ length: count }, () => ({ wrId: next++, sge: { mr: b.mr, length: 64 } })));
    post(room);
    expect(() => srq.postRecv({})).toThrow(expect.objectContaining({ code: 'ERR_RDMA_QUEUE_FULL' }) as Error);
    const seen = new Set<bigint>();
    for (let round = 0; round < 60; ++round) {
      const link = links[round % 3]!;
      send(a, link.from, 0, 8);
      const received = await succeeded(b.cq);
      expect(received.qpNum).toBe(link.at.qpNum);
      expect(seen.has(received.wrId)).toBe(false);
      seen.add(received.wrId);
      await succeeded(a.cq);
      post(1);
    }
    expect(srq.receiveQueue.outstanding).toBe(room);
  });

  it('serves queue pairs for datagrams, whose receives begin with a header', async () => {
    const a = end(deviceA, { qp: { type: 'ud' } });
    const b = end(deviceB);
    const srq = b.pd.createSrq();
    const receivers = [0, 1].map(() => b.pd.createQp({ type: 'ud', cq: b.cq, srq }));
    await Promise.all([a.qp, ...receivers].map((qp) => qp.start()));
    srq.postRecv([0, 1].map((i) => ({ wrId: i, sge: { mr: b.mr, offset: i * 1024, length: 1024 } })));
    const ah = await a.pd.createAh({ dgid: receivers[0]!.endpoint().gid });
    pattern(200, 3).copy(a.mr.buffer);
    for (const [i, qp] of receivers.entries()) {
      a.qp.postSend({
        opcode: 'send',
        sge: { mr: a.mr, offset: i * 100, length: 100 },
        ud: { ah, remoteQpn: qp.qpNum, remoteQkey: qp.endpoint().qkey! },
      });
      await succeeded(a.cq);
      expect(await succeeded(b.cq)).toMatchObject({
        wrId: BigInt(i),
        qpNum: qp.qpNum,
        srcQp: a.qp.qpNum,
        byteLen: GRH_BYTES + 100,
      });
      const at = i * 1024 + GRH_BYTES;
      expect(b.mr.buffer.subarray(at, at + 100)).toEqual(pattern(200, 3).subarray(i * 100, i * 100 + 100));
    }
    expect(srq.receiveQueue.outstanding).toBe(0);
  });

  it('serves queue pairs of type UC', async () => {
    const a = end(deviceA, { qp: { type: 'uc' } });
    const b = end(deviceB);
    const srq = b.pd.createSrq();
    const at = { ...b, qp: b.pd.createQp({ type: 'uc', cq: b.cq, srq }) };
    await connect(a, at);
    srq.postRecv({ wrId: 6, sge: { mr: b.mr, length: 1024 } });
    pattern(100, 4).copy(a.mr.buffer);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 100 } });
    await succeeded(a.cq);
    expect(await succeeded(b.cq)).toMatchObject({ wrId: 6n, qpNum: at.qp.qpNum, byteLen: 100 });
    expect(b.mr.buffer.subarray(0, 100)).toEqual(pattern(100, 4));
  });

  it('tells and changes its limit', () => {
    const pd = device().allocPd();
    const srq = pd.createSrq({ maxWr: 32, maxSge: 3, srqLimit: 5 });
    const { maxWr, maxSge, srqLimit } = srq.query();
    expect(maxWr).toBeGreaterThanOrEqual(32);
    expect(maxSge).toBeGreaterThanOrEqual(3);
    expect(srqLimit).toBe(5);
    srq.setLimit(7);
    expect(srq.query().srqLimit).toBe(7);
    expect(() => srq.setLimit(100_000)).toThrow(RangeError);
  });

  it('is refused beyond what the device offers, with by how much', () => {
    const context = device();
    const pd = context.allocPd();
    const { maxSrqSge, maxSrqWr } = context.queryDevice();
    const limit = (text: string) =>
      expect.objectContaining({
        code: 'ERR_RDMA_LIMIT',
        message: expect.stringContaining(text) as string,
      }) as Error;
    expect(() => pd.createSrq({ maxSge: maxSrqSge + 2 })).toThrow(
      limit(`maxSge ${maxSrqSge + 2} is 2 above`),
    );
    expect(() => pd.createSrq({ maxWr: maxSrqWr + 1 })).toThrow(limit('is 1 above'));
    for (const maxWr of [0, -1, 1.5, NaN]) expect(() => pd.createSrq({ maxWr })).toThrow(RangeError);
  });

  it('cannot be closed under its queue pairs, and they have no receives of their own', () => {
    const { pd, cq, mr } = end(deviceA);
    const srq = pd.createSrq();
    const qp = pd.createQp({ type: 'rc', cq, srq });
    expect(qp.srq).toBe(srq);
    expect(() => qp.postRecv({})).toThrow(/takes its receives from shared receive queue/);
    expect(() => pd.createQp({ type: 'rc', cq, srq, maxRecvWr: 5 })).toThrow(/maxRecvWr/);
    expect(() => srq.close()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_BUSY' }) as Error);
    srq.postRecv({ sge: { mr, length: 10 } });
    expect(() => mr.close()).toThrow(/1 outstanding/);
    qp.close();
    srq.close();
    mr.close();
    expect(() => srq.postRecv({})).toThrow(expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error);
  });

  it('has room for all its receives in each completion queue that they may come to', () => {
    const { pd, context } = end(deviceA);
    const srq = pd.createSrq({ maxWr: 64 });
    const small = context.createCq({ cqe: 8 });
    expect(() => pd.createQp({ type: 'rc', cq: small, srq })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_LIMIT',
        message: expect.stringContaining('larger cqe') as string,
      }) as Error,
    );
    const large = context.createCq({ cqe: 512 });
    const before = large.room;
    const first = pd.createQp({ type: 'rc', cq: large, srq });
    const taken = before - large.room;
    expect(taken).toBeGreaterThanOrEqual(64);
    const second = pd.createQp({ type: 'rc', cq: large, srq });
    expect(before - large.room).toBe(taken);
    first.close();
    second.close();
    large.poll();
    expect(large.room).toBe(before);
  });

  it('refuses requests that ask for too much', () => {
    const { pd, mr } = end(deviceA);
    const srq = pd.createSrq();
    const other = device(deviceB).allocPd().regMrSync(64);
    expect(() => srq.postRecv({ sge: { mr, offset: mr.length, length: 1 } })).toThrow(RangeError);
    expect(() => srq.postRecv([{ sge: { mr, length: 1 } }, { sge: { mr: other, length: 1 } }])).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_INVALID_DESCRIPTOR', posted: 0 }) as Error,
    );
    expect(srq.receiveQueue.outstanding).toBe(0);
  });
});

describe('resizing a shared receive queue', () => {
  const busy = (message: RegExp) =>
    expect.objectContaining({
      code: 'ERR_RDMA_BUSY',
      message: expect.stringMatching(message) as string,
    }) as Error;

  /** Posts receives of 64 bytes that are numbered from `first` on. */
  const post = (b: End, srq: SharedReceiveQueue, first: number, count: number) =>
    srq.postRecv(
      Array.from({ length: count }, (_, i) => ({
        wrId: first + i,
        sge: { mr: b.mr, offset: ((first + i) % 512) * 64, length: 64 },
      })),
    );

  /** Sends a message for each receive that is outstanding, and checks that all of them come with their bytes. */
  async function drain(a: End, b: End, from: QueuePair, expected: number[]) {
    const ids: number[] = [];
    for (const id of expected) {
      a.mr.buffer.writeUInt32LE(id, 0);
      send(a, from, 0, 4);
      await succeeded(a.cq);
      const received = await succeeded(b.cq);
      expect(b.mr.buffer.readUInt32LE((Number(received.wrId) % 512) * 64)).toBe(id);
      ids.push(Number(received.wrId));
    }
    expect(ids.sort((x, y) => x - y)).toEqual(expected);
  }

  it('keeps the receives that were posted, and takes as many more as it has grown by', async () => {
    const { a, b, srq, links } = await fanIn(1, 7);
    const before = srq.maxWr;
    post(b, srq, 0, before);
    expect(srq.free).toBe(0);
    const room = b.cq.room;
    await srq.resize(200);
    expect(srq.maxWr).toBe(200);
    expect(srq.query().maxWr).toBeGreaterThanOrEqual(200);
    expect(room - b.cq.room).toBe(200 - before);
    post(b, srq, before, 200 - before);
    expect(srq.free).toBe(0);
    expect(() => srq.postRecv({})).toThrow(expect.objectContaining({ code: 'ERR_RDMA_QUEUE_FULL' }) as Error);
    await drain(
      a,
      b,
      links[0]!.from,
      Array.from({ length: 200 }, (_, i) => i),
    );
    expect(srq.free).toBe(200);
  });

  it('shrinks to what is outstanding and not below, and works on', async () => {
    const { a, b, srq, links } = await fanIn(1, 100);
    const room = b.cq.room;
    const before = srq.maxWr;
    // Out of the middle, so that the places of those that are left are not the first ones.
    post(b, srq, 0, 30);
    await drain(
      a,
      b,
      links[0]!.from,
      Array.from({ length: 20 }, (_, i) => i),
    );
    await expect(srq.resize(9)).rejects.toThrow(busy(/10 receives are outstanding/));
    expect(() => srq.resizeSync(9)).toThrow(busy(/10 receives are outstanding/));
    srq.resizeSync(10);
    expect([srq.maxWr, srq.free]).toEqual([10, 0]);
    expect(b.cq.room - room).toBe(before - 10);
    await drain(
      a,
      b,
      links[0]!.from,
      Array.from({ length: 10 }, (_, i) => 20 + i),
    );
    for (let round = 0; round < 5; ++round) {
      post(b, srq, 100 + round * 10, 10);
      expect(srq.free).toBe(0);
      await drain(
        a,
        b,
        links[0]!.from,
        Array.from({ length: 10 }, (_, i) => 100 + round * 10 + i),
      );
    }
  });

  it('goes one at a time, posting meanwhile within the smaller size, and cannot be closed under it', async () => {
    const { pd, mr } = end(deviceA);
    const srq = pd.createSrq({ maxWr: 15 });
    const before = srq.maxWr;
    const growing = srq.resize(1000);
    expect(srq.maxWr).toBe(before);
    await expect(srq.resize(50)).rejects.toThrow(busy(/being resized/));
    expect(() => srq.close()).toThrow(busy(/./));
    srq.postRecv(Array.from({ length: before }, () => ({ sge: { mr, length: 1 } })));
    await growing;
    expect([srq.maxWr, srq.free]).toEqual([1000, 1000 - before]);
  });

  it('needs room in each completion queue that its receives may come to, and takes none when it fails', async () => {
    const { a, b, srq } = await fanIn(1, 64);
    const small = b.context.createCq({ cqe: 100 });
    const at = b.pd.createQp({ type: 'rc', cq: small, srq });
    const rooms = [b.cq.room, small.room];
    await expect(srq.resize(500)).rejects.toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_LIMIT',
        message: expect.stringContaining('no room for 500') as string,
      }) as Error,
    );
    expect([b.cq.room, small.room]).toEqual(rooms);
    at.close();
    small.poll();
    await srq.resize(500);
    expect(small.room).toBe(small.cqe);
    expect(a.cq.room).toBe(a.cq.cqe);
  });

  it('refuses what the device does not offer, and fewer than the limit that is armed', async () => {
    const { pd, context } = end(deviceA);
    const { maxSrqWr } = context.queryDevice();
    const srq = pd.createSrq({ maxWr: 64, srqLimit: 40 });
    const before = srq.maxWr;
    for (const maxWr of [0, -1, 1.5, NaN, 2 ** 31, '8' as unknown as number]) {
      await expect(srq.resize(maxWr)).rejects.toThrow(/^"maxWr" must be/);
    }
    await expect(srq.resize(maxSrqWr + 1)).rejects.toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_LIMIT',
        message: expect.stringContaining('is 1 above') as string,
      }) as Error,
    );
    await expect(srq.resize(20)).rejects.toThrow(
      expect.objectContaining({
        code: 'EINVAL',
        message: expect.stringContaining('srqLimit') as string,
      }) as Error,
    );
    expect(srq.maxWr).toBe(before);
    srq.close();
    await expect(srq.resize(10)).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error,
    );
  });
});
