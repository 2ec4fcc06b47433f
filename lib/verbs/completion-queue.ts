import type { Context } from './context.js';
import { CompletionCounters, CompletionRecord } from './layout.js';
import type { NativeCompletionQueue } from './native.js';
import { Resource } from './resource.js';
import { integer } from './validate.js';
import { CompletionReader, type WorkCompletion } from './work-completion.js';

export interface CompletionQueueOptions {
  /** Entries, from 1 to the device's `maxCqe`; 256 by default. Room for every outstanding request of its queue pairs. */
  cqe?: number;
  /** Completion vector, from 0; 0 by default. */
  compVector?: number;
}

/** A completion queue (`struct ibv_cq`). One consumer polls it. */
export class CompletionQueue extends Resource {
  readonly context: Context;
  /** Entries that the device has granted: at least as many as were asked for. */
  readonly cqe: number;
  /** @internal */
  readonly native: NativeCompletionQueue;
  readonly #reader: CompletionReader;
  readonly #counters: Uint32Array;

  /** @internal */
  constructor(native: NativeCompletionQueue, context: Context) {
    super(native, [context]);
    this.native = native;
    this.context = context;
    this.cqe = native.cqe;
    this.#reader = new CompletionReader(native.records);
    this.#counters = new Uint32Array(native.records, 0, CompletionCounters.size / 4);
  }

  get label(): string {
    return `completion queue ${this.native.handle} of ${this.context.device.name}`;
  }

  /** The most completions that one poll returns. */
  get batch(): number {
    return (this.native.records.byteLength - CompletionCounters.size) / CompletionRecord.size;
  }

  /**
   * Entries that no outstanding request may yet take. Posting stops when there are none, since an overflow would lose
   * completions; each request that is posted takes one until it has ended, whether it is signalled or not.
   */
  get room(): number {
    return Math.max(this.cqe - this.#counters[CompletionCounters.outstanding / 4]!, 0);
  }

  /**
   * Takes up to `limit` completions off the queue, none when it is empty. `ibv_poll_cq`
   *
   * Completions of queue pairs that are closed are dropped.
   */
  poll(limit = 16): WorkCompletion[] {
    integer('limit', limit, 1, 2 ** 31 - 1);
    const count = this.native.poll(limit);
    const completions: WorkCompletion[] = [];
    for (let i = 0; i < count; ++i) completions.push(this.#reader.read(i));
    return completions;
  }

  /** @internal The completion at a place of the last batch. */
  completionAt(index: number): WorkCompletion {
    return this.#reader.read(index);
  }

  /** @internal A queue pair begins a new life: its earlier failure is no cause of later flushes. */
  forgetFailure(qpNum: number): void {
    this.#reader.forget(qpNum);
  }
}
