import { describe, expect, it } from 'vitest';
import { defaultWindow } from '../../lib/perf/pair/bandwidth.js';
import { percentile, rate, summarize } from '../../lib/perf/statistics.js';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe('percentile', () => {
  it.each([
    [100, 50, 50],
    [100, 99, 99],
    [101, 50, 51],
    [1000, 99, 990],
    [3, 50, 2],
    [3, 99, 3],
    [3, 0, 1],
    [3, 100, 3],
    [1, 50, 1],
  ])('of 1 … %i, %i %% do not exceed %i', (count, percent, expected) => {
    expect(percentile(upTo(count), percent)).toBe(expected);
  });

  it('is null where there is no sample', () => {
    expect(percentile([], 50)).toBeNull();
  });
});

describe('summarize', () => {
  it('counts every sample, in whatever order, and the worst', () => {
    const samples = [3, 1, 1000, 2, 10];
    expect(summarize(samples)).toMatchObject({ min: 1, mean: 203.2, p50: 3, p99: 1000, max: 1000 });
    expect(samples).toEqual([3, 1, 1000, 2, 10]);
  });

  it('sorts numbers as numbers', () => {
    expect(summarize([9, 10, 100]).p50).toBe(10);
  });

  it('is null where there is no sample', () => {
    expect(Object.values(summarize([])).every((value) => value === null)).toBe(true);
  });
});

describe('rate', () => {
  it('is so much a second, and null where no time has passed', () => {
    expect(rate(10, 4)).toBe(2.5);
    expect(rate(10, 0)).toBeNull();
  });
});

describe('defaultWindow', () => {
  it.each([
    [1, 128],
    [4 * 1024, 128],
    [64 * 1024, 8],
    [1024 * 1024, 2],
    [8 * 1024 * 1024, 2],
  ])('for messages of %i bytes is %i', (size, window) => {
    expect(defaultWindow(size)).toBe(window);
  });
});
