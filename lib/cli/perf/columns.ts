import type { Bandwidth, SizeResult } from '../../perf/results.js';
import type { Summary } from '../../perf/statistics.js';
import type { PerfFlags } from '../perf-options.js';

/** A column of the table: what it is called, how wide it is, and what it shows of a result. */
export interface Column {
  name: string;
  width: number;
  of: (one: SizeResult) => string;
}

const size: Column = { name: 'bytes', width: 10, of: (one) => String(one.size) };
const iterations: Column = { name: 'iterations', width: 12, of: (one) => String(one.iterations) };

export function columnsFor(measure: 'bw' | 'lat', flags: PerfFlags): Column[] {
  return measure === 'bw' ? bandwidthColumns(({ bandwidth }) => bandwidth, flags) : latencyColumns(flags);
}

/** @param of which of a result's bandwidths it is */
export function bandwidthColumns(
  of: (one: SizeResult) => Bandwidth | undefined,
  { reportGbits }: PerfFlags,
): Column[] {
  const unit = reportGbits ? 'Gb/s' : 'MiB/s';
  const rate = (name: string, key: keyof Bandwidth, width: number, scale = 1): Column => ({
    name,
    width,
    of: (one) => fixed(scaled(of(one)?.[key] ?? null, scale), scale === 1 ? 2 : 6),
  });
  return [
    size,
    iterations,
    rate(`peak ${unit}`, reportGbits ? 'peakGigabitsPerSecond' : 'peakMebibytesPerSecond', 14),
    rate(`average ${unit}`, reportGbits ? 'gigabitsPerSecond' : 'mebibytesPerSecond', 16),
    rate('Mpps', 'messagesPerSecond', 12, 1e-6),
  ];
}

function latencyColumns({ reportCycles }: PerfFlags): Column[] {
  const [unit, scale, digits] = reportCycles ? (['ns', 1000, 0] as const) : (['µs', 1, 2] as const);
  const at = (name: string, key: keyof Summary, width = 10): Column => ({
    name,
    width,
    of: ({ latency }) => fixed(scaled(latency?.microseconds[key] ?? null, scale), digits),
  });
  return [
    size,
    iterations,
    at(`min ${unit}`, 'min'),
    at('p50', 'p50'),
    at('p90', 'p90'),
    at('p99', 'p99'),
    at('p99.9', 'p999'),
    at('p99.99', 'p9999'),
    at('max', 'max'),
    at('mean', 'mean'),
    at('stdev', 'stdev'),
  ];
}

export function heading(columns: readonly Column[]): string {
  return columns.map(({ name, width }) => name.padStart(width)).join('');
}

export function rowOf(columns: readonly Column[], one: SizeResult): string {
  return columns.map(({ of, width }) => of(one).padStart(width)).join('');
}

function scaled(value: number | null, scale: number): number | null {
  return value === null ? null : value * scale;
}

/** Nothing that was not measured becomes a number. */
function fixed(value: number | null, digits: number): string {
  return value === null ? '–' : value.toFixed(digits);
}
