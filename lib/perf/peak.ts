/** When messages were posted, and when some of them were found to be complete, in milliseconds. */
export class Timeline {
  readonly #posted: Float64Array;
  readonly #completed: Float64Array;
  #posts = 0;
  #completions = 0;

  /** @param capacity messages, all queue pairs together */
  constructor(capacity: number) {
    this.#posted = new Float64Array(capacity);
    this.#completed = new Float64Array(capacity).fill(NaN);
  }

  post(count: number, now: number): void {
    this.#posted.fill(now, this.#posts, this.#posts + count);
    this.#posts += count;
  }

  /** A completion that tells of `count` messages. */
  complete(count: number, now: number): void {
    this.#completions += count;
    this.#completed[this.#completions - 1] = now;
  }

  /**
   * The highest rate of any run of messages, in messages a second: from the post of its first to the completion of its last, as
   * perftest has it. Null where nothing has completed.
   *
   * Looks for the run of the highest rate by Dinkelbach's method: with a rate assumed, one pass finds the run that beats it most; that
   * one's rate is the next assumption, until none beats it.
   */
  peak(): number | null {
    let best: number | null = null;
    for (let perMessage = Infinity; ;) {
      const run = this.#fastest(perMessage);
      if (run === undefined || run >= perMessage) return best;
      if (run <= 0) return null;
      perMessage = run;
      best = 1000 / perMessage;
    }
  }

  /** Milliseconds a message of the run that beats `perMessage` most; undefined where none does. */
  #fastest(perMessage: number): number | undefined {
    if (perMessage === Infinity) return this.#whole();
    let [least, found]: [number, number | undefined] = [-1e-9, undefined];
    let [latest, first] = [-Infinity, 0];
    for (let i = 0; i < this.#completions; ++i) {
      const start = this.#posted[i]! - perMessage * i;
      if (start > latest) [latest, first] = [start, i];
      const gain = this.#completed[i]! - perMessage * (i + 1) - latest;
      if (gain < least) [least, found] = [gain, this.#between(first, i)];
    }
    return found;
  }

  #whole(): number | undefined {
    return this.#completions === 0 ? undefined : this.#between(0, this.#completions - 1);
  }

  #between(first: number, last: number): number {
    return (this.#completed[last]! - this.#posted[first]!) / (last - first + 1);
  }
}
