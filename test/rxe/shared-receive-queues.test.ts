import { describe, expect, it } from 'vitest';
import type { QueuePair } from '../../lib/index.js';
import {
  completions,
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
