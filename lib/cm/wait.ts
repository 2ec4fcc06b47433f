import { abortError } from '../verbs/errors.js';

/** How a wait ends, other than by what is waited for. */
export interface WaitPlan {
  signal?: AbortSignal | undefined;
  /** Milliseconds; without them there is no end of the time. */
  timeoutMs?: number | undefined;
  /** The error when the time is over. */
  late(this: void): Error;
  /** Runs when the time is over, or it was aborted, before the promise rejects. */
  givenUp(this: void): void;
  /** Keeps the process alive, and who waits, until the function that it returns is called. */
  hold(this: void): () => void;
}

/** Waits for an outcome that `begin` hands on, once, as soon as there is one; an Error rejects. */
export function waitFor<T>(
  { signal, timeoutMs, late, givenUp, hold }: WaitPlan,
  begin: (settle: (outcome: T | Error) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const release = hold();
    let settled = false;
    const settle = (outcome: T | Error) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      release();
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    };
    const giveUp = (error: Error) => {
      givenUp();
      settle(error);
    };
    const abort = () => giveUp(abortError(signal!));
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => giveUp(late()), timeoutMs);
    signal?.addEventListener('abort', abort);
    begin(settle);
  });
}
