// @ts-check
import { summarize } from '../../build/lib/perf/statistics.js';

/** @param {number[]} samples */
export const median = (samples) => summarize(samples).p50 ?? NaN;
