import type { WriteStream } from 'node:tty';

/** Milliseconds between two lines of progress where they stay: on no terminal. */
const lineInterval = 10_000;
/** Milliseconds between two states of the one line on a terminal. */
const redrawInterval = 200;

/** Shows how far a long piece of work is: one line that changes on a terminal, a line now and then elsewhere. */
export class BuildProgress {
  readonly #stream: Pick<WriteStream, 'write' | 'isTTY'>;
  readonly #start = Date.now();
  #shown = -Infinity;
  #pending = false;

  constructor(stream: Pick<WriteStream, 'write' | 'isTTY'>) {
    this.#stream = stream;
  }

  /** A step begins. */
  step(text: string): void {
    this.end();
    this.#stream.write(`${this.#elapsed()}  ${text}\n`);
    this.#shown = Date.now();
  }

  /** Of the step that lasts, this much is done: 0 to 1. */
  part(fraction: number): void {
    const interval = this.#stream.isTTY ? redrawInterval : lineInterval;
    if (fraction < 1 && Date.now() - this.#shown < interval) return;
    this.#shown = Date.now();
    const line = `${this.#elapsed()}  ${Math.floor(fraction * 100)} %`;
    this.#stream.write(this.#stream.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
    this.#pending = this.#stream.isTTY;
  }

  /** Leaves the cursor at the beginning of a line. */
  end(): void {
    if (this.#pending) this.#stream.write('\n');
    this.#pending = false;
  }

  #elapsed(): string {
    const seconds = Math.floor((Date.now() - this.#start) / 1000);
    return `${String(Math.floor(seconds / 60)).padStart(3)}:${String(seconds % 60).padStart(2, '0')}`;
  }
}
