import type { CompletionChannel } from './completion-channel.js';
import { CompletionWaiter, type WaitOptions } from './completion-waiter.js';
import type { Context } from './context.js';
import { explain, explaining, RdmaError } from './errors.js';
import { CompletionCounters, CompletionRecord } from './layout.js';
import { pinAdvice } from './memlock.js';
import { native, type NativeCompletionQueue } from './native.js';
import { Resource } from './resource.js';
import { integer } from './validate.js';
import { CompletionReader, type WorkCompletion } from './work-completion.js';

export interface CompletionQueueOptions {
  /** Entries, from 1 to the device's `maxCqe`; 256 by default. Room for every outstanding request of its queue pairs. */
  cqe?: number;
  /** Completion vector, from 0; 0 by default. */
  compVector?: number;
  /** Through which it wakes those who wait; by default one that the context has. With null it can only be polled. */
  channel?: CompletionChannel | null;
}

// Offsets in words. Copies, since the compiler looks up what is imported again at each use.
const OUTSTANDING = CompletionCounters.outstanding / 4;
const ENTRIES = CompletionCounters.entries / 4;
const LIMIT = CompletionCounters.limit / 4;
const FILLED = CompletionCounters.filled / 4;

const DEFAULT_LIMIT = 16;
const MOST_ENTRIES = 2 ** 31 - 1;

/** How {@link CompletionQueue.completions} waits and what it gives. */
export interface CompletionsOptions extends WaitOptions {
  /** Completions in a batch at the most; 16 by default. */
  limit?: number;
}

/** How {@link CompletionQueue.wait} waits. */
export interface CompletionWaitOptions extends WaitOptions {
  /** Milliseconds after which it gives up; by default it does not. */
  timeoutMs?: number;
}

/**
 * A completion queue (`struct ibv_cq`). One consumer takes its completions: by polling, by iterating over it, or by
 * waiting and polling in turn.
 */
export class CompletionQueue extends Resource {
  readonly context: Context;
  /** @internal */
  readonly native: NativeCompletionQueue;
  readonly #reader: CompletionReader;
  readonly #counters: Uint32Array;
  readonly #poll: () => void;
  readonly #waiter: CompletionWaiter;

  /** @internal */
  constructor(
    made: NativeCompletionQueue,
    context: Context,
    channel?: CompletionChannel | null,
    owner?: Resource,
  ) {
    super(made, [context, ...(channel ? [channel] : []), ...(owner === undefined ? [] : [owner])]);
    this.native = made;
    this.context = context;
    this.#waiter = new CompletionWaiter(this, made, channel !== null);
    this.#reader = new CompletionReader(made.records);
    this.#counters = new Uint32Array(made.records, 0, CompletionCounters.size / 4);
    this.#poll = made.poll;
  }

  get label(): string {
    return `completion queue ${this.native.handle} of ${this.context.device.name}`;
  }

  /** Entries that the device has granted: at least as many as were asked for. {@link resize} changes them. */
  get cqe(): number {
    return this.#counters[ENTRIES]!;
  }

  /** The most completions that one poll returns; resizing does not change it. */
  get batch(): number {
    return (this.native.records.byteLength - CompletionCounters.size) / CompletionRecord.size;
  }

  /**
   * Entries that no outstanding request may yet take. Posting stops when there are none, since an overflow would lose
   * completions; each request that is posted takes one until it has ended, whether it is signalled or not.
   */
  get room(): number {
    return Math.max(this.cqe - this.#counters[OUTSTANDING]!, 0);
  }

  /**
   * Takes up to `limit` completions off the queue, none when it is empty. `ibv_poll_cq`
   *
   * Completions of queue pairs that are closed are dropped.
   */
  poll(limit = DEFAULT_LIMIT): WorkCompletion[] {
    integer('limit', limit, 1, MOST_ENTRIES);
    const count = this.fill(limit);
    const completions: WorkCompletion[] = [];
    for (let i = 0; i < count; ++i) completions.push(this.#reader.read(i));
    return completions;
  }

  /**
   * Resolves when there are completions to poll, by {@link poll} or in a ring; of failed queue pairs, too. It looks, spins
   * for a moment, asks for an event, looks again, and sleeps until the event comes, so none is missed.
   *
   * One wait or iteration at a time. The process lives on while it waits.
   *
   * @throws RdmaError `ERR_RDMA_TIMEOUT`; `ERR_RDMA_BUSY` where another one waits; `ERR_RDMA_NO_CHANNEL`;
   * `ERR_RDMA_CLOSED` when the queue is closed meanwhile; `ERR_RDMA_CQ_FAILED`, `ERR_RDMA_DEVICE_FATAL`. AbortError
   */
  async wait(options: CompletionWaitOptions = {}): Promise<void> {
    const plan = this.#waiter.plan(options, options.timeoutMs);
    if (!(await this.#waiter.ready(plan))) {
      throw new RdmaError('ERR_RDMA_CLOSED', `${this.label} is closed`);
    }
  }

  /**
   * Batches of completions as they come, each of at least one, until the queue is closed; waits as {@link wait} does.
   * Leaving the loop leaves what is not taken in the queue.
   *
   * @throws as {@link wait}, apart from `ERR_RDMA_CLOSED` and `ERR_RDMA_TIMEOUT`
   */
  completions(options: CompletionsOptions = {}): AsyncGenerator<WorkCompletion[], void, undefined> {
    const plan = this.#waiter.plan(options);
    const { limit = DEFAULT_LIMIT } = options;
    integer('limit', limit, 1, MOST_ENTRIES);
    return this.#waiter.batches(plan, () => this.poll(limit));
  }

  [Symbol.asyncIterator](): AsyncGenerator<WorkCompletion[], void, undefined> {
    return this.completions();
  }

  /** Waiting keeps the process alive: so it is at first. */
  ref(): this {
    this.#waiter.keepsAlive = true;
    return this;
  }

  /** Lets the process end although somebody waits. */
  unref(): this {
    this.#waiter.keepsAlive = false;
    return this;
  }

  /**
   * Asks for an event at the next completion, or at the next one that its sender has marked as solicited or that failed.
   * `ibv_req_notify_cq`. {@link wait} and {@link completions} do it by themselves; do it ahead only to save them the call.
   * An event for all completions includes the solicited ones: asking for less after more changes nothing.
   *
   * @throws RdmaError `ERR_RDMA_NO_CHANNEL` for a queue without a channel
   */
  reqNotify({ solicitedOnly = false }: { solicitedOnly?: boolean } = {}): void {
    explaining(
      this.#subject(),
      () => '',
      () => this.#waiter.arm(solicitedOnly),
    );
  }

  /**
   * Changes the number of entries, from 1 to the device's `maxCqe`, on another thread. The device may grant more: see
   * {@link cqe}. Completions in the queue stay. `ibv_resize_cq`
   *
   * @throws RangeError; RdmaError `ERR_RDMA_LIMIT`; `ERR_RDMA_BUSY` for fewer than outstanding requests may take, or
   * while it is being resized; `ERR_RDMA_UNSUPPORTED`
   */
  async resize(cqe: number): Promise<void> {
    this.#checkSize(cqe);
    try {
      await this.native.resize(cqe);
    } catch (error) {
      throw this.#resizeFailure(error, cqe);
    }
  }

  /** {@link resize} on this thread. */
  resizeSync(cqe: number): void {
    this.#checkSize(cqe);
    try {
      this.native.resizeSync(cqe);
    } catch (error) {
      throw this.#resizeFailure(error, cqe);
    }
  }

  /**
   * Lets the device gather completions before it makes an event: `count` of them, or as many as come in `periodUs`
   * microseconds; 0 of either for no limit. `ibv_modify_cq`. Arguments checked, not run on a NIC: rxe has no moderation.
   *
   * @throws RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  moderate({ count, periodUs }: { count: number; periodUs: number }): void {
    integer('count', count, 0, 2 ** 16 - 1);
    integer('periodUs', periodUs, 0, 2 ** 16 - 1);
    explaining(
      this.#subject(),
      () => 'See cqModMaxCount and cqModMaxPeriod of the device attributes',
      () => native().modifyCq(this.native, count, periodUs),
    );
  }

  /** @internal No completion can come any more. */
  fail(error: Error): void {
    this.#waiter.fail(error);
  }

  /** @internal */
  override isSubject(kind: string, number: number): boolean {
    return kind === 'completionQueue' && number === this.native.handle;
  }

  protected override onClosed(): void {
    this.#waiter.closed();
  }

  /** @internal Fills up to `limit` records; returns how many. */
  fill(limit: number): number {
    const counters = this.#counters;
    counters[LIMIT] = limit;
    this.#poll();
    return counters[FILLED]!;
  }

  /** @internal The completion at a place of the last batch. */
  completionAt(index: number): WorkCompletion {
    return this.#reader.read(index);
  }

  /** @internal A queue pair begins a new life: its earlier failure is no cause of later flushes. */
  forgetFailure(qpNum: number): void {
    this.#reader.forget(qpNum);
  }

  #checkSize(cqe: number): void {
    integer('cqe', cqe, 1, MOST_ENTRIES);
    checkEntries(cqe, this.context);
    const taken = this.#counters[OUTSTANDING]!;
    if (cqe < taken) {
      throw new RdmaError(
        'ERR_RDMA_BUSY',
        `cannot resize ${this.label} to ${cqe}: outstanding requests may take ${taken} entries. Poll their completions first.`,
        this.#subject(),
      );
    }
  }

  #resizeFailure(error: unknown, cqe: number): unknown {
    if (error instanceof RdmaError && error.code === 'EBUSY') {
      return new RdmaError('ERR_RDMA_BUSY', `${this.label} is being resized: await that first`, {
        ...this.#subject(),
        cause: error,
      });
    }
    return explain(error, this.#subject(), (errno) => pinAdvice(errno, cqe * 64));
  }

  #subject() {
    return { device: this.context.device.name };
  }
}

/** @internal */
export function checkEntries(cqe: number, context: Context): void {
  const { maxCqe } = context.queryDevice();
  if (cqe <= maxCqe) return;
  throw new RdmaError(
    'ERR_RDMA_LIMIT',
    `cqe ${cqe} is ${cqe - maxCqe} above the ${maxCqe} of ${context.device.name}`,
    { device: context.device.name },
  );
}
