// Waiting for completions: by events of a channel, with none missed, and with an end to each wait.
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import {
  CompletionRing,
  type CompletionQueue,
  type CompletionQueueOptions,
  type WorkCompletion,
} from '../../lib/index.js';
import { completions, connectedPair, device, deviceB, end, type End } from '../support/device.js';

const withCode = (code: string, message = /./) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

/** Never spins, so that it sleeps whenever there is nothing. */
const asleep = { spinMicroseconds: 0 };

function receive(to: End, count: number): void {
  to.qp.postRecv(Array.from({ length: count }, (_, wrId) => ({ wrId, sge: { mr: to.mr, length: 64 } })));
}

function send(from: End, count = 1, fields: { solicited?: boolean } = {}): void {
  const request = { opcode: 'send' as const, sge: { mr: from.mr, length: 8 }, ...fields };
  from.qp.postSend(Array.from({ length: count }, () => request));
}

/** Has a request complete before anything else happens on this thread: no event can have been read meanwhile. */
function untilQueued(cq: CompletionQueue): WorkCompletion[] {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const some = cq.poll(1);
    if (some.length > 0) return some;
    if (Date.now() > deadline) throw new Error('no completion came in 20 s');
  }
}

/** Two ends of a pair whose receiving end has the completion queue that is asked for. */
async function pairWith(options: CompletionQueueOptions): Promise<{ a: End; b: End; cq: CompletionQueue }> {
  const a = end(undefined);
  const b = end(deviceB);
  const cq = b.context.createCq(options);
  b.qp.close();
  const qp = b.pd.createQp({ type: 'rc', cq });
  const endpoint = a.qp.endpoint();
  await a.qp.connect(qp.endpoint());
  await qp.connect(endpoint);
  return { a, b: { ...b, cq, qp }, cq };
}

describe('wait', () => {
  it('sleeps until a completion comes', async () => {
    const { a, b } = await connectedPair();
    receive(b, 1);
    let woken = false;
    const waiting = b.cq.wait(asleep).then(() => (woken = true));
    await delay(50);
    expect(woken).toBe(false);
    send(a);
    await waiting;
    expect(b.cq.poll()).toMatchObject([{ status: 'success', opcode: 'recv', byteLen: 8 }]);
  });

  it('returns at once when completions are there already, as often as it is called', async () => {
    const { a, b } = await connectedPair();
    receive(b, 2);
    send(a, 2);
    await completions(a.cq, 2);
    for (let i = 0; i < 100; ++i) await b.cq.wait({ ...asleep, timeoutMs: 10_000 });
    expect(await completions(b.cq, 2)).toMatchObject([{ wrId: 0n }, { wrId: 1n }]);
  });

  it('arms the queue only before it sleeps: what is there, or comes while it spins, needs no event', async () => {
    const { a, b } = await connectedPair();
    const armed = vi.spyOn(b.cq.native, 'reqNotify');
    receive(b, 3);
    send(a);
    await completions(a.cq);
    await b.cq.wait({ ...asleep, timeoutMs: 20_000 });
    expect(await completions(b.cq)).toHaveLength(1);
    expect(armed).toHaveBeenCalledTimes(0);
    // However slow the machine is, this one comes within the time to spin.
    const { ready } = b.cq.native;
    const looked = vi.spyOn(b.cq.native, 'ready').mockImplementation((spin) => {
      const deadline = Date.now() + 20_000;
      while (!ready(spin)) if (spin === 0 || Date.now() > deadline) return false;
      return true;
    });
    send(a);
    await b.cq.wait({ spinMicroseconds: 10_000, timeoutMs: 20_000 });
    expect(looked.mock.calls).toEqual([[10_000]]);
    expect(await completions(b.cq)).toHaveLength(1);
    expect(armed).toHaveBeenCalledTimes(0);
    const waiting = b.cq.wait({ ...asleep, timeoutMs: 20_000 });
    await delay(20);
    send(a);
    await waiting;
    expect(await completions(b.cq)).toHaveLength(1);
    expect(armed).toHaveBeenCalledTimes(1);
  });

  it('takes nothing that a ring will not find', async () => {
    const { a, b } = await connectedPair();
    const ring = new CompletionRing(b.cq);
    receive(b, 100);
    send(a, 100);
    const ids: number[] = [];
    while (ids.length < 100) {
      await b.cq.wait({ ...asleep, timeoutMs: 20_000 });
      const count = ring.poll(7);
      for (let i = 0; i < count; ++i) ids.push(ring.id(i));
    }
    expect(ids).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(ring.poll()).toBe(0);
  });

  it('does not take an event for a completion that was polled already', async () => {
    const { a, b } = await connectedPair();
    receive(b, 2);
    b.cq.reqNotify();
    send(a);
    untilQueued(b.cq);
    await expect(b.cq.wait({ timeoutMs: 100 })).rejects.toThrow(withCode('ERR_RDMA_TIMEOUT'));
    send(a);
    await b.cq.wait({ ...asleep, timeoutMs: 20_000 });
    expect(await completions(b.cq)).toMatchObject([{ wrId: 1n }]);
  });

  it('is told of failures and flushes', async () => {
    const { b } = await connectedPair();
    receive(b, 2);
    const waiting = b.cq.wait({ ...asleep, timeoutMs: 20_000 });
    await b.qp.modify({ qpState: 'err' });
    await waiting;
    expect(await completions(b.cq, 2)).toMatchObject([{ status: 'wrFlushErr' }, { status: 'wrFlushErr' }]);
  });

  it('gives up when its time is over', async () => {
    const { cq } = end(undefined);
    const begin = performance.now();
    await expect(cq.wait({ timeoutMs: 120 })).rejects.toThrow(
      withCode('ERR_RDMA_TIMEOUT', /completion queue \d+ of/),
    );
    expect(performance.now() - begin).toBeGreaterThan(110);
    await expect(cq.wait({ timeoutMs: 0 })).rejects.toThrow(withCode('ERR_RDMA_TIMEOUT'));
  });

  it('ends with an AbortError when it is aborted, before or while it sleeps', async () => {
    const { cq } = end(undefined);
    const reason = new Error('no longer wanted');
    const aborted = expect.objectContaining({
      name: 'AbortError',
      code: 'ABORT_ERR',
      cause: reason,
    }) as Error;
    const controller = new AbortController();
    const waiting = cq.wait({ ...asleep, signal: controller.signal });
    setTimeout(() => controller.abort(reason), 30);
    await expect(waiting).rejects.toThrow(aborted);
    await expect(cq.wait({ signal: controller.signal })).rejects.toThrow(aborted);
    await expect(cq.completions({ signal: controller.signal }).next()).rejects.toThrow(aborted);
  });

  it.each(['close', 'closeAsync'] as const)(
    'ends with an error when %s takes the queue away',
    async (close) => {
      const { context, cq } = end(undefined);
      const waiting = expect(cq.wait(asleep)).rejects.toThrow(withCode('ERR_RDMA_CLOSED'));
      await delay(20);
      await context[close]({ cascade: true });
      await waiting;
      await expect(cq.wait()).rejects.toThrow(withCode('ERR_RDMA_CLOSED'));
    },
  );

  it('is refused while another one waits, and then taken', async () => {
    const { cq } = end(undefined);
    const first = cq.wait({ ...asleep, timeoutMs: 60 });
    const busy = withCode('ERR_RDMA_BUSY', /waited for already.*queue of its own/);
    await expect(cq.wait()).rejects.toThrow(busy);
    await expect(cq.completions().next()).rejects.toThrow(busy);
    await expect(first).rejects.toThrow(withCode('ERR_RDMA_TIMEOUT'));
    await expect(cq.wait({ timeoutMs: 0 })).rejects.toThrow(withCode('ERR_RDMA_TIMEOUT'));
  });

  it.each<[string, object]>([
    ['timeoutMs', { timeoutMs: -1 }],
    ['timeoutMs', { timeoutMs: 1.5 }],
    ['timeoutMs', { timeoutMs: NaN }],
    ['spinMicroseconds', { spinMicroseconds: 10_001 }],
    ['spinMicroseconds', { spinMicroseconds: '5' }],
    ['signal', { signal: 5 }],
    ['options', 7 as never],
  ])('refuses a wrong %s', async (name, options) => {
    const { cq } = end(undefined);
    await expect(cq.wait(options)).rejects.toThrow(new RegExp(`^"${name}" must be`));
  });
});

describe('completions', () => {
  it('bring every one of many messages, in order, in bursts of every size', async () => {
    const messages = 4000;
    const { a, b } = await connectedPair({ qp: { maxRecvWr: 256, maxSendWr: 256 } });
    receive(b, 200);
    let received = 0;
    let ended = 0;
    let sent = 0;
    const sends = (async () => {
      let state = 7;
      while (ended < messages) {
        state = (state * 75 + 74) % 65_537;
        const burst = Math.min(1 + (state % 40), messages - sent, received + 200 - sent, a.qp.sendQueue.free);
        if (burst > 0) send(a, burst);
        sent += Math.max(burst, 0);
        if (sent === ended) await delay(0);
        else {
          await a.cq.wait({ ...asleep, timeoutMs: 20_000 });
          for (const { error } of a.cq.poll(256)) {
            if (error) throw error;
            ++ended;
          }
        }
      }
    })();
    for await (const batch of b.cq.completions({
      ...asleep,
      limit: 5,
      signal: AbortSignal.timeout(50_000),
    })) {
      expect(batch.length).toBeGreaterThan(0);
      expect(batch.length).toBeLessThanOrEqual(5);
      for (const { wrId, error } of batch) {
        if (error) throw error;
        if (Number(wrId) !== received % 200) throw new Error(`message ${received} came as ${wrId}`);
        b.qp.postRecv({ wrId, sge: { mr: b.mr, length: 64 } });
        ++received;
      }
      if (received === messages) break;
    }
    await sends;
    expect([sent, ended, received]).toEqual([messages, messages, messages]);
  });

  it('leave in the queue what the loop did not take, for the next', async () => {
    const { a, b } = await connectedPair();
    receive(b, 5);
    send(a, 5);
    await completions(a.cq, 5);
    for await (const [completion] of b.cq.completions({ limit: 1 })) {
      expect(completion).toMatchObject({ wrId: 0n });
      break;
    }
    const rest: bigint[] = [];
    for await (const batch of b.cq) {
      rest.push(...batch.map((one) => one.wrId));
      if (rest.length === 4) break;
    }
    expect(rest).toEqual([1n, 2n, 3n, 4n]);
  });

  it('end when the queue is closed, whether the loop sleeps or works', async () => {
    const { context, cq } = end(undefined);
    const sleeping = (async () => {
      for await (const batch of cq.completions(asleep)) throw new Error(`${batch.length} completions`);
      return 'ended';
    })();
    await delay(20);
    context.close({ cascade: true });
    expect(await sleeping).toBe('ended');

    const { a, b } = await connectedPair();
    receive(b, 1);
    send(a);
    let batches = 0;
    for await (const batch of b.cq) {
      batches += batch.length;
      await b.context.closeAsync({ cascade: true });
    }
    expect(batches).toBe(1);
    expect(await b.cq.completions().next()).toEqual({ done: true, value: undefined });
  });

  it('end when the iterator is told to return, and free the queue for the next', async () => {
    const { cq } = end(undefined);
    const iterator = cq.completions();
    await iterator.return();
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    await expect(cq.wait({ timeoutMs: 0 })).rejects.toThrow(withCode('ERR_RDMA_TIMEOUT'));
  });

  it('let timers have their turn though completions never cease', async () => {
    const { a, b } = await connectedPair();
    let done = false;
    setTimeout(() => (done = true), 30);
    const write = () =>
      a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
    write();
    let count = 0;
    // It spins for so long that it never sleeps.
    for await (const [completion] of a.cq.completions({ spinMicroseconds: 10_000 })) {
      if (completion!.error) throw completion!.error;
      if (done) break;
      if (++count === 1_000_000) throw new Error('the timer was starved');
      write();
    }
    expect(done).toBe(true);
  });

  it('refuse a wrong limit at once', () => {
    const { cq } = end(undefined);
    for (const limit of [0, -1, 1.5, NaN, '3' as never])
      expect(() => cq.completions({ limit })).toThrow(/^"limit" must be/);
  });
});

describe('solicited events', () => {
  it('wake for a message that its sender marked, and give the others with it', async () => {
    const { a, b } = await connectedPair();
    receive(b, 3);
    const waiting = b.cq.wait({ ...asleep, solicitedOnly: true, timeoutMs: 20_000 });
    const woken = vi.fn();
    void waiting.then(woken, woken);
    send(a, 2);
    await completions(a.cq, 2);
    await delay(50);
    expect(woken).not.toHaveBeenCalled();
    send(a, 1, { solicited: true });
    await waiting;
    expect(await completions(b.cq, 3)).toMatchObject([{ wrId: 0n }, { wrId: 1n }, { wrId: 2n }]);
  });

  it('do not narrow an event for all that was asked for before', async () => {
    const { a, b } = await connectedPair();
    receive(b, 1);
    b.cq.reqNotify();
    b.cq.reqNotify({ solicitedOnly: true });
    const waiting = b.cq.wait({ ...asleep, solicitedOnly: true, timeoutMs: 20_000 });
    send(a);
    await waiting;
    expect(b.cq.poll()).toHaveLength(1);
  });
});

describe('a completion channel', () => {
  it('serves many queues, and wakes each for its own completions only', async () => {
    const { a, b } = await connectedPair();
    const channel = b.context.createCompletionChannel();
    const queues = Array.from({ length: 8 }, () => b.context.createCq({ channel }));
    const pairs = await Promise.all(
      queues.map(async (cq) => {
        const [local, remote] = [a.pd.createQp({ type: 'rc', cq: a.cq }), b.pd.createQp({ type: 'rc', cq })];
        const endpoint = local.endpoint();
        await local.connect(remote.endpoint());
        await remote.connect(endpoint);
        remote.postRecv({ wrId: remote.qpNum, sge: { mr: b.mr, length: 8 } });
        return { local, remote, cq };
      }),
    );
    const order: number[] = [];
    const waits = pairs.map(async ({ cq }, i) => {
      await cq.wait({ ...asleep, timeoutMs: 20_000 });
      order.push(i);
    });
    for (const i of [5, 0, 7, 3]) {
      pairs[i]!.local.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
      await waits[i];
      expect(pairs[i]!.cq.poll()).toMatchObject([{ wrId: BigInt(pairs[i]!.remote.qpNum) }]);
    }
    expect(order).toEqual([5, 0, 7, 3]);
    for (const i of [1, 2, 4, 6]) pairs[i]!.local.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
    await Promise.all(waits);
    expect(() => channel.close()).toThrow(withCode('ERR_RDMA_BUSY', /completion queue \d+ of/));
    for (const { remote } of pairs) remote.close();
    for (const cq of queues) cq.close();
    channel.close();
    expect(channel.closed).toBe(true);
  });

  it('lets a queue be destroyed whose event nobody has read, and serves the others on', async () => {
    const { a, b, cq } = await pairWith({});
    const other = b.context.createCq();
    receive(b, 1);
    cq.reqNotify();
    send(a);
    untilQueued(cq);
    b.qp.close();
    cq.close();
    await expect(other.wait({ timeoutMs: 50 })).rejects.toThrow(withCode('ERR_RDMA_TIMEOUT'));
    other.close();
  });

  it('lets a queue be destroyed on another thread while its event is read', async () => {
    const { a, b, cq } = await pairWith({});
    receive(b, 1);
    cq.reqNotify();
    b.context.createCq().reqNotify();
    send(a);
    untilQueued(cq);
    b.qp.close();
    await cq.closeAsync();
    expect(cq.closed).toBe(true);
  });

  it('may be refused: then the queue can only be polled', async () => {
    const { a, b, cq } = await pairWith({ channel: null });
    const refused = withCode('ERR_RDMA_NO_CHANNEL', /channel: null/);
    expect(() => cq.reqNotify()).toThrow(refused);
    expect(() => cq.completions()).toThrow(refused);
    await expect(cq.wait()).rejects.toThrow(refused);
    receive(b, 1);
    send(a);
    expect(await completions(cq)).toMatchObject([{ status: 'success' }]);
  });

  it('of another context, of another kind, or closed, is refused', () => {
    const context = device();
    const foreign = device(deviceB).createCompletionChannel();
    const closed = context.createCompletionChannel();
    closed.close();
    expect(() => context.createCq({ channel: foreign })).toThrow(withCode('ERR_RDMA_FOREIGN_OBJECT'));
    expect(() => context.createCq({ channel: closed })).toThrow(withCode('ERR_RDMA_CLOSED'));
    expect(() => context.createCq({ channel: {} as never })).toThrow(withCode('ERR_INVALID_ARG_TYPE'));
  });

  it('is one for all queues of a context that name none, and goes with the last of them', () => {
    const descriptors = () => readdirSync('/proc/self/fd').length;
    const context = device();
    const before = descriptors();
    const queues = Array.from({ length: 5 }, () => context.createCq());
    expect(descriptors()).toBe(before + 1);
    for (const cq of queues) cq.close();
    expect(descriptors()).toBe(before);
    context.close();
  });

  it('leaves no descriptor behind, over hundreds of lives', async () => {
    const life = async () => {
      const context = device();
      const cq = context.createCq({ channel: context.createCompletionChannel() });
      context.createCq();
      const waiting = cq.wait(asleep).catch((error: unknown) => error);
      context.close({ cascade: true });
      expect(await waiting).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    };
    const descriptors = () => readdirSync('/proc/self/fd').length;
    await life();
    const before = descriptors();
    for (let i = 0; i < 200; ++i) await life();
    expect(descriptors()).toBe(before);
  });
});

describe('resize', () => {
  it('gives more room and takes it away, with the completions in the queue kept', async () => {
    const { a, b } = await connectedPair({ cqe: 16 });
    const small = b.cq.cqe;
    receive(b, small);
    expect(b.cq.room).toBe(0);
    send(a, 3);
    await completions(a.cq, 3);
    await b.cq.resize(200);
    expect(b.cq.cqe).toBeGreaterThanOrEqual(200);
    expect(b.cq.room).toBe(b.cq.cqe - small);
    receive(b, 60);
    const refused = withCode('ERR_RDMA_BUSY', new RegExp(`may take ${small + 60} entries`));
    await expect(b.cq.resize(small + 59)).rejects.toThrow(refused);
    expect(() => b.cq.resizeSync(1)).toThrow(refused);
    b.cq.resizeSync(small + 60);
    expect(b.cq.cqe).toBeLessThan(200);
    send(a, 5);
    const all = await completions(b.cq, 8);
    expect(all.map((one) => Number(one.wrId))).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    send(a);
    await b.cq.wait({ ...asleep, timeoutMs: 20_000 });
    expect(b.cq.poll()).toMatchObject([{ wrId: 8n }]);
  });

  it('lets no more be posted meanwhile than either size has room for', async () => {
    const { cq, qp, mr } = end(undefined, { cqe: 500, qp: { maxRecvWr: 400 } });
    await qp.init();
    const resizing = cq.resize(40);
    expect(cq.room).toBe(40);
    expect(() => qp.postRecv(Array.from({ length: 41 }, () => ({ sge: { mr, length: 8 } })))).toThrow(
      withCode('ERR_RDMA_QUEUE_FULL'),
    );
    qp.postRecv(Array.from({ length: 40 }, () => ({ sge: { mr, length: 8 } })));
    await expect(cq.resize(50)).rejects.toThrow(withCode('ERR_RDMA_BUSY', /being resized/));
    expect(() => cq.close()).toThrow(withCode('ERR_RDMA_BUSY'));
    await resizing;
    expect(cq.cqe).toBeGreaterThanOrEqual(40);
    expect(cq.cqe).toBeLessThan(500);
    expect(cq.room).toBe(cq.cqe - 40);
  });

  it('refuses what no device has', async () => {
    const { context, cq } = end(undefined);
    for (const cqe of [0, -5, 1.5, '9' as never])
      await expect(cq.resize(cqe)).rejects.toThrow(/^"cqe" must be/);
    const { maxCqe } = context.queryDevice();
    await expect(cq.resize(maxCqe + 1)).rejects.toThrow(withCode('ERR_RDMA_LIMIT', /1 above the/));
  });
});
