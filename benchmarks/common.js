// @ts-check
// What the benchmarks share.
import { cpus, release } from 'node:os';
import { summarize } from '../build/lib/perf/statistics.js';

/** Debian's own, for which it has pyverbs. */
export const python = '/usr/bin/python3';

/** @param {number[]} samples */
export const median = (samples) => summarize(samples).p50;

/** What a result was measured on. */
export function machine() {
  const processors = cpus();
  return {
    date: new Date().toISOString(),
    processor: processors[0]?.model.trim() ?? 'unknown',
    processors: processors.length,
    kernel: release(),
    node: process.version,
  };
}
