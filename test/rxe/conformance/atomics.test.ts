import { expect } from 'vitest';
import { Access, type SendRequest } from '../../../lib/index.js';
import { ALL_REMOTE, completions, connectedPair, succeeded, type End } from '../../support/device.js';
import { capability, fails } from './cases.js';

const atomics = capability('atomics');

const words = (count: number) => Array.from({ length: count }, (_, i) => BigInt(i) * 0x0101_0101_0101_0101n);

const add = (a: End, b: End, at = 0): SendRequest => ({
  opcode: 'atomicFetchAndAdd',
  compareAdd: 1,
  sge: { mr: a.mr, offset: at, length: 8 },
  remote: b.mr.remote(at),
});

atomics(
  'compare-and-swap changes what it finds as expected, and nothing else',
  'atomic_cmp_and_swap',
  async () => {
    const { a, b } = await connectedPair();
    const before = words(8);
    before.forEach((word, i) => b.mr.buffer.writeBigUInt64LE(word, i * 8));
    before.forEach((word, i) =>
      a.qp.postSend({
        ...add(a, b, i * 8),
        opcode: 'atomicCmpAndSwp',
        compareAdd: i % 2 === 0 ? word : word + 1n,
        swap: 1000 + i,
      }),
    );
    for (const { status, opcode } of await completions(a.cq, 8))
      expect([status, opcode]).toEqual(['success', 'compSwap']);
    expect(before.map((_, i) => a.mr.buffer.readBigUInt64LE(i * 8))).toEqual(before);
    expect(before.map((_, i) => b.mr.buffer.readBigUInt64LE(i * 8))).toEqual(
      before.map((word, i) => (i % 2 === 0 ? BigInt(1000 + i) : word)),
    );
  },
);

atomics('fetch-and-add gives what was there', 'atomic_fetch_and_add', async () => {
  const { a, b } = await connectedPair();
  for (let i = 0; i < 8; ++i) a.qp.postSend({ ...add(a, b), sge: { mr: a.mr, offset: i * 8, length: 8 } });
  await completions(a.cq, 8);
  expect(Array.from({ length: 8 }, (_, i) => a.mr.buffer.readBigUInt64LE(i * 8))).toEqual(
    Array.from({ length: 8 }, (_, i) => BigInt(i)),
  );
  expect(b.mr.buffer.readBigUInt64LE()).toBe(8n);
});

/** The request fails with one of the statuses, and changes nothing. */
async function isRefused(a: End, b: End, request: SendRequest, statuses: string[]): Promise<void> {
  const before = Buffer.from(b.mr.buffer);
  a.qp.postSend(request);
  const [completion] = await completions(a.cq);
  expect(statuses).toContain(completion!.status);
  expect(b.mr.buffer.equals(before)).toBe(true);
  expect(a.qp.query().qpState).toBe('err');
}

atomics('a queue pair without the right refuses', 'atomic_invalid_qp_access', async () => {
  const { a, b } = await connectedPair({ connect: { qpAccessFlags: ALL_REMOTE & ~Access.REMOTE_ATOMIC } });
  await isRefused(a, b, add(a, b), ['remInvReqErr', 'remAccessErr']);
});

atomics('a region without the right refuses', 'atomic_invalid_mr_access', async () => {
  const { a, b } = await connectedPair({ access: ALL_REMOTE & ~Access.REMOTE_ATOMIC });
  await isRefused(a, b, add(a, b), ['remAccessErr']);
});

atomics('an address that is no multiple of 8 is refused', 'atomic_non_aligned_addr', async () => {
  const { a, b } = await connectedPair();
  fails(() => a.qp.postSend({ ...add(a, b), remote: b.mr.remote(4) }), {
    code: 'ERR_RDMA_INVALID_DESCRIPTOR',
  });
  expect(a.qp.sendQueue.outstanding).toBe(0);
  a.qp.postSend({ ...add(a, b), remote: b.mr.remote(8) });
  await succeeded(a.cq);
  expect(b.mr.buffer.readBigUInt64LE(8)).toBe(1n);
});

atomics('a local key that is none is refused', 'atomic_invalid_lkey', async () => {
  const { a, b } = await connectedPair();
  const closed = a.pd.regMrSync(64);
  closed.close();
  const foreign = a.context.allocPd().regMrSync(64);
  const sge = { offset: 0, length: 8 };
  // Keys are the library's own: a wrong one does not reach the device.
  fails(() => a.qp.postSend({ ...add(a, b), sge: { ...sge, mr: closed } }), { code: 'ERR_RDMA_CLOSED' });
  fails(() => a.qp.postSend({ ...add(a, b), sge: { ...sge, mr: foreign } }), {
    code: 'ERR_RDMA_INVALID_DESCRIPTOR',
  });
  a.qp.postSend(add(a, b));
  await succeeded(a.cq);
});

atomics('a remote key that is none is refused', 'atomic_invalid_rkey', async () => {
  const { a, b } = await connectedPair();
  const remote = { address: b.mr.address, rkey: b.mr.rkey ^ 0xff00 };
  await isRefused(a, b, { ...add(a, b), remote }, ['remAccessErr']);
});
