/** How long nothing is said, in milliseconds, to those who have not asked for it. */
const patience = 2000;

/** Lines on standard error: at once on a terminal or if asked for, elsewhere only when it takes long. */
export class Progress {
  readonly #eager: boolean;
  readonly #timer: NodeJS.Timeout | undefined;
  #held: string | undefined;
  #late = false;

  constructor(verbose: boolean) {
    this.#eager = verbose || process.stderr.isTTY;
    if (this.#eager) return;
    this.#timer = setTimeout(() => {
      this.#late = true;
      if (this.#held !== undefined) this.#write(this.#held);
    }, patience);
    this.#timer.unref();
  }

  readonly report = (text: string): void => {
    if (this.#eager || this.#late) this.#write(text);
    else this.#held = text;
  };

  /** What comes now is the command's. */
  done(): void {
    clearTimeout(this.#timer);
    this.#held = undefined;
  }

  #write(text: string): void {
    process.stderr.write(`node-rdma rxe: ${text}\n`);
  }
}
