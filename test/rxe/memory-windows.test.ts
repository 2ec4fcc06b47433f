import { describe, expect, it } from 'vitest';
import { Access, incRkey, type MemoryRegion, type MemoryWindow } from '../../lib/index.js';
import {
  ALL_REMOTE,
  completions,
  connect,
  connectedPair,
  device,
  succeeded,
  type End,
} from '../support/device.js';

const WITH_WINDOWS = ALL_REMOTE | Access.MW_BIND;
const BYTES = 'through the window';

async function pair() {
  return connectedPair({ access: WITH_WINDOWS });
}

/** A window on part of b's region, opened. */
async function opened(b: End, type: 1 | 2, access?: number): Promise<MemoryWindow> {
  const mw = b.pd.allocMw(type);
  b.qp.bindMw(mw, { mr: b.mr, offset: 4096, length: 64, wrId: 7, ...(access !== undefined && { access }) });
  expect(await succeeded(b.cq)).toMatchObject({ wrId: 7n, opcode: 'bindMw' });
  return mw;
}

/** What a writes arrives at `at` bytes from the start of the window. */
async function arrives(a: End, mw: MemoryWindow, mr: MemoryRegion, at = 0): Promise<void> {
  mr.buffer.fill(0);
  a.mr.buffer.write(BYTES);
  const { address, rkey } = mw.remote();
  a.qp.postSend({
    opcode: 'rdmaWrite',
    sge: { mr: a.mr, length: BYTES.length },
    remote: { address: address + BigInt(at), rkey },
  });
  await succeeded(a.cq);
  expect(mr.buffer.toString('latin1', 4096 + at, 4096 + at + BYTES.length)).toBe(BYTES);
}

/** A write by a key is refused, and changes nothing. */
async function refused(a: End, rkey: number, b: End, at = 4096): Promise<void> {
  b.mr.buffer.fill(0xee);
  a.qp.postSend({
    opcode: 'rdmaWrite',
    sge: { mr: a.mr, length: 8 },
    remote: { address: b.mr.address + BigInt(at), rkey },
  });
  const [completion] = await completions(a.cq);
  expect(completion!.status).toBe('remAccessErr');
  expect(b.mr.buffer.every((byte) => byte === 0xee)).toBe(true);
}

describe.each([1, 2] as const)('a window of type %i', (type) => {
  it('opens its range to the peer, and nothing else', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, type);
    expect(mw.remote()).toMatchObject({ address: b.mr.address + 4096n, rkey: mw.rkey, length: 64 });
    expect(mw.rkey).not.toBe(b.mr.rkey);
    await arrives(a, mw, b.mr);
    await arrives(a, mw, b.mr, 64 - BYTES.length);
    a.qp.postSend({ opcode: 'rdmaRead', sge: { mr: a.mr, offset: 100, length: 64 }, remote: mw.remote() });
    await succeeded(a.cq);
    expect(a.mr.buffer.subarray(100, 164)).toEqual(b.mr.buffer.subarray(4096, 4160));
    // rxe of Linux 6.1 holds peers to the region only, not to the range of the window.
    await refused(a, mw.rkey, b, b.mr.length - 4);
  });

  it('allows no more than it was opened for', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, type, Access.REMOTE_READ);
    a.qp.postSend({ opcode: 'rdmaRead', sge: { mr: a.mr, length: 64 }, remote: mw.remote() });
    await succeeded(a.cq);
    await refused(a, mw.rkey, b);
  });

  it('lets a peer read only, by default, what the device may not write', async () => {
    const { a, b } = await pair();
    const mr = b.pd.regMrSync(64, { access: Access.MW_BIND });
    const mw = b.pd.allocMw(type);
    b.qp.bindMw(mw, { mr });
    await succeeded(b.cq);
    mr.buffer.write(BYTES);
    a.qp.postSend({ opcode: 'rdmaRead', sge: { mr: a.mr, length: 64 }, remote: mw.remote() });
    await succeeded(a.cq);
    expect(a.mr.buffer.toString('latin1', 0, BYTES.length)).toBe(BYTES);
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, offset: 100, length: 8 }, remote: mw.remote() });
    expect((await completions(a.cq))[0]!.status).toBe('remAccessErr');
    expect(mr.buffer.toString('latin1', 0, BYTES.length)).toBe(BYTES);
  });

  it('opens nothing once it is closed', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, type);
    await arrives(a, mw, b.mr);
    const { rkey } = mw;
    mw.close();
    await refused(a, rkey, b);
  });

  it('keeps its region from being closed', async () => {
    const { b } = await pair();
    const mw = await opened(b, type);
    expect(() => b.mr.close()).toThrow(expect.objectContaining({ syscall: 'ibv_dereg_mr' }) as Error);
    mw.close();
    b.mr.close();
    expect(b.mr.closed).toBe(true);
  });

  it('keeps its domain from being closed', () => {
    const pd = device().allocPd();
    const mw = pd.allocMw(type);
    expect(mw.label).toBe(`memory window of type ${type}`);
    expect(() => pd.close()).toThrow(/memory window of type . still hangs on it/);
    pd.close({ cascade: true });
    expect(mw.closed).toBe(true);
    mw.close();
  });

  it('is not bound where it may not be', async () => {
    const { a, b } = await pair();
    const mw = b.pd.allocMw(type);
    expect(() => mw.remote()).toThrow(/is not bound/);
    const fails = (request: object, expected: object | RegExp) =>
      expect(() => b.qp.bindMw(mw, request as never)).toThrow(
        expected instanceof RegExp ? expected : (expect.objectContaining(expected) as Error),
      );
    const plain = b.pd.regMrSync(64, { access: ALL_REMOTE });
    fails({ mr: plain }, /register it with Access.MW_BIND/);
    const readOnly = b.pd.regMrSync(64, { access: Access.MW_BIND | Access.REMOTE_READ });
    fails({ mr: readOnly, access: Access.REMOTE_WRITE }, /and LOCAL_WRITE/);
    fails({ mr: b.mr, offset: -1 }, RangeErrorLike);
    fails({ mr: b.mr, offset: b.mr.length }, RangeErrorLike);
    fails({ mr: b.mr, length: 0 }, RangeErrorLike);
    fails({ mr: b.mr, length: b.mr.length + 1 }, RangeErrorLike);
    fails({ mr: b.mr, access: Access.LOCAL_WRITE }, /remote flags/);
    fails({ mr: b.mr, access: 1.5 }, RangeErrorLike);
    fails({ mr: {} }, { code: 'ERR_INVALID_ARG_TYPE' });
    fails({ mr: b.mr, wrId: -1 }, RangeErrorLike);
    fails({ mr: a.mr }, { code: 'ERR_RDMA_FOREIGN_OBJECT' });
    const reset = b.pd.createQp({ type: 'rc', cq: b.cq });
    expect(() => reset.bindMw(mw, { mr: b.mr })).toThrow(/in RTS only/);
    expect(() => b.qp.bindMw({} as never, { mr: b.mr })).toThrow(TypeError);
    const { context } = a;
    const stranger = context.allocPd().allocMw(type);
    expect(() => a.qp.bindMw(stranger, { mr: a.mr })).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_FOREIGN_OBJECT' }) as Error,
    );
    mw.close();
    fails({ mr: b.mr }, { code: 'ERR_RDMA_CLOSED' });
    expect(b.cq.poll()).toEqual([]);
  });
});

const RangeErrorLike = { code: 'ERR_OUT_OF_RANGE' };

describe('a window of type 1', () => {
  it('is bound anew at once, with a new key, and closed by a bind to nothing', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, 1);
    const first = mw.rkey;
    b.qp.bindMw(mw, { mr: b.mr, offset: 4096, length: 128 });
    await succeeded(b.cq);
    expect(mw.rkey).toBe(incRkey(first));
    await arrives(a, mw, b.mr, 100);
    b.qp.bindMw(mw, {});
    await succeeded(b.cq);
    expect(() => mw.remote()).toThrow(/is not bound/);
    expect(() => b.qp.bindMw(mw, {})).toThrow(/is closed already/);
    await refused(a, mw.rkey, b);
  });

  it('is not invalidated by a request', async () => {
    const { b } = await pair();
    const mw = await opened(b, 1);
    expect(() => b.qp.invalidateMw(mw)).toThrow(/closed by a bind without a memory region/);
  });
});

describe('a window of type 2', () => {
  it('is closed by its owner, and opened again', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, 2);
    await arrives(a, mw, b.mr);
    expect(() => b.qp.bindMw(mw, { mr: b.mr })).toThrow(/is bound: invalidate it first/);
    expect(() => b.qp.bindMw(mw, {})).toThrow(/closed by invalidateMw/);
    b.qp.invalidateMw(mw, { wrId: 9 });
    expect(await succeeded(b.cq)).toMatchObject({ wrId: 9n, opcode: 'localInv' });
    const before = mw.rkey;
    // What is not bound would take the kernel down.
    expect(() => b.qp.invalidateMw(mw)).toThrow(/is not bound on this queue pair/);
    b.qp.bindMw(mw, { mr: b.mr, offset: 4096, length: 64 });
    await succeeded(b.cq);
    expect(mw.rkey).toBe(incRkey(before));
    await arrives(a, mw, b.mr);
    await refused(a, before, b);
  });

  it('is refused after its owner has closed it', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, 2);
    b.qp.invalidateMw(mw);
    await succeeded(b.cq);
    await refused(a, mw.rkey, b);
  });

  it('is closed by the peer, with a message that says so', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, 2);
    await arrives(a, mw, b.mr);
    b.qp.postRecv({ wrId: 5, sge: { mr: b.mr, length: 64 } });
    a.qp.postSend({ opcode: 'sendWithInv', sge: { mr: a.mr, length: 10 }, invalidateRkey: mw.rkey });
    await succeeded(a.cq);
    const received = await succeeded(b.cq);
    expect(received).toMatchObject({ wrId: 5n, opcode: 'recv', byteLen: 10, invalidatedRkey: mw.rkey });
    expect(b.mr.buffer.toString('latin1', 0, 10)).toBe(BYTES.slice(0, 10));
    expect(() => mw.remote()).toThrow(/is not bound/);
    expect(() => b.qp.invalidateMw(mw)).toThrow(/is not bound/);
    await refused(a, mw.rkey, b);
  });

  it('is not trusted to be bound once its queue pair was reset', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, 2);
    for (const one of [a, b]) await one.qp.modify({ qpState: 'reset' });
    await connect(a, b);
    expect(() => mw.remote()).toThrow(/is not bound/);
    // Had the bind been lost, the kernel would not survive this.
    expect(() => b.qp.invalidateMw(mw)).toThrow(/is not bound on this queue pair/);
    mw.close();
    b.qp.close();
  });

  it('goes before the queue pair on which it is bound', async () => {
    const { b } = await pair();
    const mw = await opened(b, 2);
    expect(() => b.qp.close()).toThrow(/memory window of type 2 still hangs on it/);
    b.qp.close({ cascade: true });
    expect(mw.closed).toBe(true);
  });

  it('is bound on another queue pair of the domain once it is closed here', async () => {
    const { a, b } = await pair();
    const mw = await opened(b, 2);
    b.qp.invalidateMw(mw);
    await succeeded(b.cq);
    const [one, other] = [a.pd.createQp({ type: 'rc', cq: a.cq }), b.pd.createQp({ type: 'rc', cq: b.cq })];
    const [toOne, toOther] = [one.endpoint(), other.endpoint()];
    await one.connect(toOther);
    await other.connect(toOne);
    other.bindMw(mw, { mr: b.mr, offset: 4096, length: 64 });
    await succeeded(b.cq);
    await arrives({ ...a, qp: one }, mw, b.mr);
    b.qp.close();
    await arrives({ ...a, qp: one }, mw, b.mr, 10);
    expect(() => other.invalidateMw(mw, { wrId: 'x' as never })).toThrow(TypeError);
    mw.close();
    other.close();
  });

  it('holds its region while the bind is under way, and counts in the send queue', async () => {
    const { b } = await connectedPair({ access: WITH_WINDOWS, qp: { maxSendWr: 1 } });
    const windows = Array.from({ length: 40 }, () => b.pd.allocMw(2));
    let posted = 0;
    expect(() => {
      for (const mw of windows) {
        b.qp.bindMw(mw, { mr: b.mr, length: 1, signaled: false });
        ++posted;
      }
    }).toThrow(expect.objectContaining({ code: 'ERR_RDMA_QUEUE_FULL' }) as Error);
    expect(posted).toBeGreaterThan(0);
    expect(() => b.mr.close()).toThrow(/outstanding work request/);
  });
});

it('of a type that there is not is refused', () => {
  const pd = device().allocPd();
  for (const type of [0, 3, 1.5, undefined, 'x']) {
    expect(() => pd.allocMw(type as never)).toThrow(expect.objectContaining(RangeErrorLike) as Error);
  }
});

it('incRkey counts the low 8 bits only', () => {
  expect(incRkey(0x12345678)).toBe(0x12345679);
  expect(incRkey(0xffffffff)).toBe(0xffffff00);
  expect(() => incRkey(2 ** 32)).toThrow(RangeError);
});
