/** What a set of samples comes to. Every sample counts, the worst one too. All null where there was none. */
export interface Summary {
  min: number | null;
  mean: number | null;
  p50: number | null;
  p99: number | null;
  max: number | null;
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = Float64Array.from(samples).sort();
  return {
    min: percentile(sorted, 0),
    mean: sorted.length === 0 ? null : sorted.reduce((sum, sample) => sum + sample, 0) / sorted.length,
    p50: percentile(sorted, 50),
    p99: percentile(sorted, 99),
    max: percentile(sorted, 100),
  };
}

/**
 * The smallest sample that `percent` of the samples do not exceed (nearest rank); null where there is none.
 *
 * @param sorted in ascending order
 * @param percent 0 to 100
 */
export function percentile(sorted: ArrayLike<number>, percent: number): number | null {
  if (sorted.length === 0) return null;
  const rank = Math.ceil((sorted.length * percent) / 100);
  return sorted[Math.max(rank, 1) - 1]!;
}

/** So much a second; null where no time has passed. */
export function rate(amount: number, seconds: number): number | null {
  return seconds > 0 ? amount / seconds : null;
}
