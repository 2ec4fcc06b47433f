import { setImmediate } from 'node:timers/promises';
import { abortError, RdmaError } from './errors.js';
import type { NativeCompletionQueue } from './native.js';
import type { Resource } from './resource.js';
import { completionRoutes } from './routes.js';
import { abortSignal, integer, options as checkOptions } from './validate.js';

/** How to wait for completions. */
export interface WaitOptions {
  /** Ends the wait with an AbortError whose cause is the signal's reason. */
  signal?: AbortSignal;
  /**
   * Microseconds, up to 10 000, to look for a completion before sleeping, while this thread does nothing else; 10 by
   * default, about what sleeping and waking cost.
   */
  spinMicroseconds?: number;
  /**
   * Sleeps until a message comes that its sender has marked as solicited, or a request fails; false by default. What is
   * in the queue before is found all the same.
   */
  solicitedOnly?: boolean;
}

const DEFAULT_SPIN = 10;
const MOST_SPIN = 10_000;
/** So many times, or milliseconds, completions may be found without sleeping before timers and other descriptors have their turn. */
const FINDS_PER_TURN = 32;
const TURN_MS = 1;

/** Queues that somebody waits for: nothing else may hold them, but they will go on. */
const awaited = new Set<Resource>();

interface Plan {
  signal: AbortSignal | undefined;
  spin: number;
  solicitedOnly: boolean;
  /** As `performance.now()` has it. */
  deadline: number;
}

/** Waits for the completions of one queue: look, spin, arm, look again, sleep until the channel tells of an event. */
export class CompletionWaiter {
  readonly #queue: Resource;
  readonly #native: NativeCompletionQueue;
  readonly #hasChannel: boolean;
  /** What will make an event, if none has come since. */
  #armed: 'nothing' | 'solicited' | 'all' = 'nothing';
  #consumed = false;
  #finds = 0;
  /** When the first of them was. */
  #firstFind = 0;
  #failure: Error | undefined;
  #wake: ((error?: Error) => void) | undefined;
  #keepsAlive = true;
  #holds = false;

  constructor(queue: Resource, native: NativeCompletionQueue, hasChannel: boolean) {
    this.#queue = queue;
    this.#native = native;
    this.#hasChannel = hasChannel;
    if (hasChannel) completionRoutes.add(native.serial, this);
  }

  arm(solicitedOnly: boolean): void {
    this.#requireChannel();
    this.#native.reqNotify(solicitedOnly);
    if (this.#armed !== 'all') this.#armed = solicitedOnly ? 'solicited' : 'all';
  }

  /** @throws TypeError, RangeError for options that do not fit; RdmaError `ERR_RDMA_NO_CHANNEL` */
  plan(options: WaitOptions, timeoutMs = Infinity): Plan {
    checkOptions('options', options);
    const { signal, spinMicroseconds = DEFAULT_SPIN, solicitedOnly = false } = options;
    if (signal !== undefined) abortSignal('signal', signal);
    integer('spinMicroseconds', spinMicroseconds, 0, MOST_SPIN);
    if (timeoutMs !== Infinity) integer('timeoutMs', timeoutMs, 0, 2 ** 31 - 1);
    this.#requireChannel();
    const deadline = timeoutMs === Infinity ? Infinity : performance.now() + timeoutMs;
    return { signal, spin: spinMicroseconds, solicitedOnly, deadline };
  }

  /** True when a poll will find a completion; false when the queue was closed meanwhile. */
  async ready(plan: Plan): Promise<boolean> {
    this.#claim();
    try {
      return await this.#untilReady(plan);
    } finally {
      this.#consumed = false;
    }
  }

  /** What `poll` gives, again and again, until the queue is closed. */
  async *batches<T>(plan: Plan, poll: () => T[]): AsyncGenerator<T[], void, undefined> {
    this.#claim();
    try {
      while (await this.#untilReady(plan)) {
        const batch = poll();
        if (batch.length > 0) yield batch;
      }
    } finally {
      this.#consumed = false;
    }
  }

  /** Whether the process lives on while somebody waits. */
  set keepsAlive(keeps: boolean) {
    this.#keepsAlive = keeps;
    if (this.#wake !== undefined) this.#hold(keeps);
  }

  notified(errno: number): void {
    this.#armed = 'nothing';
    if (errno === 0) this.#wake?.();
    else this.fail(RdmaError.fromErrno('ibv_get_cq_event', errno, {}, 'Its device may be gone'));
  }

  /** No completion can come any more: who waits, now or later, is told so. */
  fail(error: Error): void {
    this.#failure = error;
    this.#wake?.(error);
  }

  closed(): void {
    this.#wake?.();
  }

  async #untilReady(plan: Plan): Promise<boolean> {
    for (let { spin } = plan; ; spin = 0) {
      if (plan.signal?.aborted) throw abortError(plan.signal);
      if (this.#queue.closed) return false;
      try {
        if (this.#look(spin)) break;
        if (this.#failure) throw this.#failure;
        // Once it is armed, a completion that comes after a look has found none makes an event.
        if (!this.#isArmed(plan.solicitedOnly)) {
          this.arm(plan.solicitedOnly);
          if (this.#look(0)) break;
        }
      } catch (error) {
        if ((error as RdmaError).code === 'ERR_RDMA_CLOSED') return false;
        throw error;
      }
      await this.#sleep(plan);
    }
    if (++this.#finds === 1) {
      this.#firstFind = performance.now();
    } else if (this.#finds >= FINDS_PER_TURN || performance.now() - this.#firstFind >= TURN_MS) {
      this.#finds = 0;
      await setImmediate();
    }
    return !this.#queue.closed;
  }

  #look(spin: number): boolean {
    return this.#native.ready(spin);
  }

  #isArmed(solicitedOnly: boolean): boolean {
    return this.#armed === 'all' || (solicitedOnly && this.#armed === 'solicited');
  }

  #sleep({ signal, deadline }: Plan): Promise<void> {
    this.#finds = 0;
    return new Promise((resolve, reject) => {
      const abort = () => wake(abortError(signal!));
      const timer =
        deadline === Infinity
          ? undefined
          : setTimeout(() => wake(this.#timeout()), Math.max(deadline - performance.now(), 0));
      const wake = (error?: Error) => {
        this.#wake = undefined;
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        awaited.delete(this.#queue);
        this.#hold(false);
        if (error) reject(error);
        else resolve();
      };
      signal?.addEventListener('abort', abort);
      awaited.add(this.#queue);
      this.#hold(this.#keepsAlive);
      this.#wake = wake;
    });
  }

  #hold(holds: boolean): void {
    if (holds === this.#holds) return;
    this.#holds = holds;
    if (holds) this.#native.ref();
    else this.#native.unref();
  }

  #timeout(): RdmaError {
    return new RdmaError('ERR_RDMA_TIMEOUT', `no completion came to ${this.#queue.label} in time`, {
      syscall: 'ibv_get_cq_event',
    });
  }

  #claim(): void {
    if (this.#consumed) {
      throw new RdmaError(
        'ERR_RDMA_BUSY',
        `${this.#queue.label} is waited for already: completions go to one consumer. End the other wait or iteration ` +
          'first, or give each consumer a completion queue of its own.',
      );
    }
    this.#consumed = true;
  }

  #requireChannel(): void {
    if (this.#hasChannel) return;
    throw new RdmaError(
      'ERR_RDMA_NO_CHANNEL',
      `${this.#queue.label} was created with channel: null, so nothing tells when a completion comes. Poll it, or ` +
        'create it with a completion channel (as it is without that option).',
    );
  }
}
