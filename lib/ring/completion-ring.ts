import type { CompletionQueue } from '../verbs/completion-queue.js';
import type { WorkCompletion } from '../verbs/work-completion.js';
import { CompletionCounters, CompletionRecord } from '../verbs/layout.js';

const WORDS = CompletionRecord.size / 4;

/**
 * Completions as records in shared memory: poll a batch, then read the fields that matter. A batch is valid until the
 * next poll of its queue, by whichever means. Of a failed completion only id, status and qpNum are valid.
 */
export class CompletionRing {
  readonly #queue: CompletionQueue;
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;
  readonly #poll: (limit: number) => number;

  constructor(queue: CompletionQueue) {
    this.#queue = queue;
    this.#words = new Uint32Array(queue.native.records, CompletionCounters.size);
    this.#bytes = new Uint8Array(queue.native.records, CompletionCounters.size);
    this.#poll = queue.native.poll;
  }

  /** Takes up to `limit` completions off the queue; returns how many. `ibv_poll_cq` */
  poll(limit = 0xffffffff): number {
    return this.#poll(limit);
  }

  /** The low 32 bits of the request's identifier. */
  id(index: number): number {
    return this.#words[index * WORDS]!;
  }

  /** `enum ibv_wc_status`: 0 is success. */
  status(index: number): number {
    return this.#bytes[index * CompletionRecord.size + CompletionRecord.status]!;
  }

  /** `enum ibv_wc_opcode`: 128 and above are receives. */
  opcode(index: number): number {
    return this.#bytes[index * CompletionRecord.size + CompletionRecord.opcode]!;
  }

  /** Flags of `CompletionFlags`. */
  flags(index: number): number {
    return this.#bytes[index * CompletionRecord.size + CompletionRecord.flags]!;
  }

  /** Bytes received or read. */
  byteLength(index: number): number {
    return this.#words[index * WORDS + CompletionRecord.byteLength / 4]!;
  }

  /** Immediate data in host order, or the rkey that was invalidated. */
  immData(index: number): number {
    return this.#words[index * WORDS + CompletionRecord.immData / 4]!;
  }

  qpNum(index: number): number {
    return this.#words[index * WORDS + CompletionRecord.qpNum / 4]!;
  }

  /** The whole completion as an object, with its error where it failed. */
  completion(index: number): WorkCompletion {
    return this.#queue.completionAt(index);
  }
}
