import { expect } from 'vitest';
import { Access, type MemoryWindow } from '../../../lib/index.js';
import {
  ALL_REMOTE,
  completions,
  connectedPair,
  device,
  pattern,
  succeeded,
  type End,
} from '../../support/device.js';
import { capability, fails } from './cases.js';

const windows = capability('memory windows');

/** A window over 512 bytes of b's region, bound on its queue pair. */
async function bound(type: 1 | 2): Promise<{ a: End; b: End; mw: MemoryWindow }> {
  const { a, b } = await connectedPair({ access: ALL_REMOTE | Access.MW_BIND });
  const mw = b.pd.allocMw(type);
  b.qp.bindMw(mw, { mr: b.mr, offset: 1024, length: 512 });
  expect(await succeeded(b.cq)).toMatchObject({ opcode: 'bindMw' });
  return { a, b, mw };
}

async function opens({ a, b, mw }: Awaited<ReturnType<typeof bound>>): Promise<void> {
  pattern(200, type(mw)).copy(a.mr.buffer);
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 200 }, remote: mw.remote() });
  await succeeded(a.cq);
  expect(b.mr.buffer.subarray(1024, 1224)).toEqual(pattern(200, type(mw)));
}

const type = (mw: MemoryWindow) => 10 + mw.type;

/** Nothing gets in by the key. */
async function isShut(a: End, b: End, rkey: number): Promise<void> {
  const before = Buffer.from(b.mr.buffer);
  a.mr.buffer.fill(0x77);
  const remote = { address: b.mr.address + 1024n, rkey };
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote });
  expect((await completions(a.cq))[0]!.status).toBe('remAccessErr');
  expect(b.mr.buffer.equals(before)).toBe(true);
}

windows('one of type 1 opens a region to WRITE', ['mw_type1', 'mw_ex_type1'], async () =>
  opens(await bound(1)),
);

windows('one of type 1 is shut by a bind to nothing', 'invalidate_mw_type1', async () => {
  const made = await bound(1);
  await opens(made);
  const { a, b, mw } = made;
  const { rkey } = mw;
  b.qp.bindMw(mw, {});
  await succeeded(b.cq);
  fails(() => mw.remote(), { code: 'ERR_RDMA_INVALID_STATE' });
  await isShut(a, b, rkey);
});

windows('one of type 2 opens a region to WRITE', 'mw_type2', async () => opens(await bound(2)));

windows('one of type 2 is shut by its owner', 'mw_type2_invalidate_local', async () => {
  const made = await bound(2);
  await opens(made);
  const { a, b, mw } = made;
  b.qp.invalidateMw(mw);
  expect(await succeeded(b.cq)).toMatchObject({ opcode: 'localInv' });
  await isShut(a, b, mw.rkey);
});

windows('one of type 2 is shut by the peer', 'mw_type2_invalidate_remote', async () => {
  const made = await bound(2);
  await opens(made);
  const { a, b, mw } = made;
  b.qp.postRecv({ sge: { mr: b.mr, length: 16 } });
  a.qp.postSend({ opcode: 'sendWithInv', sge: { mr: a.mr, length: 16 }, invalidateRkey: mw.rkey });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ invalidatedRkey: mw.rkey, byteLen: 16 });
  await isShut(a, b, mw.rkey);
});

windows('one of type 2 is shut when it is closed', 'mw_type2_invalidate_dealloc', async () => {
  const made = await bound(2);
  await opens(made);
  const { a, b, mw } = made;
  const { rkey } = mw;
  mw.close();
  await isShut(a, b, rkey);
});

windows('there are no others than these types', 'reg_mw_wrong_type', () => {
  const pd = device().allocPd();
  for (const wrong of [0, 3, -1, 'x']) fails(() => pd.allocMw(wrong as never), { code: 'ERR_OUT_OF_RANGE' });
});

windows('one opens no more than it was bound for', [], async () => {
  const { a, b, mw } = await bound(2);
  b.qp.invalidateMw(mw);
  await succeeded(b.cq);
  b.qp.bindMw(mw, { mr: b.mr, offset: 1024, length: 512, access: Access.REMOTE_READ });
  await succeeded(b.cq);
  pattern(64, 5).copy(b.mr.buffer, 1024);
  a.qp.postSend({ opcode: 'rdmaRead', sge: { mr: a.mr, length: 64 }, remote: mw.remote() });
  await succeeded(a.cq);
  expect(a.mr.buffer.subarray(0, 64)).toEqual(pattern(64, 5));
  await isShut(a, b, mw.rkey);
});
