import type { ReceiveRing } from '../../ring/receive-ring.js';
import { RdmaError } from '../../verbs/errors.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';

/** Where messages of one queue pair go. */
export interface ReceiverFlow {
  receives: ReceiveRing;
  mr: MemoryRegion;
  /** Bytes from the start of the region. */
  receiveAt: number;
}

export interface ReceiverOptions {
  /** Messages that will come on each queue pair; Infinity where nobody knows. */
  messages: number;
  /** Receives that are posted on each queue pair at the most. */
  depth: number;
  /** Bytes of each receive. */
  length: number;
}

/** Receives that are posted with one call. */
const mostPerPost = 32;

/** Keeps receives posted on each of several queue pairs, and counts what comes. Their identifiers are their places. */
export class Receiver {
  readonly #flows: readonly ReceiverFlow[];
  readonly #options: ReceiverOptions;
  readonly #posted: Float64Array;
  readonly #received: Float64Array;
  /** Of all queue pairs together. */
  received = 0;
  bytes = 0;
  /** As `performance.now()` has it. */
  first = NaN;
  last = NaN;

  constructor(flows: readonly ReceiverFlow[], options: ReceiverOptions) {
    this.#flows = flows;
    this.#options = options;
    this.#posted = new Float64Array(flows.length);
    this.#received = new Float64Array(flows.length);
  }

  get done(): boolean {
    return this.received === this.expected;
  }

  get expected(): number {
    return this.#options.messages * this.#flows.length;
  }

  /** Posts as many receives as there may be. */
  fill(): void {
    const { messages, depth, length } = this.#options;
    for (let i = 0; i < this.#flows.length; ++i) {
      const { receives, mr, receiveAt } = this.#flows[i]!;
      for (;;) {
        const posted = this.#posted[i]!;
        const count = Math.min(depth - (posted - this.#received[i]!), messages - posted, mostPerPost);
        if (count <= 0) break;
        for (let k = 0; k < count; ++k) receives.receive(i, mr, receiveAt, length);
        if (receives.post() !== count)
          throw new RdmaError('ERR_RDMA_QUEUE_FULL', 'the receive queue is full');
        this.#posted[i] = posted + count;
      }
    }
  }

  /** A message of so many bytes has come to the queue pair at a place. */
  receive(place: number, bytes: number, now: number): void {
    this.#received[place]! += 1;
    this.received += 1;
    this.bytes += bytes;
    if (Number.isNaN(this.first)) this.first = now;
    this.last = now;
  }
}
