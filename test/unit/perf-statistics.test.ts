import { describe, expect, it } from 'vitest';
import { Timeline } from '../../lib/perf/peak.js';
import { bandwidthOf, sumOf } from '../../lib/perf/results.js';
import { SampleHistogram, SampleList, samplesFor } from '../../lib/perf/samples.js';
import { percentile, quantilePlaces, summarize } from '../../lib/perf/statistics.js';

/** Numbers that look random and are always the same. */
function* pseudoRandom(count: number): Generator<number> {
  let state = 12_345;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    yield state / 0x7fffffff;
  }
}

describe('a summary', () => {
  it('has the true worst sample, and the deviation below a microsecond', () => {
    const samples = [...Array<number>(9999).fill(1), 5000];
    const { p99, p9999, max, min } = summarize(samples);
    expect({ p99, p9999, max, min }).toEqual({ p99: 1, p9999: 1, max: 5000, min: 1 });
    expect(summarize([0.1, 0.3]).stdev).toBeCloseTo(0.1);
  });

  it('finds ranks that a rounding error would miss by one', () => {
    const sorted = Array.from({ length: 1000 }, (_, i) => i + 1);
    expect(percentile(sorted, 99.9)).toBe(999);
    expect(percentile(sorted, 99.99)).toBe(1000);
    expect(percentile(sorted, 90)).toBe(900);
  });
});

describe('the places of a distribution', () => {
  it('go as far as there are samples', () => {
    expect(quantilePlaces(0)).toEqual([]);
    expect(quantilePlaces(10)).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    expect(quantilePlaces(40).slice(-4)).toEqual([90, 95, 97.5, 100]);
    expect(quantilePlaces(1000)).toContain(99.9);
    expect(quantilePlaces(1000)).not.toContain(99.99);
  });
});

describe('samples', () => {
  it('that are too many each by itself are counted by size, and come to the same', () => {
    const [list, histogram] = [new SampleList(20_000), new SampleHistogram()];
    for (const value of pseudoRandom(20_000)) {
      const microseconds = 2 + 1000 * value ** 4;
      list.add(microseconds);
      histogram.add(microseconds);
    }
    const [exact, estimated] = [list.summary(), histogram.summary()];
    for (const key of ['min', 'max', 'mean', 'stdev'] as const)
      expect(estimated[key]).toBeCloseTo(exact[key]!, 9);
    for (const key of ['p50', 'p90', 'p99', 'p999', 'p9999'] as const) {
      expect(Math.abs(estimated[key]! / exact[key]! - 1)).toBeLessThan(0.001);
    }
    expect(histogram.distribution().map(({ percent }) => percent)).toEqual(
      list.distribution().map(({ percent }) => percent),
    );
    expect(histogram.distribution().at(-1)).toEqual({ percent: 100, value: exact.max });
    expect([list.list()?.length, histogram.list()]).toEqual([20_000, undefined]);
  });

  it('are null where there are none', () => {
    for (const samples of [samplesFor(10), samplesFor(Infinity)]) {
      expect(samples.summary()).toEqual(summarize([]));
      expect(samples.distribution()).toEqual([]);
    }
  });

  it('above an hour still count', () => {
    const histogram = new SampleHistogram();
    histogram.add(5e9);
    expect(histogram.summary()).toMatchObject({ min: 5e9, max: 5e9 });
  });

  it('are kept in the order in which they came', () => {
    const list = new SampleList(3);
    [3, 1, 2].forEach((sample) => list.add(sample));
    expect(list.list()).toEqual([3, 1, 2]);
  });
});

describe('the peak', () => {
  /** The definition, tried with every run. */
  function bruteForce(posted: number[], completed: number[]): number {
    let best = 0;
    for (let i = 0; i < posted.length; ++i) {
      for (let j = i; j < posted.length; ++j) {
        if (!Number.isNaN(completed[j]))
          best = Math.max(best, (1000 * (j - i + 1)) / (completed[j]! - posted[i]!));
      }
    }
    return best;
  }

  it.each([1, 4, 10])('is that of the best run, with a completion for each %i messages', (every) => {
    const [posted, completed]: [number[], number[]] = [[], []];
    const timeline = new Timeline(200);
    const random = pseudoRandom(1000);
    const next = () => random.next().value as number;
    let now = 0;
    for (let i = 0; i < 200; ++i) posted.push((now += next() * (i > 80 && i < 120 ? 0.1 : 1)));
    for (const time of posted) timeline.post(1, time);
    let done = 0;
    for (let i = 0; i < 200; i += every) {
      done = Math.max(done, posted[i + every - 1]!) + next();
      for (let k = 0; k < every; ++k) completed.push(k === every - 1 ? done : NaN);
      timeline.complete(every, done);
    }
    expect(timeline.peak()).toBeCloseTo(bruteForce(posted, completed), 6);
  });

  it('is null where nothing has completed, or no time has passed', () => {
    const timeline = new Timeline(4);
    timeline.post(4, 1);
    expect(timeline.peak()).toBeNull();
    timeline.complete(4, 1);
    expect(timeline.peak()).toBeNull();
  });
});

describe('bandwidth', () => {
  it('is given in units that say what they are', () => {
    expect(bandwidthOf(2 ** 20, 10, 2, 8)).toEqual({
      messages: 10,
      seconds: 2,
      mebibytesPerSecond: 5,
      gigabitsPerSecond: (5 * 2 ** 20 * 8) / 1e9,
      messagesPerSecond: 5,
      peakMebibytesPerSecond: 8,
      peakGigabitsPerSecond: (8 * 2 ** 20 * 8) / 1e9,
    });
  });

  it.each([
    [0, 1],
    [10, 0],
    [10, NaN],
    [10, -1],
  ])('of %i messages in %d s is null, not 0 or infinite', (messages, seconds) => {
    expect(bandwidthOf(64, messages, seconds, null)).toMatchObject({
      messagesPerSecond: null,
      mebibytesPerSecond: null,
      seconds: null,
    });
  });

  it('both ways is the sum, and null where one way is unknown', () => {
    const [a, b] = [bandwidthOf(64, 10, 1, 20), bandwidthOf(64, 30, 1, 40)];
    expect(sumOf(64, a, b)).toMatchObject({
      messages: 40,
      messagesPerSecond: 40,
      peakMebibytesPerSecond: (60 * 64) / 2 ** 20,
    });
    expect(sumOf(64, a, bandwidthOf(64, 0, 0, null)).messagesPerSecond).toBeNull();
  });
});
