import { expect } from 'vitest';
import { GRH_BYTES } from '../../../lib/index.js';
import { completions, device, deviceA, deviceB, end, succeeded } from '../../support/device.js';
import { capability, fails } from './cases.js';

const domains = capability('protection domains');

domains('one is made', 'alloc_pd', () => {
  const context = device();
  const pd = context.allocPd();
  expect(pd.context).toBe(context);
  expect(pd.closed).toBe(false);
});

domains('one is made and closed', 'dealloc_pd', () => {
  const pd = device().allocPd();
  pd.close();
  fails(() => pd.regMrSync(64), { code: 'ERR_RDMA_CLOSED' });
});

domains('there are many at once, each another one', 'multiple_pd_creation', () => {
  const context = device();
  const pds = Array.from({ length: 20 }, () => context.allocPd());
  expect(new Set(pds.map(({ handle }) => handle)).size).toBe(20);
  for (const pd of pds) pd.close();
  context.close();
  expect(context.closed).toBe(true);
});

domains('closing twice does nothing', 'destroy_pd_twice', () => {
  const pd = device().allocPd();
  pd.close();
  pd.close();
  expect(pd.closed).toBe(true);
});

domains('one in use is not closed', [], () => {
  const pd = device().allocPd();
  const mr = pd.regMrSync(64);
  fails(() => pd.close(), { code: 'ERR_RDMA_BUSY' });
  mr.close();
  pd.close();
});

const handles = capability('address handles');
const peerGid = () => device(deviceB).chooseGid().gid;

handles('one is made from the GID of a peer', 'create_ah', async () => {
  const pd = device().allocPd();
  const dgid = peerGid();
  const ah = await pd.createAh({ dgid, hopLimit: 64 });
  expect(ah.vector).toMatchObject({ dgid, portNum: 1 });
});

handles('on Ethernet one without a GID is refused', 'create_ah_roce', async () => {
  const pd = device().allocPd();
  await expect(pd.createAh({ dlid: 1 })).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_ATTRIBUTES' });
  fails(() => pd.createAhSync({ dlid: 1 }), { code: 'ERR_RDMA_INVALID_ATTRIBUTES' });
});

handles('one is closed, twice', 'destroy_ah', async () => {
  const pd = device().allocPd();
  const ah = await pd.createAh({ dgid: peerGid() });
  ah.close();
  ah.close();
  expect(ah.closed).toBe(true);
  pd.close();
});

handles('one is made from what a datagram tells, and leads back', [], async () => {
  const [a, b] = [end(deviceA, { qp: { type: 'ud' } }), end(deviceB, { qp: { type: 'ud' } })];
  await Promise.all([a.qp.start(), b.qp.start()]);
  const [toA, toB] = [a.qp.endpoint(), b.qp.endpoint()];
  for (const one of [a, b]) one.qp.postRecv({ sge: { mr: one.mr, offset: 1024, length: 1024 } });
  const there = await a.pd.createAh({ dgid: toB.gid });
  const message = { opcode: 'send', sge: { mr: a.mr, length: 4 } } as const;
  a.qp.postSend({ ...message, ud: { ah: there, remoteQpn: toB.qpNum, remoteQkey: toB.qkey! } });
  const heard = await succeeded(b.cq);
  const back = await b.pd.createAhFromWc(heard, b.mr.buffer.subarray(1024, 1024 + GRH_BYTES));
  expect(back.vector.dgid).toBe(toA.gid);
  b.mr.buffer.write('back');
  b.qp.postSend({
    opcode: 'send',
    sge: { mr: b.mr, length: 4 },
    ud: { ah: back, remoteQpn: heard.srcQp!, remoteQkey: toA.qkey! },
  });
  const ofA = await completions(a.cq, 2);
  expect(ofA.find(({ opcode }) => opcode === 'recv')).toMatchObject({
    status: 'success',
    srcQp: b.qp.qpNum,
    byteLen: GRH_BYTES + 4,
  });
  expect(a.mr.buffer.toString('latin1', 1024 + GRH_BYTES, 1024 + GRH_BYTES + 4)).toBe('back');
});
