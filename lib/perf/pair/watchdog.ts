import { RdmaError } from '../../verbs/errors.js';

/** Ends a wait that nothing else would end. */
export class Watchdog {
  readonly #timeout: number;
  readonly #outstanding: () => string;
  #last = performance.now();

  /**
   * @param timeout milliseconds without a completion
   * @param outstanding what is waited for, for the error
   */
  constructor(timeout: number, outstanding: () => string) {
    this.#timeout = timeout;
    this.#outstanding = outstanding;
  }

  /** A completion has come. */
  feed(now: number): void {
    this.#last = now;
  }

  /** @throws RdmaError `ERR_RDMA_TIMEOUT` */
  check(now: number): void {
    if (now - this.#last <= this.#timeout) return;
    throw new RdmaError(
      'ERR_RDMA_TIMEOUT',
      `no completion for ${this.#timeout} ms, with ${this.#outstanding()} outstanding. A completion was lost, or the device has stalled`,
    );
  }
}
