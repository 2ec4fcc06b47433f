import type { PerfResult } from '../../perf/perf.js';
import type { PerfFlags } from '../perf-options.js';

/** What is below -w and -y, or could not be measured. */
export function belowLimits({ results, error }: PerfResult, flags: PerfFlags): string[] {
  const { limitBw, limitMsgrate, reportGbits } = flags;
  if (error !== null) return [];
  const complaints: string[] = [];
  const check = (size: number, value: number | null, limit: number | undefined, unit: string) => {
    if (limit === undefined || (value !== null && value >= limit)) return;
    const is = value === null ? 'could not be measured' : `is ${value.toFixed(3)} ${unit}`;
    complaints.push(`with messages of ${size} bytes the rate ${is}, and the limit is ${limit} ${unit}`);
  };
  for (const { size, bandwidth } of results) {
    if (bandwidth === undefined) continue;
    const { gigabitsPerSecond, mebibytesPerSecond, messagesPerSecond } = bandwidth;
    check(
      size,
      reportGbits ? gigabitsPerSecond : mebibytesPerSecond,
      limitBw,
      reportGbits ? 'Gb/s' : 'MiB/s',
    );
    check(size, messagesPerSecond === null ? null : messagesPerSecond / 1e6, limitMsgrate, 'Mpps');
  }
  return complaints;
}
