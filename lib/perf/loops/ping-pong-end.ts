import type { CompletionRing } from '../../ring/completion-ring.js';
import type { ReceiveRing } from '../../ring/receive-ring.js';
import type { SendRing } from '../../ring/send-ring.js';
import { SendFlags } from '../../verbs/constants.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { RequestWriter } from './requests.js';

/** `enum ibv_wc_opcode`: receives have this bit. */
export const RECEIVE = 128;

export interface PingPongOptions {
  sends: SendRing;
  /** Writes the message into `sends`. */
  write: RequestWriter;
  receives: ReceiveRing;
  completions: CompletionRing;
  mr: MemoryRegion;
  /** Where messages come to, in bytes from the start of the region. */
  receiveAt: number;
  /** Bytes of each receive. */
  receiveLength: number;
  /** Bytes of a message, and the name of the end, for errors. */
  size: number;
  name: string;
}

/** Receives that are posted with one call. */
const mostPerPost = 32;

/** One end of a game of ping-pong: each message that it sends makes a completion. */
export class PingPongEnd {
  readonly #options: PingPongOptions;
  /** Messages that are on their way. */
  sending = 0;
  /** Receives that wait for a message. */
  receiving = 0;
  /** Messages that have come. */
  received = 0;

  constructor(options: PingPongOptions) {
    this.#options = options;
  }

  get outstanding(): string {
    const { size, name } = this.#options;
    return `${this.sending} sends and ${this.receiving} receives of ${size} bytes at ${name}`;
  }

  receive(count: number): void {
    const { receives, mr, receiveAt, receiveLength } = this.#options;
    for (let left = count; left > 0; left -= mostPerPost) {
      for (let i = Math.min(left, mostPerPost); i > 0; --i) receives.receive(0, mr, receiveAt, receiveLength);
      this.receiving += receives.post();
    }
  }

  send(): void {
    const { sends, write } = this.#options;
    write(SendFlags.SIGNALED);
    this.sending += sends.post();
  }

  /** @returns how many completions there were. @throws WorkCompletionError */
  poll(): number {
    const { completions } = this.#options;
    const count = completions.poll();
    for (let i = 0; i < count; ++i) {
      if (completions.status(i) !== 0) throw completions.completion(i).error!;
      if ((completions.opcode(i) & RECEIVE) === 0) {
        --this.sending;
      } else {
        --this.receiving;
        ++this.received;
      }
    }
    return count;
  }
}
