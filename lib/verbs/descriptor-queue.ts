import { QueueCounters } from './layout.js';
import type { QueueLayout } from './native.js';

/** Receive or send descriptors of a queue pair in shared memory, and the place where the next one is written. */
export class DescriptorQueue {
  readonly memory: ArrayBuffer;
  readonly layout: QueueLayout;
  readonly #counters: Uint32Array;
  readonly #post: (first: number, count: number) => number;
  #next = 0;

  constructor(memory: ArrayBuffer, layout: QueueLayout, post: (first: number, count: number) => number) {
    this.memory = memory;
    this.layout = layout;
    this.#counters = new Uint32Array(memory, layout.counters, QueueCounters.size / 4);
    this.#post = post;
  }

  /** Requests that were posted and have not ended. */
  get outstanding(): number {
    const counters = this.#counters;
    return (counters[QueueCounters.posted / 4]! - counters[QueueCounters.ended / 4]!) >>> 0;
  }

  /** Requests that may be outstanding at a time. */
  get capacity(): number {
    return this.#counters[QueueCounters.capacity / 4]!;
  }

  /** Requests that can be posted now. */
  get free(): number {
    return this.capacity - this.outstanding;
  }

  /** The descriptor that is written `ahead` places after the next one. */
  place(ahead: number): number {
    return (this.#next + ahead) & (this.layout.descriptorCount - 1);
  }

  /** Posts the next `count` descriptors; fewer when the queue has no room. Returns how many. */
  post(count: number): number {
    const posted = this.#post(this.place(0), count);
    this.#next = this.place(posted);
    return posted;
  }
}
