/** What a set of samples comes to. Every sample counts, the worst one too. All null where there was none. */
export interface Summary {
  min: number | null;
  mean: number | null;
  /** Standard deviation. */
  stdev: number | null;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  p999: number | null;
  p9999: number | null;
  max: number | null;
}

/** `percent` of the samples did not exceed `value`. */
export interface Quantile {
  percent: number;
  value: number;
}

export function summarize(samples: ArrayLike<number>): Summary {
  const sorted = Float64Array.from(samples).sort();
  const { mean, stdev } = spread(sorted);
  return summaryOf((percent) => percentile(sorted, percent), mean, stdev);
}

/** @param at the smallest sample that so many percent do not exceed */
export function summaryOf(
  at: (percent: number) => number | null,
  mean: number | null,
  stdev: number | null,
): Summary {
  return {
    min: at(0),
    mean,
    stdev,
    p50: at(50),
    p90: at(90),
    p99: at(99),
    p999: at(99.9),
    p9999: at(99.99),
    max: at(100),
  };
}

/** Places at which a distribution is told: tenths, and from 90 % on ever closer to all, as far as `count` samples go. */
export function quantilePlaces(count: number): number[] {
  if (count === 0) return [];
  const places = [0, 10, 20, 30, 40, 50, 60, 70, 80];
  const slower = (rest: number) => (rest / 100) * count >= 1;
  for (let rest = 10; slower(rest); rest /= 10) {
    const rests = [rest, rest / 2, rest / 4].filter(slower);
    places.push(...rests.map((left) => Number((100 - left).toFixed(9))));
  }
  return [...places, 100];
}

/**
 * The smallest sample that `percent` of the samples do not exceed (nearest rank); null where there is none.
 *
 * @param sorted in ascending order
 * @param percent 0 to 100
 */
export function percentile(sorted: ArrayLike<number>, percent: number): number | null {
  if (sorted.length === 0) return null;
  // Not above the rank by an error in the last bit: 99.9 % of 1000 are 999.
  const rank = Math.ceil(Number(((sorted.length * percent) / 100).toPrecision(12)));
  return sorted[Math.max(rank, 1) - 1]!;
}

/** So much a second; null where no time has passed. */
export function rate(amount: number, seconds: number): number | null {
  return seconds > 0 ? amount / seconds : null;
}

/** Mean and standard deviation of values as they come. */
export class Spread {
  #count = 0;
  #mean = 0;
  #squares = 0;

  add(value: number): void {
    const before = value - this.#mean;
    this.#mean += before / ++this.#count;
    this.#squares += before * (value - this.#mean);
  }

  get mean(): number | null {
    return this.#count === 0 ? null : this.#mean;
  }

  get stdev(): number | null {
    return this.#count === 0 ? null : Math.sqrt(this.#squares / this.#count);
  }
}

function spread(values: ArrayLike<number>): Spread {
  const all = new Spread();
  for (let i = 0; i < values.length; ++i) all.add(values[i]!);
  return all;
}
