import { setImmediate, setTimeout } from 'node:timers/promises';
import { abortError, RdmaError } from '../../verbs/errors.js';
import type { CompletionQueue } from '../../verbs/completion-queue.js';
import { peerLost } from '../wire/failures.js';
import type { Exchange } from '../wire/exchange.js';

/** Milliseconds for which a loop that polls keeps the thread to itself; then sockets and timers have their turn. */
const turnAfter = 20;
/** Milliseconds of looking in vain after which a loop that polls goes to sleep until something comes. */
const sleepAfter = 1;
/** Milliseconds of a sleep, after which it is looked whether there is still something to wait for. */
const longestSleep = 100;
/** Milliseconds between two reports of progress. */
const reportEvery = 250;
/** Milliseconds in which what is on its way may still come when the peer has gone. */
const grace = 1000;

export interface PaceOptions {
  cq: CompletionQueue;
  /** Sleep at once, without looking first. */
  events: boolean;
  /** Milliseconds without progress after which it fails. */
  stallTimeout: number;
  exchange: Exchange;
  signal: AbortSignal | undefined;
  /** What is waited for, for an error. */
  outstanding: () => string;
  /** Called now and then while it goes on. */
  onReport?: ((now: number) => void) | undefined;
}

/**
 * What a loop does between two looks at its completions. `found()` and `nothing()` return a promise only where the loop must stop
 * for a moment, so that it runs at full speed without awaiting anything.
 */
export class Pace {
  readonly #options: PaceOptions;
  #progress = performance.now();
  #turn = this.#progress;
  #report = this.#progress;
  #goneAt: number | undefined;
  /** When the loop must look again at the latest. */
  wakeAt = Infinity;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** The loop begins: what was before does not count as waiting. */
  begin(): void {
    this.#progress = performance.now();
  }

  /** There was something at that time. */
  found(now: number): Promise<void> | undefined {
    this.#progress = now;
    return now - this.#turn < turnAfter ? undefined : this.#giveTurn(now);
  }

  /** There was nothing. With `asleep: false` no completion tells when there will be: it is looked for again and again. */
  nothing(asleep = true): Promise<void> | undefined {
    const now = performance.now();
    const idle = now - this.#progress;
    if (!(asleep && this.#options.events) && idle < sleepAfter) return undefined;
    return asleep ? this.#sleep(now) : this.#stepAside(now);
  }

  async #giveTurn(now: number): Promise<void> {
    this.#check(now);
    await setImmediate();
    this.#turn = performance.now();
  }

  /** For what no completion tells of: the processor is given up for a moment, where somebody else may need it for that to come. */
  async #stepAside(now: number): Promise<void> {
    this.#check(now);
    const idle = now - this.#progress;
    if (idle < 2 * sleepAfter) await setImmediate();
    else await setTimeout(1);
    this.#turn = performance.now();
  }

  async #sleep(now: number): Promise<void> {
    this.#check(now);
    const timeoutMs = Math.max(Math.ceil(Math.min(longestSleep, this.wakeAt - now)), 0);
    await this.#options.cq.wait({ spinMicroseconds: 0, timeoutMs }).catch((error: unknown) => {
      if ((error as RdmaError).code !== 'ERR_RDMA_TIMEOUT') throw error;
    });
    this.#turn = performance.now();
  }

  #check(now: number): void {
    const { signal, exchange, stallTimeout, outstanding, onReport } = this.#options;
    if (signal?.aborted) throw abortError(signal);
    const idle = now - this.#progress;
    if (exchange.gone && now - (this.#goneAt ??= now) > grace) throw peerLost(exchange.peer);
    if (idle > stallTimeout) {
      throw new RdmaError(
        'ERR_RDMA_TIMEOUT',
        `nothing has come for ${stallTimeout} ms, with ${outstanding()} outstanding. Were both ends given the same size and number of ` +
          'iterations? Does the path carry the MTU, and UDP port 4791?',
      );
    }
    if (now - this.#report < reportEvery) return;
    this.#report = now;
    onReport?.(now);
  }
}
