// What rdma-core's suite does not ask, and a program meets.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, onTestFinished } from 'vitest';
import { Access, GRH_BYTES, type AsyncEventMap } from '../../../lib/index.js';
import { addressB } from '../../support/cm.js';
import {
  completions,
  connect,
  connectedPair,
  deviceA,
  deviceB,
  end,
  pattern,
  succeeded,
} from '../../support/device.js';
import { capability, fails } from './cases.js';

const traffic = capability('traffic');

traffic('messages and WRITEs of UC', [], async () => {
  const { a, b } = await connectedPair({ qp: { type: 'uc' } });
  pattern(3000, 1).copy(a.mr.buffer);
  b.qp.postRecv({ sge: { mr: b.mr, length: 4096 } });
  a.qp.postSend({ opcode: 'sendWithImm', immData: 0x80000001, sge: { mr: a.mr, length: 3000 } });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: 3000, immData: 0x80000001 });
  b.qp.postRecv({});
  const request = { sge: { mr: a.mr, length: 3000 }, remote: b.mr.remote(8192) };
  a.qp.postSend({ opcode: 'rdmaWriteWithImm', immData: 0, ...request });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ opcode: 'recvRdmaWithImm', immData: 0 });
  for (const at of [0, 8192]) expect(b.mr.buffer.subarray(at, at + 3000)).toEqual(pattern(3000, 1));
  fails(() => a.qp.postSend({ opcode: 'rdmaRead', ...request }), { code: 'ERR_RDMA_INVALID_DESCRIPTOR' });
});

traffic('elements of unequal lengths, at both ends', [], async () => {
  const { a, b } = await connectedPair({ qp: { maxSendSge: 4, maxRecvSge: 4 } });
  pattern(4096, 2).copy(a.mr.buffer);
  const from = [
    [0, 1],
    [100, 700],
    [2000, 0],
    [3000, 99],
  ] as const;
  const to = [
    [5000, 3],
    [6000, 500],
    [7000, 1000],
  ] as const;
  b.qp.postRecv({ sge: to.map(([offset, length]) => ({ mr: b.mr, offset, length })) });
  a.qp.postSend({ opcode: 'send', sge: from.map(([offset, length]) => ({ mr: a.mr, offset, length })) });
  await succeeded(a.cq);
  const { byteLen } = await succeeded(b.cq);
  const joined = (buffer: Buffer, parts: readonly (readonly [number, number])[]) =>
    Buffer.concat(parts.map(([offset, length]) => buffer.subarray(offset, offset + length)));
  expect(byteLen).toBe(800);
  expect(joined(b.mr.buffer, to).subarray(0, 800)).toEqual(joined(pattern(4096, 2), from));
  expect(b.mr.buffer[7297]).toBe(0);
});

traffic('bytes of the request itself', [], async () => {
  const { a, b } = await connectedPair({ qp: { maxInlineData: 96 } });
  b.qp.postRecv({ sge: { mr: b.mr, length: 128 } });
  const bytes = pattern(96, 3);
  a.qp.postSend({ opcode: 'send', inline: bytes });
  bytes.fill(0);
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: 96 });
  expect(b.mr.buffer.subarray(0, 96)).toEqual(pattern(96, 3));
  fails(() => a.qp.postSend({ opcode: 'send', inline: Buffer.alloc(a.qp.maxInlineData + 1) }), {
    code: 'ERR_RDMA_LIMIT',
  });
});

traffic('one completion for many requests that ask for none', [], async () => {
  const { a, b } = await connectedPair();
  pattern(640, 4).copy(a.mr.buffer);
  for (let i = 0; i < 10; ++i) {
    const place = { sge: { mr: a.mr, offset: i * 64, length: 64 }, remote: b.mr.remote(i * 64, 64) };
    a.qp.postSend({ wrId: i, opcode: 'rdmaWrite', signaled: i === 9, ...place });
  }
  expect((await succeeded(a.cq)).wrId).toBe(9n);
  expect(a.cq.poll()).toEqual([]);
  expect(a.cq.room).toBe(a.cq.cqe);
  expect(b.mr.buffer.subarray(0, 640)).toEqual(pattern(640, 4));
});

traffic('a message that finds no receive, time and again, fails', [], async () => {
  const { a, b } = await connectedPair({ connect: { rnrRetry: 1, minRnrTimer: 1 } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
  expect((await completions(a.cq))[0]!.status).toBe('rnrRetryExcErr');
  expect(a.qp.query().qpState).toBe('err');
  expect(b.cq.poll()).toEqual([]);
});

traffic('a message to a queue pair that is gone fails', [], async () => {
  const { a, b } = await connectedPair({ connect: { timeout: 10, retryCnt: 1 } });
  b.qp.close();
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
  expect((await completions(a.cq))[0]!.status).toBe('retryExcErr');
});

traffic('a message longer than its receive fails at both ends', [], async () => {
  const { a, b } = await connectedPair();
  b.mr.buffer.fill(0xee);
  b.qp.postRecv({ sge: { mr: b.mr, length: 16 } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 17 } });
  expect((await completions(b.cq))[0]!.status).toMatch(/^loc(LenErr|QpOpErr)$/);
  expect((await completions(a.cq))[0]!.status).toMatch(/^rem(InvReqErr|OpErr)$/);
  expect(b.mr.buffer.subarray(16).every((byte) => byte === 0xee)).toBe(true);
});

traffic('what is outstanding when a queue pair fails is flushed', [], async () => {
  const { b } = await connectedPair();
  b.qp.postRecv([{ wrId: 1 }, { wrId: 2 }]);
  await b.qp.modify({ qpState: 'err' });
  expect((await completions(b.cq, 2)).map(({ wrId, status }) => [wrId, status])).toEqual([
    [1n, 'wrFlushErr'],
    [2n, 'wrFlushErr'],
  ]);
});

traffic('a send queue drains, and tells', [], async () => {
  const { a, b } = await connectedPair();
  const write = { opcode: 'rdmaWrite', sge: { mr: a.mr, length: 64 }, remote: b.mr.remote() } as const;
  a.qp.postSend(write);
  await succeeded(a.cq);
  const told = once(a.context.events, 'sqDrained', { signal: AbortSignal.timeout(20_000) });
  await a.qp.modify({ qpState: 'sqd', enSqdAsyncNotify: true });
  const [event] = (await told) as AsyncEventMap['sqDrained'];
  expect(event.element).toBe(a.qp);
  await a.qp.modify({ qpState: 'rts' });
  a.qp.postSend(write);
  await succeeded(a.cq);
});

traffic('a region of every offset and length is read and written there only', [], async () => {
  const { a, b } = await connectedPair();
  const memory = Buffer.alloc(8192, 0xee);
  const mr = b.pd.regMrSync(new Uint8Array(memory.buffer, memory.byteOffset + 4093, 7), {
    access: Access.LOCAL_WRITE | Access.REMOTE_WRITE,
  });
  a.mr.buffer.write('7 bytes');
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 7 }, remote: mr.remote() });
  await succeeded(a.cq);
  expect(memory.toString('latin1', 4093, 4100)).toBe('7 bytes');
  expect([memory[4092], memory[4100]]).toEqual([0xee, 0xee]);
  const beyond = { address: mr.address + 1n, rkey: mr.rkey };
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 7 }, remote: beyond });
  expect((await completions(a.cq))[0]!.status).toBe('remAccessErr');
  expect(memory[4100]).toBe(0xee);
});

const datagrams = capability('datagrams');

async function datagramPair() {
  const [a, b] = [end(deviceA, { qp: { type: 'ud' } }), end(deviceB, { qp: { type: 'ud' } })];
  await Promise.all([a.qp.start({ qkey: 0x11 }), b.qp.start({ qkey: 0x22 })]);
  const { gid, qpNum } = b.qp.endpoint();
  return { a, b, ud: { ah: await a.pd.createAh({ dgid: gid }), remoteQpn: qpNum, remoteQkey: 0x22 } };
}

datagrams('one as long as the MTU goes; one byte more is refused', [], async () => {
  const { a, b, ud } = await datagramPair();
  const { activeMtu } = a.context.queryPort();
  pattern(activeMtu, 5).copy(a.mr.buffer);
  b.qp.postRecv({ sge: { mr: b.mr } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: activeMtu }, ud });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: GRH_BYTES + activeMtu });
  expect(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + activeMtu)).toEqual(pattern(activeMtu, 5));
  fails(() => a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: activeMtu + 1 }, ud }), {
    code: 'ERR_RDMA_INVALID_DESCRIPTOR',
  });
});

datagrams('one with a wrong Q_Key is dropped, the next one comes', [], async () => {
  const { a, b, ud } = await datagramPair();
  b.qp.postRecv([1, 2].map((wrId) => ({ wrId, sge: { mr: b.mr, length: 64 } })));
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 1 }, ud: { ...ud, remoteQkey: 0x23 } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 2 }, ud });
  await completions(a.cq, 2);
  expect(await succeeded(b.cq)).toMatchObject({ wrId: 1n, byteLen: GRH_BYTES + 2 });
  expect(b.qp.receiveQueue.outstanding).toBe(1);
});

datagrams('one to a group comes to its members', [], async () => {
  const { a, b } = await datagramPair();
  const group = '239.3.2.1';
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.bind(0);
  await once(socket, 'listening');
  socket.addMembership(group, addressB);
  b.qp.attachMcast(group);
  b.qp.postRecv({ sge: { mr: b.mr, length: 256 } });
  pattern(80, 6).copy(a.mr.buffer);
  const ah = await a.pd.createAh({ dgid: group });
  const ud = { ah, remoteQpn: 0xffffff, remoteQkey: 0x22 };
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 80 }, ud });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: GRH_BYTES + 80, srcQp: a.qp.qpNum });
  expect(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 80)).toEqual(pattern(80, 6));
  b.qp.detachMcast(group);
  fails(() => b.qp.detachMcast(group), { code: 'EINVAL', syscall: 'ibv_detach_mcast' });
});

const closing = capability('closing');

closing('nothing is closed under what hangs on it; a cascade closes all', [], async () => {
  const { a, b } = await connectedPair();
  a.qp.postRecv({ sge: { mr: a.mr, length: 8 } });
  for (const one of [a.mr, a.cq, a.pd, a.context]) fails(() => one.close(), { code: 'ERR_RDMA_BUSY' });
  a.context.close({ cascade: true });
  expect([a.mr, a.cq, a.qp, a.pd, a.context].map(({ closed }) => closed)).toEqual(Array(5).fill(true));
  expect(b.qp.closed).toBe(false);
});

closing('a connection is made anew with the same queue pairs', [], async () => {
  const { a, b } = await connectedPair();
  for (const one of [a, b]) await one.qp.modify({ qpState: 'reset' });
  await connect(a, b);
  a.mr.buffer.write('anew');
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: b.mr.remote() });
  await succeeded(a.cq);
  expect(b.mr.buffer.toString('latin1', 0, 4)).toBe('anew');
});
