// What goes wrong at the peer or on the way: the status that comes, and what the error says of it.
import { describe, expect, it } from 'vitest';
import { Access, WorkCompletionError, type WorkCompletion } from '../../lib/index.js';
import { completions, connect, connectedPair, succeeded } from '../support/device.js';

function failure(completion: WorkCompletion | undefined): WorkCompletionError {
  expect(completion?.error).toBeInstanceOf(WorkCompletionError);
  return completion!.error!;
}

describe('a peer that refuses', () => {
  it.each([
    [
      'a wrong rkey',
      (b: { mr: { address: bigint; rkey: number } }) => ({ address: b.mr.address, rkey: b.mr.rkey ^ 0x5500 }),
    ],
    [
      'an address before the region',
      (b: { mr: { address: bigint; rkey: number } }) => ({ address: b.mr.address - 8n, rkey: b.mr.rkey }),
    ],
    [
      'an address at the end of the region',
      (b: { mr: { address: bigint; rkey: number; length: number } }) => ({
        address: b.mr.address + BigInt(b.mr.length) - 4n,
        rkey: b.mr.rkey,
      }),
    ],
  ])('%s', async (_name, remote) => {
    const { a, b } = await connectedPair();
    const before = Buffer.from(b.mr.buffer);
    a.mr.buffer.fill(0xaa);
    a.qp.postSend({ wrId: 3, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: remote(b) });
    const error = failure((await completions(a.cq))[0]);
    expect(error).toMatchObject({
      status: 'remAccessErr',
      wrId: 3n,
      qpNum: a.qp.qpNum,
      code: 'ERR_RDMA_COMPLETION',
    });
    expect(error.message).toMatch(/rkey/);
    expect(a.qp.state).toBe('err');
    expect(a.qp.query().qpState).toBe('err');
    expect(Buffer.compare(before, b.mr.buffer)).toBe(0);
  });

  it.each([
    ['a WRITE', 'rdmaWrite', Access.LOCAL_WRITE | Access.REMOTE_READ],
    ['a READ', 'rdmaRead', Access.LOCAL_WRITE | Access.REMOTE_WRITE],
    ['an atomic', 'atomicFetchAndAdd', Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE],
  ] as const)('%s into a region that does not allow it', async (_name, opcode, access) => {
    const { a, b } = await connectedPair();
    const region = b.pd.regMrSync(4096, { access });
    a.qp.postSend({ opcode, sge: { mr: a.mr, length: 8 }, remote: region.remote(), compareAdd: 1 });
    expect(failure((await completions(a.cq))[0]).status).toBe('remAccessErr');
    expect(region.buffer.every((byte) => byte === 0)).toBe(true);
  });

  it('an operation that its queue pair does not allow', async () => {
    const { a, b } = await connectedPair({ connect: { qpAccessFlags: Access.REMOTE_READ } });
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    expect(['remInvReqErr', 'remAccessErr']).toContain(failure((await completions(a.cq))[0]).status);
  });

  it('a region that it has closed since', async () => {
    const { a, b } = await connectedPair();
    const region = b.pd.regMrSync(4096, { access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });
    const remote = region.remote();
    region.close();
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote });
    expect(failure((await completions(a.cq))[0]).status).toBe('remAccessErr');
  });

  it('to have a plain region invalidated, which serves on', async () => {
    const { a, b } = await connectedPair();
    b.qp.postRecv({ wrId: 4, sge: { mr: b.mr, length: 100 } });
    a.qp.postSend({
      wrId: 3,
      opcode: 'sendWithInv',
      sge: { mr: a.mr, length: 8 },
      invalidateRkey: b.mr.rkey,
    });
    expect(failure((await completions(b.cq))[0])).toMatchObject({ wrId: 4n, status: 'remInvReqErr' });
    expect(b.qp.query().qpState).toBe('err');
    // rxe 6.1 acknowledges what it has refused.
    const [sent] = await completions(a.cq);
    expect(['success', 'remInvReqErr', 'remOpErr']).toContain(sent!.status);
    const again = {
      a: { ...a, qp: a.pd.createQp({ type: 'rc', cq: a.cq }) },
      b: { ...b, qp: b.pd.createQp({ type: 'rc', cq: b.cq }) },
    };
    await connect(again.a, again.b);
    a.mr.buffer.write('on');
    again.a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 2 }, remote: b.mr.remote(500) });
    await succeeded(a.cq);
    expect(b.mr.buffer.toString('latin1', 500, 502)).toBe('on');
  });

  it('a message longer than its receive', async () => {
    const { a, b } = await connectedPair();
    b.mr.buffer.fill(0xee);
    b.qp.postRecv({ wrId: 8, sge: { mr: b.mr, length: 10 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 100 } });
    expect(['remOpErr', 'remInvReqErr']).toContain(failure((await completions(a.cq))[0]).status);
    const received = failure((await completions(b.cq))[0]);
    expect(['locQpOpErr', 'locLenErr']).toContain(received.status);
    expect(received.wrId).toBe(8n);
    expect(b.mr.buffer.subarray(10, 200).every((byte) => byte === 0xee)).toBe(true);
  });
});

describe('what is flushed', () => {
  it('carries the first failure as its cause', async () => {
    const { a, b } = await connectedPair();
    b.qp.postRecv([{ wrId: 1 }, { wrId: 2 }]);
    a.qp.postSend([
      { wrId: 10, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: { address: 0n, rkey: 1 } },
      { wrId: 11, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() },
      { wrId: 12, opcode: 'send', sge: { mr: a.mr, length: 8 }, signaled: false },
    ]);
    const [first, second, third] = (await completions(a.cq, 3)).map(failure);
    expect([first!.status, second!.status, third!.status]).toEqual([
      'remAccessErr',
      'wrFlushErr',
      'wrFlushErr',
    ]);
    expect(second!.cause).toBe(first);
    expect(third!.cause).toBe(first);
    expect(third!.wrId).toBe(12n);
    expect(second!.message).toContain('First failed: work request 10 with remAccessErr');
    const receives = await completions(b.cq, 2);
    expect(receives.map((one) => one.status)).toEqual(['wrFlushErr', 'wrFlushErr']);
    expect(a.qp.sendQueue.outstanding).toBe(0);
    expect(b.qp.receiveQueue.outstanding).toBe(0);
  });

  it('has no cause of an earlier life of the queue pair', async () => {
    const { a, b } = await connectedPair();
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: { address: 0n, rkey: 1 } });
    failure((await completions(a.cq))[0]);
    for (const one of [a, b]) await one.qp.modify({ qpState: 'reset' });
    const [endpointA, endpointB] = [a.qp.endpoint(), b.qp.endpoint()];
    await a.qp.connect(endpointB);
    await b.qp.connect(endpointA);
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    await succeeded(a.cq);
    await a.qp.modify({ qpState: 'err' });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 1 } });
    expect(failure((await completions(a.cq))[0]).cause).toBeUndefined();
  });
});

describe('a peer that is silent', () => {
  it('is an error after the retries, within their time', async () => {
    const { a, b } = await connectedPair({ connect: { timeout: 14, retryCnt: 2 } });
    b.qp.close();
    const began = performance.now();
    a.qp.postSend({ wrId: 6, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    const error = failure((await completions(a.cq))[0]);
    const took = performance.now() - began;
    expect(error).toMatchObject({ status: 'retryExcErr', wrId: 6n });
    expect(error.message).toMatch(/4791/);
    const formula = 3 * 4.096e-3 * 2 ** 14;
    expect(took).toBeGreaterThan(formula / 2);
    expect(took).toBeLessThan(formula * 20);
  });

  it('that has never answered is told from one that has', async () => {
    for (const answered of [false, true]) {
      const { a, b } = await connectedPair({ connect: { timeout: 10, retryCnt: 1 } });
      const write = () =>
        a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
      if (answered) {
        write();
        await succeeded(a.cq);
      }
      b.qp.close();
      write();
      const { message } = failure((await completions(a.cq))[0]);
      expect(message.includes('Nothing was ever acknowledged on this queue pair'), message).toBe(!answered);
    }
  });

  it('without a receive, is an error of the acknowledge timer, though rnrRetry is 7', async () => {
    const { a } = await connectedPair({ connect: { rnrRetry: 7, retryCnt: 2, timeout: 12 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
    const error = failure((await completions(a.cq))[0]);
    expect(error.status).toBe('retryExcErr');
    expect(error.message).toMatch(/no receive posted/);
  });

  it('is none with a timeout of 0, or with 7 retries (rxe), for as long as the queue pair is open', async () => {
    const pairs = await Promise.all([
      connectedPair({ connect: { timeout: 0, retryCnt: 0 } }),
      connectedPair({ connect: { timeout: 8, retryCnt: 7 } }),
    ]);
    for (const { a, b } of pairs) {
      const remote = b.mr.remote();
      b.qp.close();
      a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote });
    }
    // Of 1 ms each, any finite number of retries is over long before.
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const { a } of pairs) {
      expect(a.cq.poll()).toEqual([]);
      expect(() => a.mr.close()).toThrow(/1 outstanding/);
      a.qp.close();
      a.mr.close();
      expect(a.mr.buffer).toHaveLength(0);
    }
  });

  it('without a receive, is an error after the RNR retries', async () => {
    const { a } = await connectedPair({ connect: { rnrRetry: 2, minRnrTimer: 12 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
    const error = failure((await completions(a.cq))[0]);
    expect(error.status).toBe('rnrRetryExcErr');
    expect(error.message).toMatch(/post receives ahead/);
  });

  it('with a receive that comes while the sender retries, is none', async () => {
    const { a, b } = await connectedPair({ connect: { rnrRetry: 6, minRnrTimer: 22 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
    await new Promise((resolve) => setTimeout(resolve, 30));
    b.qp.postRecv({ sge: { mr: b.mr, length: 100 } });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(8);
  });
});
