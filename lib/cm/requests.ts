import { RdmaError } from '../verbs/errors.js';
import type { CmId } from './id.js';

/** Connection requests of one listener that nobody has taken yet, and those who wait for one. */
export class RequestQueue {
  readonly #queued: CmId[] = [];
  readonly #waiting: ((outcome: CmId | Error | undefined) => void)[] = [];
  #end: { error: Error | undefined } | undefined;
  #limit = 0;

  /** Requests beyond so many are rejected. */
  set limit(backlog: number) {
    this.#limit = backlog;
  }

  /** False where it is full: nobody takes them. */
  push(request: CmId): boolean {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting(request);
      return true;
    }
    if (this.#queued.length >= this.#limit) return false;
    this.#queued.push(request);
    return true;
  }

  /** A request, an error, or nothing at the end. The second result takes the wait back. */
  take(settle: (outcome: CmId | Error | undefined) => void): () => void {
    const next = this.#queued.find((request) => !request.closed);
    if (next !== undefined) {
      this.#queued.splice(0, this.#queued.indexOf(next) + 1);
      settle(next);
      return () => undefined;
    }
    if (this.#end !== undefined) {
      settle(this.#end.error);
      return () => undefined;
    }
    this.#waiting.push(settle);
    return () => {
      const at = this.#waiting.indexOf(settle);
      if (at >= 0) this.#waiting.splice(at, 1);
    };
  }

  /** No more come. Those that were not taken are destroyed, which tells their peers. */
  end(error?: Error): void {
    this.#end ??= { error };
    for (const request of this.#queued.splice(0)) request.close({ cascade: true });
    for (const settle of this.#waiting.splice(0)) settle(error);
  }
}

export function listenerClosed(label: string): RdmaError {
  return new RdmaError('ERR_RDMA_CLOSED', `${label} is closed`);
}
