import { QueueCounters } from './layout.js';
import type { QueueLayout } from './native.js';

/** The shared memory of one object's queues. A queue pair's two use the same views of it. */
export class QueueMemory {
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly view: DataView;

  constructor(memory: ArrayBuffer) {
    this.words = new Uint32Array(memory);
    this.bytes = new Uint8Array(memory);
    this.view = new DataView(memory);
  }
}

/** Receive or send descriptors of a queue pair in shared memory, and the place where the next one is written. */
export class DescriptorQueue {
  readonly memory: QueueMemory;
  readonly layout: QueueLayout;
  readonly #words: Uint32Array;
  readonly #mask: number;
  readonly #post: () => void;
  /** Where its counters lie, in words. */
  readonly #posted: number;
  readonly #ended: number;
  readonly #capacity: number;
  readonly #wanted: number;

  constructor(memory: QueueMemory, layout: QueueLayout, post: () => void) {
    this.memory = memory;
    this.layout = layout;
    this.#words = memory.words;
    this.#mask = layout.descriptorCount - 1;
    this.#post = post;
    const { counters } = layout;
    this.#posted = (counters + QueueCounters.posted) / 4;
    this.#ended = (counters + QueueCounters.ended) / 4;
    this.#capacity = (counters + QueueCounters.capacity) / 4;
    this.#wanted = (counters + QueueCounters.wanted) / 4;
  }

  /** Requests that were posted and have not ended. */
  get outstanding(): number {
    const words = this.#words;
    return (words[this.#posted]! - words[this.#ended]!) >>> 0;
  }

  /** Requests that may be outstanding at a time. */
  get capacity(): number {
    return this.#words[this.#capacity]!;
  }

  /** Requests that can be posted now. */
  get free(): number {
    return this.capacity - this.outstanding;
  }

  /** The descriptor that is written `ahead` places after the next one. */
  place(ahead: number): number {
    return (this.#words[this.#posted]! + ahead) & this.#mask;
  }

  /** Posts the next `count` descriptors; fewer when the queue has no room. Returns how many. */
  post(count: number): number {
    const words = this.#words;
    const posted = this.#posted;
    const before = words[posted]!;
    words[this.#wanted] = count;
    this.#post();
    return (words[posted]! - before) >>> 0;
  }
}
