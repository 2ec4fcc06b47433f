import { expect } from 'vitest';
import {
  GRH_BYTES,
  WcFlags,
  type CompletionQueue,
  type ExtendedCompletionQueue,
} from '../../../lib/index.js';
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
} from '../../support/device.js';
import { capability, fails, REFUSED, refused } from './cases.js';

const IN_TIME = { timeoutMs: 20_000 };
const queues = capability('completion queues');

queues('small and large ones are made, on each vector', 'create_cq', () => {
  const context = device();
  const { numCompVectors, maxCqe } = context.queryDevice();
  for (const cqe of [1, 1000, maxCqe])
    for (const compVector of [0, numCompVectors - 1]) {
      const cq = context.createCq({ cqe, compVector });
      expect(cq.cqe).toBeGreaterThanOrEqual(cqe);
      expect(cq.poll()).toEqual([]);
      cq.close();
    }
});

queues('several have one channel', 'create_cq_with_comp_channel', () => {
  const context = device();
  const channel = context.createCompletionChannel();
  const cqs = [1, 2].map(() => context.createCq({ channel }));
  expect(channel.fd).toBeGreaterThan(2);
  fails(() => channel.close(), { code: 'ERR_RDMA_BUSY' });
  for (const cq of cqs) cq.close();
  channel.close();
});

queues('too many entries, and a vector that there is not, are refused', 'create_cq_bad_flow', () => {
  const context = device();
  const { numCompVectors, maxCqe } = context.queryDevice();
  fails(() => context.createCq({ cqe: maxCqe + 1 }), { code: 'ERR_RDMA_LIMIT' });
  fails(() => context.createCq({ cqe: 0 }), { code: 'ERR_OUT_OF_RANGE' });
  fails(() => context.createCq({ compVector: numCompVectors }), { code: 'ERR_OUT_OF_RANGE' });
});

queues('one grows and shrinks, but not below what is in it', 'resize_cq', async () => {
  const { a, b } = await connectedPair();
  const cq = b.context.createCq({ cqe: 3 });
  for (const cqe of [1, 7]) {
    await cq.resize(cqe);
    expect(cq.cqe).toBeGreaterThanOrEqual(cqe);
  }
  const at = { ...b, cq, qp: b.pd.createQp({ type: 'rc', cq }) };
  const from = { ...a, qp: a.pd.createQp({ type: 'rc', cq: a.cq }) };
  await connect(from, at);
  for (let i = 0; i < 6; ++i) at.qp.postRecv({ wrId: i, sge: { mr: b.mr, length: 8 } });
  for (let i = 0; i < 6; ++i) from.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
  await completions(a.cq, 6);
  fails(() => cq.resizeSync(1), { code: 'ERR_RDMA_BUSY' });
  await cq.resize(20);
  const all = await completions(cq, 6);
  expect(all.map(({ wrId, status }) => [Number(wrId), status])).toEqual(
    Array.from({ length: 6 }, (_, i) => [i, 'success']),
  );
  cq.resizeSync(1);
  expect(cq.room).toBe(cq.cqe);
});

queues('a pause between events', [], () =>
  refused('ibv_modify_cq', () => device().createCq().moderate({ count: 4, periodUs: 10 })),
);

const events = capability('completion events');

/** Asleep at once: what wakes is the event. */
const asleep = (cq: CompletionQueue) => cq.wait({ ...IN_TIME, spinMicroseconds: 0 });

events('of RC: armed, waited for, and armed again', 'cq_events_rc', async () => {
  const { a, b } = await connectedPair();
  for (let round = 0; round < 3; ++round) {
    b.qp.postRecv({ wrId: round, sge: { mr: b.mr, length: 64 } });
    b.cq.reqNotify();
    const woken = asleep(b.cq);
    expect(b.cq.poll()).toEqual([]);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 10 } });
    await woken;
    expect(b.cq.poll()).toMatchObject([{ wrId: BigInt(round), status: 'success', byteLen: 10 }]);
    await asleep(a.cq);
    expect(a.cq.poll()).toHaveLength(1);
  }
});

events('of datagrams', 'cq_events_ud', async () => {
  const [a, b] = [end(deviceA, { qp: { type: 'ud' } }), end(deviceB, { qp: { type: 'ud' } })];
  await Promise.all([a.qp.start(), b.qp.start()]);
  const { gid, qpNum, qkey } = b.qp.endpoint();
  const ud = { ah: await a.pd.createAh({ dgid: gid }), remoteQpn: qpNum, remoteQkey: qkey! };
  for (let round = 0; round < 2; ++round) {
    b.qp.postRecv({ wrId: round, sge: { mr: b.mr, length: 64 } });
    const woken = asleep(b.cq);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 10 }, ud });
    await woken;
    expect(b.cq.poll()).toMatchObject([{ wrId: BigInt(round), status: 'success', byteLen: GRH_BYTES + 10 }]);
    await succeeded(a.cq);
  }
});

events('for solicited messages only', [], async () => {
  const { a, b } = await connectedPair();
  b.qp.postRecv([{}, {}]);
  let woken = false;
  const waiting = b.cq
    .wait({ ...IN_TIME, spinMicroseconds: 0, solicitedOnly: true })
    .then(() => void (woken = true));
  a.qp.postSend({ opcode: 'send' });
  await succeeded(a.cq);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(woken).toBe(false);
  a.qp.postSend({ opcode: 'send', solicited: true });
  await waiting;
  expect(await completions(b.cq, 2)).toHaveLength(2);
});

events('of several queues on one channel wake each its own', [], async () => {
  const { a, b } = await connectedPair();
  const channel = b.context.createCompletionChannel();
  const [silent, heard] = [b.context.createCq({ channel }), b.context.createCq({ channel })];
  const at = { ...b, qp: b.pd.createQp({ type: 'rc', cq: heard }) };
  const from = { ...a, qp: a.pd.createQp({ type: 'rc', cq: a.cq }) };
  await connect(from, at);
  at.qp.postRecv({ wrId: 5 });
  const never = silent.wait({ timeoutMs: 300, spinMicroseconds: 0 });
  const woken = asleep(heard);
  from.qp.postSend({ opcode: 'send' });
  await woken;
  expect(heard.poll()).toMatchObject([{ wrId: 5n, status: 'success' }]);
  await expect(never).rejects.toMatchObject({ code: 'ERR_RDMA_TIMEOUT' });
});

const extended = capability('extended completion queues');

extended('one is made with each flag that the device has', 'create_cq_ex', () => {
  const context = device();
  for (const [name, flag] of Object.entries(WcFlags)) {
    if ((flag & WcFlags.STANDARD) !== flag) continue;
    const cq = context.createCqEx({ cqe: 16, wcFlags: flag });
    expect(cq.wcFlags & flag, name).toBe(flag);
    expect(cq.pollEx()).toEqual([]);
    cq.close();
  }
});

extended('entries, vectors and flags that there are not are refused', 'create_cq_ex_bad_flow', () => {
  const context = device();
  const { numCompVectors, maxCqe } = context.queryDevice();
  fails(() => context.createCqEx({ cqe: maxCqe + 1 }), { code: 'ERR_RDMA_LIMIT' });
  fails(() => context.createCqEx({ compVector: numCompVectors }), { code: 'ERR_OUT_OF_RANGE' });
  refused('ibv_create_cq_ex', () => context.createCqEx({ wcFlags: 1 << 20 }));
  fails(() => context.createCqEx({ wcFlags: -1 }), { code: 'ERR_OUT_OF_RANGE' });
  fails(() => context.createCqEx({ parentDomain: {} as never }), { code: 'ERR_INVALID_ARG_TYPE' });
});

for (const flag of ['COMPLETION_TIMESTAMP', 'CVLAN', 'FLOW_TAG', 'TM_INFO'] as const)
  extended(`telling of ${flag.toLowerCase().replaceAll('_', ' ')}`, [], () =>
    refused('ibv_create_cq_ex', () => device().createCqEx({ wcFlags: WcFlags[flag] })),
  );

function extendedEnd(name: string | undefined, type: 'rc' | 'ud') {
  const context = device(name);
  const pd = context.allocPd();
  const cq = context.createCqEx({ cqe: 64 });
  return { context, pd, cq, mr: pd.regMrSync(8192, { access: ALL_REMOTE }), qp: pd.createQp({ type, cq }) };
}

async function one(cq: ExtendedCompletionQueue) {
  await cq.wait(IN_TIME);
  const all = cq.pollEx();
  expect(all).toHaveLength(1);
  return all[0]!;
}

extended('messages of RC', 'rc_traffic_cq_ex', async () => {
  const [a, b] = [extendedEnd(deviceA, 'rc'), extendedEnd(deviceB, 'rc')];
  await connect(a, b);
  pattern(200, 1).copy(a.mr.buffer);
  b.qp.postRecv({ wrId: 1, sge: { mr: b.mr, length: 1000 } });
  a.qp.postSend({ wrId: 2, opcode: 'sendWithImm', immData: 0x01020304, sge: { mr: a.mr, length: 200 } });
  expect(await one(a.cq)).toMatchObject({ wrId: 2n, status: 'success', opcode: 'send', qpNum: a.qp.qpNum });
  expect(await one(b.cq)).toMatchObject({
    wrId: 1n,
    status: 'success',
    opcode: 'recv',
    byteLen: 200,
    immData: 0x01020304,
    qpNum: b.qp.qpNum,
  });
  expect(b.mr.buffer.subarray(0, 200)).toEqual(pattern(200, 1));
});

extended('datagrams', 'ud_traffic_cq_ex', async () => {
  const [a, b] = [extendedEnd(deviceA, 'ud'), extendedEnd(deviceB, 'ud')];
  await Promise.all([a.qp.start(), b.qp.start()]);
  const { gid, qpNum, qkey } = b.qp.endpoint();
  const ud = { ah: await a.pd.createAh({ dgid: gid }), remoteQpn: qpNum, remoteQkey: qkey! };
  pattern(64, 2).copy(a.mr.buffer);
  b.qp.postRecv({ sge: { mr: b.mr, length: 256 } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 64 }, ud });
  expect(await one(a.cq)).toMatchObject({ status: 'success' });
  expect(await one(b.cq)).toMatchObject({ byteLen: GRH_BYTES + 64, srcQp: a.qp.qpNum, sl: 0, slid: 0 });
  expect(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 64)).toEqual(pattern(64, 2));
});

extended('the clock of the device, as all of test_phc_timestamp', [], () => {
  expect(device().queryDevice().hcaCoreClock).toBe(0n);
  refused('ibv_query_rt_values_ex', () => device().queryRawClock());
  return REFUSED;
});
