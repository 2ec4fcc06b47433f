import { EventEmitter } from 'node:events';
import { CompletionQueue } from './completion-queue.js';
import { asyncEventTypes, type AsyncEventType } from './constants.js';
import { RdmaError } from './errors.js';
import type { NativeContext } from './native.js';
import type { QueuePair } from './queue-pair.js';
import type { Resource } from './resource.js';
import { asyncEventRoutes } from './routes.js';
import type { SharedReceiveQueue } from './shared-receive-queue.js';

/** What each event is about. */
const subjects = {
  cqErr: 'completionQueue',
  qpFatal: 'queuePair',
  qpReqErr: 'queuePair',
  qpAccessErr: 'queuePair',
  commEst: 'queuePair',
  sqDrained: 'queuePair',
  pathMig: 'queuePair',
  pathMigErr: 'queuePair',
  deviceFatal: 'device',
  portActive: 'port',
  portErr: 'port',
  lidChange: 'port',
  pkeyChange: 'port',
  smChange: 'port',
  srqErr: 'sharedReceiveQueue',
  srqLimitReached: 'sharedReceiveQueue',
  qpLastWqeReached: 'queuePair',
  clientReregister: 'port',
  gidChange: 'port',
  wqFatal: 'workQueue',
} as const satisfies Record<AsyncEventType, string>;

type About<Subject extends string> = {
  [T in AsyncEventType]: (typeof subjects)[T] extends Subject ? T : never;
}[AsyncEventType];

export interface QueuePairEvent {
  type: About<'queuePair'>;
  qpNum: number;
  /** Undefined where it was closed meanwhile. */
  element: QueuePair | undefined;
}

export interface CompletionQueueEvent {
  type: About<'completionQueue'>;
  /** The kernel's number of the queue. */
  handle: number;
  /** Undefined where it was closed meanwhile. */
  element: CompletionQueue | undefined;
}

export interface SharedReceiveQueueEvent {
  type: About<'sharedReceiveQueue'>;
  /** The kernel's number of the queue. */
  handle: number;
  /** Undefined where it was closed meanwhile. */
  element: SharedReceiveQueue | undefined;
}

/** Of a work queue (`struct ibv_wq`), which this library does not make. */
export interface WorkQueueEvent {
  type: About<'workQueue'>;
  handle: number;
}

export interface PortEvent {
  type: About<'port'>;
  /** From 1. */
  port: number;
}

export interface DeviceEvent {
  type: About<'device'>;
}

/** An asynchronous event (`struct ibv_async_event`). */
export type AsyncEvent =
  QueuePairEvent | CompletionQueueEvent | SharedReceiveQueueEvent | WorkQueueEvent | PortEvent | DeviceEvent;

/** The events of a context by name; `'event'` is each of them, `'close'` the end of the context. */
export type AsyncEventMap = {
  [T in AsyncEventType]: [event: Extract<AsyncEvent, { type: About<(typeof subjects)[T]> }> & { type: T }];
} & { event: [event: AsyncEvent]; close: [] };

/** Contexts that somebody listens to: nothing else may hold them. */
const listened = new Set<AsyncEvents>();

/**
 * The asynchronous events of a device that is open: ports that come and go, queues that fail, limits that are reached. At
 * {@link Context.events}. `ibv_get_async_event`, `ibv_ack_async_event`
 *
 * Each event is acknowledged as soon as it is read, whether somebody listens or not. Listening alone does not keep the
 * process alive; {@link ref} does. rxe makes `portActive`, `portErr`, `gidChange`, `sqDrained`, `srqLimitReached`, `cqErr`
 * and (since Linux 6.12) `qpLastWqeReached`, and no others. After `deviceFatal` no more events come.
 */
export class AsyncEvents extends EventEmitter<AsyncEventMap> {
  readonly #context: Resource;
  readonly #native: NativeContext;

  /** @internal */
  constructor(context: Resource, native: NativeContext) {
    super();
    this.#context = context;
    this.#native = native;
    asyncEventRoutes.add(native.serial, this);
    this.#meta().on('newListener', (name: string | symbol) => {
      if (isEvent(name) && !context.closed) listened.add(this);
    });
    this.#meta().on('removeListener', () => {
      if (!this.eventNames().some(isEvent)) listened.delete(this);
    });
  }

  /** Keeps the process alive until the context is closed, or {@link unref}. */
  ref(): this {
    this.#native.ref(true);
    return this;
  }

  /** Lets the process end although events may come: so it is at first. */
  unref(): this {
    this.#native.ref(false);
    return this;
  }

  /** @internal Pairs of type and subject. */
  receive(pairs: readonly number[]): void {
    for (let i = 0; i < pairs.length; i += 2) {
      const type = asyncEventTypes[pairs[i]!];
      // Libraries newer than this one may have more.
      if (type === undefined) continue;
      const event = this.#describe(type, pairs[i + 1]!);
      this.#failQueues(event);
      this.#tell(type, event);
      this.#tell('event', event);
    }
  }

  /** @internal */
  closed(): void {
    listened.delete(this);
    this.#meta().emit('close');
  }

  /** This emitter, without the types of its events. */
  #meta(): EventEmitter {
    return this;
  }

  #describe(type: AsyncEventType, number: number): AsyncEvent {
    const subject = subjects[type];
    switch (subject) {
      case 'device':
        return { type } as DeviceEvent;
      case 'port':
        return { type, port: number } as PortEvent;
      case 'workQueue':
        return { type, handle: number } as WorkQueueEvent;
      case 'queuePair':
        return { type, qpNum: number, element: this.#find(subject, number) } as QueuePairEvent;
      case 'completionQueue':
        return { type, handle: number, element: this.#find(subject, number) } as CompletionQueueEvent;
      case 'sharedReceiveQueue':
        return { type, handle: number, element: this.#find(subject, number) } as SharedReceiveQueueEvent;
    }
  }

  #find(kind: string, number: number): Resource | undefined {
    for (const resource of this.#context.descendants()) {
      if (resource.isSubject(kind, number) && !resource.closed) return resource;
    }
    return undefined;
  }

  /** A queue that has overflowed, or whose device has failed, will never tell those who wait for it. */
  #failQueues(event: AsyncEvent): void {
    if (event.type === 'cqErr') {
      event.element?.fail(
        new RdmaError(
          'ERR_RDMA_CQ_FAILED',
          `${event.element.label} has failed: completions were lost. Close its queue pairs and it, and make it anew.`,
        ),
      );
    } else if (event.type === 'deviceFatal') {
      const error = new RdmaError('ERR_RDMA_DEVICE_FATAL', `${this.#context.label}: the device has failed`);
      for (const resource of this.#context.descendants()) {
        if (resource instanceof CompletionQueue) resource.fail(error);
      }
    }
  }

  /** A listener that throws ends the process as it would anywhere else, after all others have been called. */
  #tell(name: string, event: AsyncEvent): void {
    try {
      this.#meta().emit(name, event);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
}

function isEvent(name: string | symbol): boolean {
  return name === 'event' || Object.hasOwn(subjects, name);
}
