import type { CompletionQueue } from '../verbs/completion-queue.js';
import type { WorkCompletion } from '../verbs/work-completion.js';
import { CompletionCounters, CompletionRecord } from '../verbs/layout.js';

// Copies, since the compiler looks up what is imported again at each use.
const SIZE = CompletionRecord.size;
const STATUS = CompletionRecord.status;
const OPCODE = CompletionRecord.opcode;
const FLAGS = CompletionRecord.flags;
const WORDS = SIZE / 4;
const BYTE_LENGTH = CompletionRecord.byteLength / 4;
const IMM_DATA = CompletionRecord.immData / 4;
const QP_NUM = CompletionRecord.qpNum / 4;

/**
 * Completions as records in shared memory: poll a batch, then read the fields that matter. A batch is valid until the
 * next poll of its queue, by whichever means. Of a failed completion only id, status and qpNum are valid.
 */
export class CompletionRing {
  readonly #queue: CompletionQueue;
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;

  constructor(queue: CompletionQueue) {
    this.#queue = queue;
    this.#words = new Uint32Array(queue.native.records, CompletionCounters.size);
    this.#bytes = new Uint8Array(queue.native.records, CompletionCounters.size);
  }

  /** Takes up to `limit` completions off the queue; returns how many. `ibv_poll_cq` */
  poll(limit = 0xffffffff): number {
    return this.#queue.fill(limit);
  }

  /** The low 32 bits of the request's identifier. */
  id(index: number): number {
    return this.#words[index * WORDS]!;
  }

  /** `enum ibv_wc_status`: 0 is success. */
  status(index: number): number {
    return this.#bytes[index * SIZE + STATUS]!;
  }

  /** `enum ibv_wc_opcode`: 128 and above are receives. */
  opcode(index: number): number {
    return this.#bytes[index * SIZE + OPCODE]!;
  }

  /** Flags of `CompletionFlags`. */
  flags(index: number): number {
    return this.#bytes[index * SIZE + FLAGS]!;
  }

  /** Bytes received or read. */
  byteLength(index: number): number {
    return this.#words[index * WORDS + BYTE_LENGTH]!;
  }

  /** Immediate data in host order, or the rkey that was invalidated. */
  immData(index: number): number {
    return this.#words[index * WORDS + IMM_DATA]!;
  }

  qpNum(index: number): number {
    return this.#words[index * WORDS + QP_NUM]!;
  }

  /** The whole completion as an object, with its error where it failed. */
  completion(index: number): WorkCompletion {
    return this.#queue.completionAt(index);
  }
}
