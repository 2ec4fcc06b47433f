import { once } from 'node:events';
import { expect } from 'vitest';
import type { AsyncEventMap, QueuePair } from '../../../lib/index.js';
import {
  completions,
  connect,
  device,
  deviceA,
  deviceB,
  end,
  pattern,
  succeeded,
} from '../../support/device.js';
import { capability, fails } from './cases.js';

const shared = capability('shared receive queues');

/** One shared queue at b, and queue pairs that take from it, each with its sender at a. */
async function fan(count: number, maxWr: number) {
  const [a, b] = [end(deviceA), end(deviceB)];
  const srq = b.pd.createSrq({ maxWr });
  const links: { from: QueuePair; at: QueuePair }[] = [];
  for (let i = 0; i < count; ++i) {
    const from = a.pd.createQp({ type: 'rc', cq: a.cq });
    const at = b.pd.createQp({ type: 'rc', cq: b.cq, srq });
    await connect({ ...a, qp: from }, { ...b, qp: at });
    links.push({ from, at });
  }
  return { a, b, srq, links };
}

shared('two queue pairs take their receives from one', 'rc_srq_traffic', async () => {
  const { a, b, srq, links } = await fan(2, 8);
  srq.postRecv([0, 1, 2, 3].map((i) => ({ wrId: i, sge: { mr: b.mr, offset: i * 256, length: 256 } })));
  for (let i = 0; i < 4; ++i) {
    pattern(200, i).copy(a.mr.buffer);
    const { from, at } = links[i % 2]!;
    from.postSend({ opcode: 'send', sge: { mr: a.mr, length: 200 } });
    await succeeded(a.cq);
    const received = await succeeded(b.cq);
    expect(received).toMatchObject({ qpNum: at.qpNum, byteLen: 200 });
    const offset = Number(received.wrId) * 256;
    expect(b.mr.buffer.subarray(offset, offset + 200)).toEqual(pattern(200, i));
  }
  fails(() => links[0]!.at.postRecv({}), { code: 'ERR_RDMA_INVALID_STATE' });
});

shared('one grows to twice its size', 'resize_srq', async () => {
  const srq = device().allocPd().createSrq({ maxWr: 20 });
  const before = srq.query().maxWr;
  await srq.resize(before * 2);
  expect(srq.query().maxWr).toBeGreaterThanOrEqual(before * 2);
  expect(srq.free).toBe(before * 2);
});

shared('one tells when fewer receives are left than its limit', 'modify_srq_limit', async () => {
  const { a, b, srq, links } = await fan(1, 16);
  srq.postRecv(Array.from({ length: 10 }, () => ({ sge: { mr: b.mr, length: 64 } })));
  srq.setLimit(7);
  expect(srq.query().srqLimit).toBe(7);
  const told = once(b.context.events, 'srqLimitReached', { signal: AbortSignal.timeout(20_000) });
  const message = { opcode: 'send', sge: { mr: a.mr, length: 8 } } as const;
  links[0]!.from.postSend([message, message, message, message]);
  await completions(b.cq, 4);
  const [event] = (await told) as AsyncEventMap['srqLimitReached'];
  expect(event.element).toBe(srq);
  expect(srq.query().srqLimit).toBe(0);
});

shared('more than the device has is refused', [], () => {
  const context = device();
  const { maxSrqWr } = context.queryDevice();
  fails(() => context.allocPd().createSrq({ maxWr: maxSrqWr + 1 }), { code: 'ERR_RDMA_LIMIT' });
});
