import type { DescriptorQueue } from '../verbs/descriptor-queue.js';
import { RdmaError } from '../verbs/errors.js';
import { ScatterGatherElement } from '../verbs/layout.js';

const TWO_32 = 2 ** 32;
// Offsets in words. Copies, since the compiler looks up what is imported again at each use.
const MR = ScatterGatherElement.mr / 4;
const LENGTH = ScatterGatherElement.length / 4;
const OFFSET = ScatterGatherElement.offset / 4;

/** What rings of send and of receive descriptors share: a place to write, room to count, one call to post. */
export abstract class DescriptorRing {
  protected readonly queue: DescriptorQueue;
  protected readonly words: Uint32Array;
  readonly #base: number;
  readonly #descriptorWords: number;
  readonly #capacity: number;
  #written = 0;

  protected constructor(queue: DescriptorQueue, descriptorSize: number) {
    this.queue = queue;
    this.words = queue.memory.words;
    this.#base = queue.layout.descriptors / 4;
    this.#descriptorWords = descriptorSize / 4;
    this.#capacity = queue.layout.descriptorCount;
  }

  /** Descriptors that can be written before they must be posted. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Requests that the queue has room for, apart from those written and not posted. */
  get free(): number {
    return this.queue.free - this.#written;
  }

  /** Descriptors that are written and not posted. */
  get written(): number {
    return this.#written;
  }

  /**
   * Posts what is written. `ibv_post_send`, `ibv_post_recv`
   *
   * @returns how many were posted; fewer than written when the queue has no room, and then the rest stays written for the
   * next call
   * @throws RdmaError `ERR_RDMA_INVALID_DESCRIPTOR`, `ERR_RDMA_INVALID_STATE` (nothing is posted, and what is written is
   * dropped), or as the verbs function fails, with `posted`
   */
  post(): number {
    if (this.#written === 0) return 0;
    try {
      const posted = this.queue.post(this.#written);
      this.#written -= posted;
      return posted;
    } catch (error) {
      this.#written = 0;
      throw error;
    }
  }

  /** Starts the next descriptor; returns where it lies, in words. */
  protected begin(): number {
    if (this.#written >= this.#capacity) {
      throw new RdmaError(
        'ERR_RDMA_QUEUE_FULL',
        `${this.#written} descriptors are written, as many as there are: post() them first`,
      );
    }
    return this.#base + this.queue.place(this.#written++) * this.#descriptorWords;
  }

  /** Takes the descriptor back that was begun last. */
  protected abandon(): void {
    --this.#written;
  }

  /** Writes the one element of a descriptor at `word`. */
  protected element(word: number, mr: number, offset: number, length: number): void {
    const words = this.words;
    words[word + MR] = mr;
    words[word + LENGTH] = length;
    if (offset >>> 0 === offset && length >>> 0 === length) {
      words[word + OFFSET] = offset;
      words[word + OFFSET + 1] = 0;
      return;
    }
    // What is no offset or length (negative, fractional, NaN) must not turn into one by losing bits on the way.
    const fits = Number.isSafeInteger(offset) && offset >= 0 && length >>> 0 === length;
    words[word + OFFSET] = fits ? offset : 0xffffffff;
    words[word + OFFSET + 1] = fits ? offset / TWO_32 : 0xffffffff;
  }
}
