import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import {
  percentile,
  quantilePlaces,
  Spread,
  summarize,
  summaryOf,
  type Quantile,
  type Summary,
} from './statistics.js';

/** Takes samples in microseconds. */
export interface Samples {
  readonly count: number;
  add(microseconds: number): void;
  summary(): Summary;
  distribution(): Quantile[];
  /** Each one, as they came; undefined where they are too many. */
  list(): number[] | undefined;
}

/** So many samples are kept each by itself. */
const mostKept = 1e6;

/** @param expected how many will come; Infinity where time decides */
export function samplesFor(expected: number): Samples {
  return expected <= mostKept ? new SampleList(expected) : new SampleHistogram();
}

/** Keeps each sample. */
export class SampleList implements Samples {
  readonly #values: Float64Array;
  #count = 0;

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity);
  }

  get count(): number {
    return this.#count;
  }

  add(microseconds: number): void {
    this.#values[this.#count++] = microseconds;
  }

  summary(): Summary {
    return summarize(this.#taken());
  }

  distribution(): Quantile[] {
    const sorted = this.#taken().sort();
    return quantilePlaces(sorted.length).map((percent) => ({ percent, value: percentile(sorted, percent)! }));
  }

  list(): number[] {
    return Array.from(this.#taken());
  }

  #taken(): Float64Array {
    return this.#values.slice(0, this.#count);
  }
}

/** Above a microsecond, percentiles are off by less than 0.1 %; the rest is exact. */
const significantDigits = 3;
/** In nanoseconds. */
const longest = 3.6e12;

/** Keeps how many samples there were of each size, in bounded memory however many there are. */
export class SampleHistogram implements Samples {
  readonly #nanoseconds: RecordableHistogram = createHistogram({
    lowest: 1,
    highest: longest,
    figures: significantDigits,
  });
  readonly #spread = new Spread();
  #count = 0;
  #min = Infinity;
  #max = 0;

  get count(): number {
    return this.#count;
  }

  add(microseconds: number): void {
    ++this.#count;
    this.#spread.add(microseconds);
    if (microseconds < this.#min) this.#min = microseconds;
    if (microseconds > this.#max) this.#max = microseconds;
    this.#nanoseconds.record(Math.min(Math.max(Math.round(microseconds * 1000), 1), longest));
  }

  summary(): Summary {
    return summaryOf((percent) => this.#at(percent), this.#spread.mean, this.#spread.stdev);
  }

  distribution(): Quantile[] {
    return quantilePlaces(this.#count).map((percent) => ({ percent, value: this.#at(percent)! }));
  }

  list(): undefined {
    return undefined;
  }

  #at(percent: number): number | null {
    if (this.#count === 0) return null;
    if (percent === 0) return this.#min;
    if (percent === 100) return this.#max;
    const value = this.#nanoseconds.percentile(percent) / 1000;
    return Math.min(Math.max(value, this.#min), this.#max);
  }
}
