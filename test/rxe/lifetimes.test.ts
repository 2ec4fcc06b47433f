import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { CompletionRing, SendRing, type RdmaError } from '../../lib/index.js';
import { completions, connectedPair, device, end, deviceA, succeeded } from '../support/device.js';

describe('close', () => {
  it('refuses under children, and names them', () => {
    const { context, pd, cq, mr, qp } = end(deviceA);
    const busy = (name: string | RegExp) =>
      expect.objectContaining({
        code: 'ERR_RDMA_BUSY',
        message: expect.stringMatching(name) as string,
      }) as Error;
    expect(() => context.close()).toThrow(
      busy(/protection domain of .*completion queue|completion queue .*protection domain/),
    );
    expect(() => pd.close()).toThrow(busy(new RegExp(`memory region .*queue pair ${qp.qpNum}`)));
    expect(() => cq.close()).toThrow(busy(new RegExp(`queue pair ${qp.qpNum} still hangs`)));
    qp.close();
    cq.close();
    mr.close();
    pd.close();
    context.close();
    for (const object of [context, pd, cq, mr, qp]) {
      expect(object.closed).toBe(true);
      object.close();
    }
  });

  it('takes all that hangs on it, when told to', () => {
    const { context, pd, cq, mr, qp } = end(deviceA);
    context.close({ cascade: true });
    for (const object of [context, pd, cq, mr, qp]) expect(object.closed).toBe(true);
  });

  it('does the same on another thread', async () => {
    const { context, pd, cq, mr, qp } = end(deviceA);
    await expect(pd.closeAsync()).rejects.toMatchObject({ code: 'ERR_RDMA_BUSY' });
    await context[Symbol.asyncDispose]();
    for (const object of [context, pd, cq, mr, qp]) expect(object.closed).toBe(true);
    await context.closeAsync();
  });

  it('happens once when it is called many times at once', async () => {
    const { mr, pd } = end(deviceA);
    await Promise.all([mr.closeAsync(), mr.closeAsync(), mr.closeAsync()]);
    expect(mr.closed).toBe(true);
    expect(pd.regMrSync(64).closed).toBe(false);
  });

  it('leaves nothing that can be used', async () => {
    const { context, pd, cq, mr, qp } = end(deviceA);
    const ring = new CompletionRing(cq);
    context.close({ cascade: true });
    const closed = expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error;
    const actions: (() => unknown)[] = [
      () => context.queryPort(),
      () => context.allocPd(),
      () => context.createCq(),
      () => context.queryGidTable(),
      () => context.queryPkeyTable(),
      () => pd.regMrSync(64),
      () => pd.createQp({ type: 'rc', cq }),
      () => cq.poll(),
      () => ring.poll(),
      () => qp.postSend({ opcode: 'send', sge: { mr } }),
      () => qp.postRecv({}),
      () => qp.query(),
      () => qp.modifySync({ qpState: 'err' }),
    ];
    for (const action of actions) expect(action, action.toString()).toThrow(closed);
    await expect(pd.regMr(64)).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    await expect(qp.modify({ qpState: 'err' })).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });
});

describe('a memory region', () => {
  it('stays while an outstanding request names it, and not longer', async () => {
    const { a, b } = await connectedPair({ connect: { rnrRetry: 7, minRnrTimer: 20 } });
    const mr = a.pd.regMrSync(4096);
    a.qp.postSend({ wrId: 1, opcode: 'send', sge: { mr, length: 4 } });
    expect(() => mr.close()).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_BUSY',
        message: expect.stringMatching(/1 outstanding work request names it/) as string,
      }) as Error,
    );
    await expect(mr.closeAsync()).rejects.toMatchObject({ code: 'ERR_RDMA_BUSY' });
    expect(mr.closed).toBe(false);
    b.qp.postRecv({ sge: { mr: b.mr, length: 100 } });
    await succeeded(a.cq);
    mr.close();
    expect(() => b.mr.close()).toThrow(/1 outstanding/);
    await succeeded(b.cq);
    b.mr.close();
  });

  it('of requests without completions stays until a later one completes', async () => {
    const { a, b } = await connectedPair();
    const mr = a.pd.regMrSync(4096);
    a.qp.postSend(
      [1, 2, 3].map((wrId) => ({
        wrId,
        opcode: 'rdmaWrite' as const,
        sge: { mr, length: 4 },
        remote: b.mr.remote(),
        signaled: false,
      })),
    );
    expect(() => mr.close()).toThrow(/3 outstanding work requests name it/);
    a.qp.postSend({ wrId: 4, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: b.mr.remote() });
    await succeeded(a.cq);
    mr.close();
  });

  it('stays the device’s when the process has children meanwhile', async () => {
    const { a, b } = await connectedPair();
    const message = Buffer.from('after a child');
    b.qp.postRecv([0, 1].map((i) => ({ wrId: i, sge: { mr: b.mr, offset: i * 4096, length: 100 } })));
    // Written before and after, as memory that a fork has shared would be copied by either.
    message.copy(a.mr.buffer);
    execFileSync('true');
    message.copy(a.mr.buffer, 4096);
    b.mr.buffer.fill(0xee, 0, 8192);
    for (const offset of [0, 4096]) {
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, offset, length: message.length } });
    }
    await completions(a.cq, 2);
    await completions(b.cq, 2);
    for (const offset of [0, 4096]) {
      expect(b.mr.buffer.subarray(offset, offset + message.length + 1)).toEqual(
        Buffer.concat([message, Buffer.of(0xee)]),
      );
    }
  });

  it('is let go by closing the queue pair', async () => {
    const { b } = await connectedPair();
    b.qp.postRecv([{ sge: { mr: b.mr, length: 10 } }, { sge: { mr: b.mr, length: 10 } }]);
    expect(() => b.mr.close()).toThrow(/2 outstanding/);
    b.qp.close();
    b.mr.close();
  });
});

describe('a completion queue', () => {
  it('drops what is left of a queue pair that is closed, and serves the next', async () => {
    const { a, b } = await connectedPair();
    b.qp.postRecv([1, 2].map((wrId) => ({ wrId, sge: { mr: b.mr, length: 10 } })));
    await b.qp.modify({ qpState: 'err' });
    b.qp.close();
    expect(b.cq.poll()).toEqual([]);
    const again = b.pd.createQp({ type: 'rc', cq: b.cq });
    await a.qp.modify({ qpState: 'reset' });
    const endpoint = a.qp.endpoint();
    await a.qp.connect(again.endpoint());
    await again.connect(endpoint);
    again.postRecv({ wrId: 50, sge: { mr: b.mr, length: 10 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 3 } });
    expect(await completions(b.cq)).toMatchObject([{ wrId: 50n, status: 'success' }]);
  });
});

describe('a completion queue that is small', () => {
  it('is never overrun, though every request without a completion of its own fails', async () => {
    const { a, b } = await connectedPair({ cqe: 16, connect: { retryCnt: 1 } });
    const { cqe } = a.cq;
    expect(cqe).toBeLessThan(a.qp.sendQueue.free);
    expect(a.cq.room).toBe(cqe);
    const remote = b.mr.remote();
    b.context.close({ cascade: true });
    const write = (wrId: number) => ({
      wrId,
      opcode: 'rdmaWrite' as const,
      sge: { mr: a.mr, length: 4 },
      remote,
      signaled: false,
    });
    a.qp.postSend(Array.from({ length: cqe }, (_, i) => write(i)));
    expect(a.cq.room).toBe(0);
    expect(() => a.qp.postSend(write(99))).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_QUEUE_FULL',
        message: expect.stringMatching(/completion queue .* has room for 0 of/) as string,
      }) as Error,
    );
    const ring = new SendRing(a.qp);
    ring.rdmaWrite(100, a.mr, 0, 4, remote, 0);
    expect(ring.post()).toBe(0);
    const all = await completions(a.cq, cqe);
    expect(all.map((one) => Number(one.wrId))).toEqual(Array.from({ length: cqe }, (_, i) => i));
    expect(all.map((one) => one.status)).toEqual([
      'retryExcErr',
      ...Array<string>(cqe - 1).fill('wrFlushErr'),
    ]);
    expect(a.cq.room).toBe(cqe);
  });

  it('has its room again when a queue pair is closed and what it left is polled', async () => {
    const { b } = await connectedPair({ cqe: 16 });
    b.qp.postRecv(Array.from({ length: b.cq.cqe }, () => ({ sge: { mr: b.mr, length: 8 } })));
    expect(b.cq.room).toBe(0);
    await b.qp.modify({ qpState: 'err' });
    b.qp.close();
    expect(b.cq.poll()).toEqual([]);
    expect(b.cq.room).toBe(b.cq.cqe);
  });
});

it('keeps what hangs on a context although nothing else does', async () => {
  const { a, b } = await connectedPair();
  const weak = new WeakRef(b.qp);
  const remote = b.mr.remote();
  (b as Partial<typeof b>).qp = undefined;
  for (let i = 0; i < 5; ++i) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(weak.deref()?.closed).toBe(false);
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote });
  await succeeded(a.cq);
});

it('says which queue pair an error is about', async () => {
  const { qp } = end(deviceA);
  const context = device();
  await expect(qp.modify({ qpState: 'rts' })).rejects.toMatchObject({
    qpn: qp.qpNum,
  } satisfies Partial<RdmaError>);
  expect(context.closed).toBe(false);
});
