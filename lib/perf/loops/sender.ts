import type { SendRing } from '../../ring/send-ring.js';
import { SendFlags } from '../../verbs/constants.js';
import { RdmaError } from '../../verbs/errors.js';
import type { Timeline } from '../peak.js';
import type { RequestWriter } from './requests.js';

/** Where requests of one queue pair go. */
export interface SenderFlow {
  ring: SendRing;
  write: RequestWriter;
}

export interface SenderOptions {
  /** Messages on each queue pair; Infinity until {@link Sender.stop}. */
  messages: number;
  /** Messages outstanding on each queue pair at the most. */
  window: number;
  /** Each so-many-th message makes a completion, and the last. Not above `window`. */
  signalEvery: number;
  timeline?: Timeline | undefined;
}

/** Descriptors that are written before they are posted with one call. */
const mostPerPost = 32;

/** Keeps a window of messages outstanding on each of several queue pairs. The identifiers of their requests are their places. */
export class Sender {
  readonly #flows: readonly SenderFlow[];
  readonly #options: SenderOptions;
  readonly #posted: Float64Array;
  readonly #completed: Float64Array;
  #target: number;
  /** Of all queue pairs together. */
  posted = 0;
  completed = 0;
  /** As `performance.now()` has it: of the first post, and of the last completion. */
  firstPost = NaN;
  lastCompletion = NaN;

  constructor(flows: readonly SenderFlow[], options: SenderOptions) {
    this.#flows = flows;
    this.#options = options;
    this.#posted = new Float64Array(flows.length);
    this.#completed = new Float64Array(flows.length);
    this.#target = options.messages;
  }

  get done(): boolean {
    return this.completed === this.#target * this.#flows.length;
  }

  get outstanding(): number {
    return this.posted - this.completed;
  }

  /** No more messages than are needed for each that was posted to have its completion. */
  stop(): void {
    const { signalEvery, messages } = this.#options;
    const most = this.#posted.reduce((a, b) => Math.max(a, b), 0);
    this.#target = Math.min(Math.ceil(most / signalEvery) * signalEvery, messages);
  }

  /** Posts some of what the windows have room for; returns how many. When it is none, they are full. */
  fill(): number {
    const { window, signalEvery, timeline } = this.#options;
    const before = this.posted;
    const target = this.#target;
    for (let i = 0; i < this.#flows.length; ++i) {
      const posted = this.#posted[i]!;
      const count = Math.min(window - (posted - this.#completed[i]!), target - posted, mostPerPost);
      if (count <= 0) continue;
      const { ring, write } = this.#flows[i]!;
      for (let k = 1; k <= count; ++k) {
        const number = posted + k;
        write(number % signalEvery === 0 || number === target ? SendFlags.SIGNALED : 0);
      }
      if (this.posted === 0) this.firstPost = performance.now();
      timeline?.post(count, performance.now());
      if (ring.post() !== count) throw new RdmaError('ERR_RDMA_QUEUE_FULL', 'the send queue is full');
      this.#posted[i] = posted + count;
      this.posted += count;
    }
    return this.posted - before;
  }

  /** A completion of the queue pair at a place. Returns how many messages it tells of. */
  complete(place: number, now: number): number {
    const before = this.#completed[place]!;
    const after = Math.min(before + this.#options.signalEvery, this.#posted[place]!);
    this.#completed[place] = after;
    this.completed += after - before;
    this.lastCompletion = now;
    this.#options.timeline?.complete(after - before, now);
    return after - before;
  }
}
