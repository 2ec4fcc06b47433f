/** Calls back when nothing has happened for a time, and again after each such time. Does not keep the process alive. */
export class IdleTimer {
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  /** Milliseconds; 0 for none. */
  set(ms: number): void {
    clearInterval(this.#timer);
    this.#timer = ms > 0 ? setInterval(this.#onIdle, ms).unref() : undefined;
  }

  touch(): void {
    this.#timer?.refresh();
  }
}
