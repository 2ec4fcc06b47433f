// What no Soft-RoCE device does: what the library makes of events that it is told of all the same.
import { describe, expect, it, vi } from 'vitest';
import { AsyncEvents, type AsyncEvent } from '../../lib/verbs/async-events.js';
import { CompletionQueue } from '../../lib/verbs/completion-queue.js';
import { asyncEventTypes, type AsyncEventType } from '../../lib/verbs/constants.js';
import type { NativeCompletionQueue, NativeContext } from '../../lib/verbs/native.js';
import { Resource } from '../../lib/verbs/resource.js';

const ended = { closed: false, close() {}, closeAsync: () => Promise.resolve() };

class Root extends Resource {
  readonly device = { name: 'none' };

  constructor() {
    super(ended, []);
  }

  get label(): string {
    return 'context of none';
  }
}

class Part extends Resource {
  readonly #kind: string;

  constructor(root: Resource, kind: string) {
    super(ended, [root]);
    this.#kind = kind;
  }

  get label(): string {
    return this.#kind;
  }

  override isSubject(kind: string, number: number): boolean {
    return kind === this.#kind && number === 7;
  }
}

/** A queue in which nothing ever completes. */
function emptyQueue(root: Root, serial: number, handle: number): CompletionQueue {
  const native = {
    ...ended,
    records: new ArrayBuffer(4096),
    serial,
    handle,
    ready: () => false,
    reqNotify() {},
    ref() {},
    unref() {},
  } as unknown as NativeCompletionQueue;
  return new CompletionQueue(native, root as never);
}

function events(root: Resource): AsyncEvents {
  return new AsyncEvents(root, { serial: 1_000_000, ref() {} } as unknown as NativeContext);
}

const number = (type: AsyncEventType) => asyncEventTypes.indexOf(type);

describe('asynchronous events', () => {
  it('are told under their name and as events, with the object that they are about', () => {
    const root = new Root();
    const parts = {
      queuePair: new Part(root, 'queuePair'),
      completionQueue: new Part(root, 'completionQueue'),
      sharedReceiveQueue: new Part(root, 'sharedReceiveQueue'),
    };
    const emitter = events(root);
    const heard: AsyncEvent[] = [];
    emitter.on('event', (event) => heard.push(event));
    const fatal = vi.fn();
    emitter.on('qpFatal', fatal);
    const pairs = (['qpFatal', 'qpReqErr', 'srqErr', 'lidChange', 'deviceFatal', 'wqFatal'] as const).flatMap(
      (type) => [number(type), 7],
    );
    emitter.receive(pairs);
    expect(heard).toEqual([
      { type: 'qpFatal', qpNum: 7, element: parts.queuePair },
      { type: 'qpReqErr', qpNum: 7, element: parts.queuePair },
      { type: 'srqErr', handle: 7, element: parts.sharedReceiveQueue },
      { type: 'lidChange', port: 7 },
      { type: 'deviceFatal' },
      { type: 'wqFatal', handle: 7 },
    ]);
    expect(fatal).toHaveBeenCalledExactlyOnceWith(heard[0]);
  });

  it('about what is gone have its number only', () => {
    const emitter = events(new Root());
    const heard: AsyncEvent[] = [];
    emitter.on('event', (event) => heard.push(event));
    emitter.receive([number('commEst'), 0xabcdef]);
    expect(heard).toEqual([{ type: 'commEst', qpNum: 0xabcdef, element: undefined }]);
  });

  it('of kinds that only newer libraries have are passed over', () => {
    const emitter = events(new Root());
    const heard = vi.fn();
    emitter.on('event', heard);
    emitter.receive([200, 1, number('portErr'), 1]);
    expect(heard).toHaveBeenCalledExactlyOnceWith({ type: 'portErr', port: 1 });
  });

  it('reach all listeners although one throws, and that is thrown afterwards', () => {
    const emitter = events(new Root());
    const nextTick = vi.spyOn(process, 'nextTick').mockImplementation(() => {});
    emitter.on('portErr', () => {
      throw new Error('of a listener');
    });
    const heard = vi.fn();
    emitter.on('portActive', heard);
    emitter.receive([number('portErr'), 1, number('portActive'), 1]);
    const later = nextTick.mock.calls.map(([callback]) => callback as () => void);
    nextTick.mockRestore();
    expect(heard).toHaveBeenCalledOnce();
    expect(later).toHaveLength(1);
    expect(later[0]).toThrow('of a listener');
  });
});

describe('who waits for completions', () => {
  const code = (value: string) => expect.objectContaining({ code: value }) as Error;

  it('is told that its queue has failed, now and from then on, and no other', async () => {
    const root = new Root();
    const failed = emptyQueue(root, 1_000_001, 7);
    const other = emptyQueue(root, 1_000_002, 8);
    const waits = [failed.wait(), other.wait({ timeoutMs: 50 })];
    const results = Promise.allSettled(waits);
    await new Promise((resolve) => setTimeout(resolve, 5));
    events(root).receive([number('cqErr'), 7]);
    expect(await results).toMatchObject([
      { reason: code('ERR_RDMA_CQ_FAILED') },
      { reason: code('ERR_RDMA_TIMEOUT') },
    ]);
    await expect(failed.completions().next()).rejects.toThrow(code('ERR_RDMA_CQ_FAILED'));
  });

  it('is told that the device has failed', async () => {
    const root = new Root();
    const waiting = expect(emptyQueue(root, 1_000_003, 1).wait()).rejects.toThrow(
      code('ERR_RDMA_DEVICE_FATAL'),
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    events(root).receive([number('deviceFatal'), 0]);
    await waiting;
  });
});
