import { expect } from 'vitest';
import { Access, GRH_BYTES, type SendOp } from '../../../lib/index.js';
import {
  ALL_REMOTE,
  completions,
  connect,
  connectedPair,
  deviceA,
  deviceB,
  end,
  pattern,
  succeeded,
  type End,
} from '../../support/device.js';
import { capability, fails, kernelIs, rdmaCoreRelease, REFUSED, refused } from './cases.js';

const posting = capability('extended posting (ibv_wr_*)');

/** A connection; its end a posts what is named. */
async function pair(...sendOps: SendOp[]): Promise<{ a: End; b: End }> {
  const a = end(deviceA, { qp: { sendOps, maxInlineData: 64 } });
  const b = end(deviceB);
  await connect(a, b);
  return { a, b };
}

/** Two ends for datagrams, the first of which posts in the extended way. */
async function datagramPair() {
  const a = end(deviceA, { qp: { type: 'ud', sendOps: ['send', 'sendWithImm'] } });
  const b = end(deviceB, { qp: { type: 'ud' } });
  await Promise.all([a.qp.start(), b.qp.start()]);
  const { gid, qpNum, qkey } = b.qp.endpoint();
  const ud = { ah: await a.pd.createAh({ dgid: gid }), remoteQpn: qpNum, remoteQkey: qkey! };
  b.qp.postRecv({ sge: { mr: b.mr, length: 1024 } });
  return { a, b, ud };
}

posting('a datagram', 'qp_ex_ud_send', async () => {
  const { a, b, ud } = await datagramPair();
  pattern(100, 1).copy(a.mr.buffer);
  a.qp.postSendEx({ opcode: 'send', sge: { mr: a.mr, length: 100 }, ud });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: GRH_BYTES + 100, srcQp: a.qp.qpNum });
  expect(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 100)).toEqual(pattern(100, 1));
});

posting('a datagram with immediate data', 'qp_ex_ud_send_imm', async () => {
  const { a, b, ud } = await datagramPair();
  pattern(50, 2).copy(a.mr.buffer);
  a.qp.postSendEx({ opcode: 'sendWithImm', immData: 0xfedcba98, sge: { mr: a.mr, length: 50 }, ud });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: GRH_BYTES + 50, immData: 0xfedcba98 });
  expect(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 50)).toEqual(pattern(50, 2));
});

posting('a datagram of no bytes', 'qp_ex_ud_zero_size', async () => {
  const { a, b, ud } = await datagramPair();
  b.mr.buffer.fill(0xee, GRH_BYTES);
  a.qp.postSendEx({ opcode: 'send', ud });
  await succeeded(a.cq);
  expect((await succeeded(b.cq)).byteLen).toBe(GRH_BYTES);
  expect(b.mr.buffer[GRH_BYTES]).toBe(0xee);
});

for (const [name, opcode, immData] of [
  ['qp_ex_rc_send', 'send', undefined],
  ['qp_ex_rc_send_imm', 'sendWithImm', 0x89abcdef],
] as const)
  posting(`a message of RC${immData ? ' with immediate data' : ''}`, name, async () => {
    const { a, b } = await pair(opcode);
    pattern(3000, 3).copy(a.mr.buffer);
    b.qp.postRecv({ wrId: 2n ** 64n - 1n, sge: { mr: b.mr } });
    const immediate = immData === undefined ? {} : { immData };
    a.qp.postSendEx({ wrId: 2n ** 63n, opcode, sge: { mr: a.mr, length: 3000 }, ...immediate });
    expect((await succeeded(a.cq)).wrId).toBe(2n ** 63n);
    const received = await succeeded(b.cq);
    expect(received).toMatchObject({ wrId: 2n ** 64n - 1n, opcode: 'recv', byteLen: 3000 });
    expect(received.immData).toBe(immData);
    expect(b.mr.buffer.subarray(0, 3000)).toEqual(pattern(3000, 3));
  });

posting('WRITE', 'qp_ex_rc_rdma_write', async () => {
  const { a, b } = await pair('rdmaWrite');
  pattern(5000, 4).copy(a.mr.buffer);
  a.qp.postSendEx({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 5000 }, remote: b.mr.remote(16) });
  expect(await succeeded(a.cq)).toMatchObject({ opcode: 'rdmaWrite' });
  expect(b.mr.buffer.subarray(16, 5016)).toEqual(pattern(5000, 4));
  expect(b.mr.buffer[5016]).toBe(0);
});

posting('WRITE with immediate data takes a receive', 'qp_ex_rc_rdma_write_imm', async () => {
  const { a, b } = await pair('rdmaWriteWithImm');
  b.qp.postRecv({ wrId: 9 });
  pattern(100, 5).copy(a.mr.buffer);
  const request = { sge: { mr: a.mr, length: 100 }, remote: b.mr.remote() };
  a.qp.postSendEx({ opcode: 'rdmaWriteWithImm', immData: 0xffffffff, ...request });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ wrId: 9n, opcode: 'recvRdmaWithImm', immData: 0xffffffff });
  expect(b.mr.buffer.subarray(0, 100)).toEqual(pattern(100, 5));
});

posting(
  'WRITE of no bytes',
  ['qp_ex_rc_rdma_write_zero_size', 'qp_ex_rc_rdma_write_zero_length'],
  async () => {
    const { a, b } = await pair('rdmaWrite');
    b.mr.buffer.fill(0xee);
    a.mr.buffer.fill(0x11);
    for (const sge of [undefined, { mr: a.mr, length: 0 }]) {
      a.qp.postSendEx({ opcode: 'rdmaWrite', ...(sge && { sge }), remote: b.mr.remote() });
      expect(await succeeded(a.cq)).toMatchObject({ opcode: 'rdmaWrite' });
    }
    expect(b.mr.buffer.every((byte) => byte === 0xee)).toBe(true);
  },
);

posting('READ', 'qp_ex_rc_rdma_read', async () => {
  const { a, b } = await pair('rdmaRead');
  pattern(5000, 6).copy(b.mr.buffer, 32);
  a.qp.postSendEx({ opcode: 'rdmaRead', sge: { mr: a.mr, length: 5000 }, remote: b.mr.remote(32) });
  expect(await succeeded(a.cq)).toMatchObject({ opcode: 'rdmaRead', byteLen: 5000 });
  expect(a.mr.buffer.subarray(0, 5000)).toEqual(pattern(5000, 6));
});

posting('READ of no bytes', 'qp_ex_rc_rdma_read_zero_size', async () => {
  const { a, b } = await pair('rdmaRead');
  a.mr.buffer.fill(0xee);
  a.qp.postSendEx({ opcode: 'rdmaRead', sge: { mr: a.mr, length: 0 }, remote: b.mr.remote() });
  expect(await succeeded(a.cq)).toMatchObject({ opcode: 'rdmaRead' });
  expect(a.mr.buffer.every((byte) => byte === 0xee)).toBe(true);
});

posting('compare-and-swap', 'qp_ex_rc_atomic_cmp_swp', async () => {
  const { a, b } = await pair('atomicCmpAndSwp');
  b.mr.buffer.writeBigUInt64LE(2n ** 63n + 5n);
  const request = { sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() };
  a.qp.postSendEx({ opcode: 'atomicCmpAndSwp', compareAdd: 2n ** 63n + 5n, swap: 77, ...request });
  expect(await succeeded(a.cq)).toMatchObject({ opcode: 'compSwap' });
  expect(a.mr.buffer.readBigUInt64LE()).toBe(2n ** 63n + 5n);
  expect(b.mr.buffer.readBigUInt64LE()).toBe(77n);
});

posting('fetch-and-add', 'qp_ex_rc_atomic_fetch_add', async () => {
  const { a, b } = await pair('atomicFetchAndAdd');
  b.mr.buffer.writeBigUInt64LE(2n ** 64n - 1n);
  const request = { sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() };
  a.qp.postSendEx({ opcode: 'atomicFetchAndAdd', compareAdd: 3, ...request });
  expect(await succeeded(a.cq)).toMatchObject({ opcode: 'fetchAdd' });
  expect(a.mr.buffer.readBigUInt64LE()).toBe(2n ** 64n - 1n);
  expect(b.mr.buffer.readBigUInt64LE()).toBe(2n);
});

posting('atomic WRITE of 8 bytes, of Linux 6.2 and newer', 'qp_ex_rc_atomic_write', async () => {
  const { a, b } = await pair('atomicWrite');
  // IBV_DEVICE_ATOMIC_WRITE
  expect((a.context.queryDevice().deviceCapFlagsEx & (1n << 40n)) !== 0n).toBe(kernelIs(6, 2));
  a.qp.postSendEx({ opcode: 'atomicWrite', value: 0x0102030405060708n, remote: b.mr.remote(64) });
  const [completion] = await completions(a.cq);
  if (kernelIs(6, 2)) {
    expect(completion).toMatchObject({ status: 'success', opcode: 'atomicWrite' });
    expect(b.mr.buffer.readBigUInt64LE(64)).toBe(0x0102030405060708n);
    return undefined;
  }
  expect(completion!.status).toBe('locQpOpErr');
  expect(b.mr.buffer.readBigUInt64LE(64)).toBe(0n);
  return REFUSED;
});

posting('FLUSH, of rdma-core newer than 44', ['qp_ex_rc_flush', 'qp_ex_rc_flush_type_violate'], async () => {
  if (rdmaCoreRelease() <= 44)
    return refused('ibv_create_qp_ex', () => end(deviceA, { qp: { sendOps: ['flush'] } }));
  const { a, b } = await pair('flush');
  // A region of this library is not registered for it: the peer refuses, and a kernel without it does not send.
  a.qp.postSendEx({ opcode: 'flush', remote: b.mr.remote(), length: 64, global: true });
  const [completion] = await completions(a.cq);
  expect(completion!.status).toBe(kernelIs(6, 2) ? 'remAccessErr' : 'locQpOpErr');
  return REFUSED;
});

posting('a bind, and a WRITE against what it allows', 'qp_ex_rc_bind_mw', async () => {
  const a = end(deviceA);
  const b = end(deviceB, { access: ALL_REMOTE | Access.MW_BIND, qp: { sendOps: ['bindMw', 'localInv'] } });
  await connect(a, b);
  const mw = b.pd.allocMw(2);
  b.qp.bindMw(mw, { mr: b.mr, length: 128, access: Access.REMOTE_READ });
  expect(await succeeded(b.cq)).toMatchObject({ opcode: 'bindMw' });
  b.mr.buffer.write('readable');
  a.qp.postSend({ opcode: 'rdmaRead', sge: { mr: a.mr, length: 8 }, remote: mw.remote() });
  await succeeded(a.cq);
  expect(a.mr.buffer.toString('latin1', 0, 8)).toBe('readable');
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, offset: 64, length: 8 }, remote: mw.remote() });
  expect((await completions(a.cq))[0]!.status).toBe('remAccessErr');
  expect(b.mr.buffer.toString('latin1', 0, 8)).toBe('readable');
});

const bounds = capability('bounds of posting');

bounds('a receive in RESET is refused', 'post_receive_qp_state_bad_flow', () => {
  const { qp, mr } = end(deviceA);
  fails(() => qp.postRecv({ sge: { mr, length: 8 } }), { code: 'ERR_RDMA_INVALID_STATE' });
  expect(qp.receiveQueue.outstanding).toBe(0);
});

bounds('a send in RESET is refused', 'post_send_qp_state_bad_flow', () => {
  const { qp, mr, cq } = end(deviceA, { qp: { sendOps: ['send'] } });
  fails(() => qp.postSend({ opcode: 'send', sge: { mr, length: 8 } }), { code: 'ERR_RDMA_INVALID_STATE' });
  fails(() => qp.postSendEx({ opcode: 'send', sge: { mr, length: 8 } }), { code: 'ERR_RDMA_INVALID_STATE' });
  expect(cq.poll()).toEqual([]);
});

bounds('a receive more than the queue has room for is refused', 'full_rq_bad_flow', async () => {
  const { qp } = end(deviceA, { qp: { maxRecvWr: 3 } });
  await qp.init();
  const room = qp.receiveQueue.free;
  expect(room).toBeGreaterThanOrEqual(3);
  for (let i = 0; i < room; ++i) qp.postRecv({});
  fails(() => qp.postRecv({}), { code: 'ERR_RDMA_QUEUE_FULL' });
  expect(qp.receiveQueue.outstanding).toBe(room);
});

bounds('a receive of more elements than it may have is refused', 'rq_with_larger_sgl_bad_flow', async () => {
  const { qp, mr } = end(deviceA, { qp: { maxRecvSge: 2 } });
  await qp.init();
  const most = qp.query().cap.maxRecvSge;
  const sge = Array.from({ length: most + 1 }, (_, i) => ({ mr, offset: i * 8, length: 8 }));
  fails(() => qp.postRecv({ sge }), { code: 'ERR_RDMA_LIMIT' });
  qp.postRecv({ sge: sge.slice(1) });
  expect(qp.receiveQueue.outstanding).toBe(1);
});

bounds('of a list with a wrong request none is posted', [], async () => {
  const { a, b } = await connectedPair();
  const good = { opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() } as const;
  const bad = { ...good, opcode: 'atomicFetchAndAdd', compareAdd: 1, sge: { mr: a.mr, length: 4 } } as const;
  expect(() => a.qp.postSend([good, good, bad])).toThrow(
    expect.objectContaining({ code: 'ERR_RDMA_INVALID_DESCRIPTOR', posted: 0 }) as Error,
  );
  expect(a.qp.sendQueue.outstanding).toBe(0);
});
