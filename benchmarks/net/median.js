// @ts-check
import { summarize } from '../../dist/perf/statistics.js';

/** @param {number[]} samples */
export const median = (samples) => summarize(samples).p50 ?? NaN;
