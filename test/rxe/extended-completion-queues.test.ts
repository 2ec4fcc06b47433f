import { describe, expect, it } from 'vitest';
import {
  Access,
  GRH_BYTES,
  WcFlags,
  type ExtendedCompletionQueue,
  type ExtendedWorkCompletion,
} from '../../lib/index.js';
import { ALL_REMOTE, connect, device, deviceA, deviceB, end, pattern } from '../support/device.js';

/** An end whose completions come to an extended queue. */
function extended(name: string | undefined, wcFlags?: number, type: 'rc' | 'ud' = 'rc') {
  const context = device(name);
  const pd = context.allocPd();
  const cq = context.createCqEx({ cqe: 64, ...(wcFlags !== undefined && { wcFlags }) });
  const mr = pd.regMrSync(1 << 16, { access: ALL_REMOTE });
  const qp = pd.createQp({ type, cq });
  return { context, pd, cq, mr, qp };
}

async function some(cq: ExtendedCompletionQueue, count: number): Promise<ExtendedWorkCompletion[]> {
  const all: ExtendedWorkCompletion[] = [];
  while (all.length < count) {
    await cq.wait({ timeoutMs: 20_000 });
    all.push(...cq.pollEx());
  }
  expect(cq.pollEx()).toEqual([]);
  return all;
}

describe('an extended completion queue', () => {
  it('tells of each completion, each once and in order, what a plain one tells', async () => {
    const a = extended(deviceA);
    const b = extended(deviceB);
    expect(a.cq.wcFlags).toBe(WcFlags.STANDARD);
    expect(a.cq.label).toMatch(/^extended completion queue/);
    await connect(a, b);
    const count = 20;
    for (let i = 0; i < count; ++i)
      b.qp.postRecv({ wrId: 100 + i, sge: { mr: b.mr, offset: 64 * i, length: 64 } });
    for (let i = 0; i < count; ++i) {
      pattern(32, i).copy(a.mr.buffer, 64 * i);
      a.qp.postSend({
        wrId: i,
        opcode: 'sendWithImm',
        immData: 0x01020304 + i,
        sge: { mr: a.mr, offset: 64 * i, length: 32 },
      });
    }
    const sent = await some(a.cq, count);
    expect(sent.map(({ wrId, opcode, status, qpNum }) => ({ wrId, opcode, status, qpNum }))).toEqual(
      Array.from({ length: count }, (_, i) => ({
        wrId: BigInt(i),
        opcode: 'send',
        status: 'success',
        qpNum: a.qp.qpNum,
      })),
    );
    const received = await some(b.cq, count);
    received.forEach((completion, i) => {
      expect(completion).toMatchObject({
        wrId: BigInt(100 + i),
        opcode: 'recv',
        byteLen: 32,
        immData: 0x01020304 + i,
        qpNum: b.qp.qpNum,
      });
      expect(b.mr.buffer.subarray(64 * i, 64 * i + 32)).toEqual(pattern(32, i));
      expect(completion).not.toHaveProperty('completionTs');
      expect(completion).not.toHaveProperty('flowTag');
    });
    expect([a.cq.room, b.cq.room]).toEqual([a.cq.cqe, b.cq.cqe]);
  });

  it('tells of a datagram whom it came from', async () => {
    const [a, b] = [extended(deviceA, undefined, 'ud'), extended(deviceB, undefined, 'ud')];
    await a.qp.start();
    await b.qp.start();
    const to = b.qp.endpoint();
    b.qp.postRecv({ sge: { mr: b.mr, length: 256 } });
    const ah = await a.pd.createAh({ dgid: to.gid });
    a.qp.postSend({
      opcode: 'send',
      sge: { mr: a.mr, length: 16 },
      ud: { ah, remoteQpn: to.qpNum, remoteQkey: to.qkey! },
    });
    const [completion] = await some(b.cq, 1);
    expect(completion).toMatchObject({ srcQp: a.qp.qpNum, byteLen: GRH_BYTES + 16, sl: 0, slid: 0 });
    await some(a.cq, 1);
  });

  it('tells which key a peer has invalidated', async () => {
    const [a, b] = [extended(deviceA), extended(deviceB)];
    await connect(a, b);
    const mr = b.pd.regMrSync(64, { access: ALL_REMOTE | Access.MW_BIND });
    const mw = b.pd.allocMw(2);
    b.qp.bindMw(mw, { mr });
    expect(await some(b.cq, 1)).toMatchObject([{ opcode: 'bindMw' }]);
    b.qp.postRecv({ sge: { mr: b.mr, length: 8 } });
    a.qp.postSend({ opcode: 'sendWithInv', sge: { mr: a.mr, length: 8 }, invalidateRkey: mw.rkey });
    await some(a.cq, 1);
    const [completion] = await some(b.cq, 1);
    expect(completion).toMatchObject({ invalidatedRkey: mw.rkey, byteLen: 8 });
    expect(completion!.immData).toBeUndefined();
    expect(() => mw.remote()).toThrow(/is not bound/);
  });

  it('serves the ways of a plain one as well: poll, iteration', async () => {
    const [a, b] = [extended(deviceA), extended(deviceB)];
    await connect(a, b);
    a.qp.postSend({ wrId: 1, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    for await (const batch of a.cq) {
      expect(batch).toMatchObject([{ wrId: 1n, status: 'success' }]);
      break;
    }
    a.qp.postSend({ wrId: 2, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    await a.cq.wait({ timeoutMs: 20_000 });
    expect(a.cq.poll()).toMatchObject([{ wrId: 2n, status: 'success' }]);
  });

  it('tells what failed, and that what follows was flushed', async () => {
    const [a, b] = [extended(deviceA), extended(deviceB)];
    await connect(a, b);
    for (let i = 0; i < 3; ++i) {
      a.qp.postSend({
        wrId: i,
        opcode: 'rdmaWrite',
        sge: { mr: a.mr, length: 8 },
        remote: { address: b.mr.address, rkey: 0xdead },
      });
    }
    const [failed, ...flushed] = await some(a.cq, 3);
    expect(failed).toMatchObject({ wrId: 0n, status: 'remAccessErr', qpNum: a.qp.qpNum });
    expect(flushed).toMatchObject([{ status: 'wrFlushErr' }, { status: 'wrFlushErr' }]);
    expect(flushed[0]!.error!.cause).toBe(failed!.error);
    expect(a.qp.state).toBe('err');
  });

  it('drops what a closed queue pair has left, and tells the rest rightly', async () => {
    const [a, b] = [extended(deviceA), extended(deviceB)];
    await connect(a, b);
    const doomed = b.pd.createQp({ type: 'rc', cq: b.cq });
    await doomed.init();
    doomed.postRecv({ wrId: 666, sge: { mr: b.mr, length: 8 } });
    await doomed.modify({ qpState: 'err' });
    b.qp.postRecv({ wrId: 1, sge: { mr: b.mr, length: 64 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 64 } });
    await some(a.cq, 1);
    doomed.close();
    expect(await some(b.cq, 1)).toMatchObject([{ wrId: 1n, byteLen: 64 }]);
    expect(b.cq.room).toBe(b.cq.cqe);
  });

  it('tells only what it was asked for', async () => {
    const [a, b] = [extended(deviceA, 0), extended(deviceB, WcFlags.BYTE_LEN)];
    expect(a.cq.wcFlags).toBe(WcFlags.QP_NUM);
    await connect(a, b);
    b.qp.postRecv({ sge: { mr: b.mr, length: 64 } });
    a.qp.postSend({ opcode: 'sendWithImm', immData: 5, sge: { mr: a.mr, length: 64 } });
    await some(a.cq, 1);
    const [completion] = await some(b.cq, 1);
    expect(completion).toMatchObject({ byteLen: 64, qpNum: b.qp.qpNum });
    expect(completion!.immData).toBeUndefined();
  });

  it('is made for one thread, or within a completion channel of its own', () => {
    const context = device();
    const channel = context.createCompletionChannel();
    const cq = context.createCqEx({ singleThreaded: true, channel });
    expect(cq.pollEx()).toEqual([]);
    expect(() => channel.close()).toThrow(/extended completion queue . of .* still hangs on it/);
    cq.close();
    channel.close();
  });

  it.each([
    ['timestamps', { wcFlags: WcFlags.COMPLETION_TIMESTAMP }],
    ['the time of day', { wcFlags: WcFlags.COMPLETION_TIMESTAMP_WALLCLOCK }],
    ['VLAN tags', { wcFlags: WcFlags.CVLAN }],
    ['tags of flows', { wcFlags: WcFlags.FLOW_TAG }],
    ['tags of messages', { wcFlags: WcFlags.TM_INFO }],
    ['overruns', { ignoreOverrun: true }],
  ])('with %s is refused by rxe', (_what, options) => {
    expect(() => device().createCqEx(options)).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_UNSUPPORTED', syscall: 'ibv_create_cq_ex' }) as Error,
    );
  });

  it.each([
    [{ cqe: 0 }, 'ERR_OUT_OF_RANGE'],
    [{ cqe: 2 ** 24 }, 'ERR_RDMA_LIMIT'],
    [{ compVector: 1000 }, 'ERR_OUT_OF_RANGE'],
    [{ wcFlags: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ wcFlags: '1' }, 'ERR_INVALID_ARG_TYPE'],
    [{ wcFlags: 2 ** 20 }, 'ERR_RDMA_UNSUPPORTED'],
    [{ channel: {} }, 'ERR_INVALID_ARG_TYPE'],
    [{ parentDomain: {} }, 'ERR_INVALID_ARG_TYPE'],
  ])('refuses %j', (options, code) => {
    expect(() => device().createCqEx(options as never)).toThrow(expect.objectContaining({ code }) as Error);
  });

  it('polls with a limit', () => {
    const cq = device().createCqEx();
    for (const limit of [0, -1, 1.5, NaN]) expect(() => cq.pollEx(limit)).toThrow(RangeError);
    expect(cq.pollEx(1)).toEqual([]);
    cq.close();
    expect(() => cq.pollEx()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error);
  });
});

it('a plain end and an extended one understand each other', async () => {
  const [a, b] = [end(deviceA), extended(deviceB)];
  await connect(a, b);
  b.qp.postRecv({ sge: { mr: b.mr, length: 8 } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
  expect(await some(b.cq, 1)).toMatchObject([{ byteLen: 8 }]);
});
