import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { completions, connectedPair, deviceA, deviceB, end, pattern, succeeded } from '../support/device.js';

it('64 queue pairs share one completion queue, and each completion knows its own', async () => {
  const count = 64;
  const a = end(deviceA, { cqe: 4096 });
  const b = end(deviceB, { cqe: 4096 });
  const links = [];
  for (let i = 0; i < count; ++i) {
    const from = a.pd.createQp({ type: 'rc', cq: a.cq, maxSendWr: 4, maxRecvWr: 4 });
    const at = b.pd.createQp({ type: 'rc', cq: b.cq, maxSendWr: 4, maxRecvWr: 4 });
    const [endpointFrom, endpointAt] = [from.endpoint(), at.endpoint()];
    await from.connect(endpointAt);
    await at.connect(endpointFrom);
    links.push({ from, at });
  }
  pattern(count * 64, 7).copy(a.mr.buffer);
  for (const [i, { at }] of links.entries())
    at.postRecv({ wrId: i, sge: { mr: b.mr, offset: i * 64, length: 64 } });
  for (const [i, { from }] of links.entries()) {
    from.postSend({ wrId: 1000 + i, opcode: 'send', sge: { mr: a.mr, offset: i * 64, length: 64 } });
  }
  const sent = await completions(a.cq, count);
  const received = await completions(b.cq, count);
  const qpNums = (list: typeof sent, base: number) =>
    new Map(list.map((one) => [Number(one.wrId) - base, one.qpNum]));
  const sentBy = qpNums(sent, 1000);
  const receivedBy = qpNums(received, 0);
  for (const [i, { from, at }] of links.entries()) {
    expect(sentBy.get(i)).toBe(from.qpNum);
    expect(receivedBy.get(i)).toBe(at.qpNum);
  }
  expect(b.mr.buffer.subarray(0, count * 64)).toEqual(pattern(count * 64, 7));
});

it('a message may be as long as the port allows, and not longer', async () => {
  const probe = end(deviceA);
  const { maxMsgSz } = probe.context.queryPort();
  if (maxMsgSz > 64 << 20) return; // kernels from 6.5 on take 2 GiB: more than a machine for tests has
  const { a, b } = await connectedPair({ bytes: maxMsgSz + 1 });
  expect(() => a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr }, remote: b.mr.remote() })).toThrow(
    expect.objectContaining({
      code: 'ERR_RDMA_INVALID_DESCRIPTOR',
      message: expect.stringContaining(`more than the ${maxMsgSz} that a message may have`) as string,
    }) as Error,
  );
  a.mr.buffer.fill(0xa5);
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: maxMsgSz }, remote: b.mr.remote() });
  await succeeded(a.cq);
  expect(Buffer.compare(b.mr.buffer.subarray(0, maxMsgSz), a.mr.buffer.subarray(0, maxMsgSz))).toBe(0);
  expect(b.mr.buffer[maxMsgSz]).toBe(0);
});

it('hundreds of lives leave no descriptor of the process behind', () => {
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const life = () => end(deviceA, { qp: { type: 'ud' } }).context.close({ cascade: true });
  life();
  const before = descriptors();
  for (let i = 0; i < 300; ++i) life();
  expect(descriptors()).toBeLessThanOrEqual(before);
});
