import { rate, type Quantile, type Summary } from './statistics.js';

/** What went one way, or both. Null what could not be measured. */
export interface Bandwidth {
  /** That were counted. */
  messages: number;
  /** In which they were. */
  seconds: number | null;
  /** 2^20 bytes a second. */
  mebibytesPerSecond: number | null;
  /** 10^9 bits a second. */
  gigabitsPerSecond: number | null;
  messagesPerSecond: number | null;
  /** The highest rate of any run of messages, from the post of its first to the completion of its last. */
  peakMebibytesPerSecond: number | null;
  peakGigabitsPerSecond: number | null;
}

const MiB = 2 ** 20;

/** @param peak messages a second */
export function bandwidthOf(size: number, messages: number, seconds: number, peak: number | null): Bandwidth {
  const measured = messages > 0 && seconds > 0;
  return ofRates(size, messages, measured ? seconds : null, measured ? rate(messages, seconds) : null, peak);
}

/** @param perSecond messages a second. @param peak the same, of the best run */
export function ofRates(
  size: number,
  messages: number,
  seconds: number | null,
  perSecond: number | null,
  peak: number | null,
): Bandwidth {
  const mebibytes = (value: number | null) => (value === null ? null : (value * size) / MiB);
  const gigabits = (value: number | null) => (value === null ? null : (value * size * 8) / 1e9);
  return {
    messages,
    seconds,
    mebibytesPerSecond: mebibytes(perSecond),
    gigabitsPerSecond: gigabits(perSecond),
    messagesPerSecond: perSecond,
    peakMebibytesPerSecond: mebibytes(peak),
    peakGigabitsPerSecond: gigabits(peak),
  };
}

/** Both ways together; null where one of them was not measured. */
export function sumOf(size: number, a: Bandwidth, b: Bandwidth): Bandwidth {
  const add = (x: number | null, y: number | null) => (x === null || y === null ? null : x + y);
  return {
    ...ofRates(size, a.messages + b.messages, null, add(a.messagesPerSecond, b.messagesPerSecond), null),
    peakMebibytesPerSecond: add(a.peakMebibytesPerSecond, b.peakMebibytesPerSecond),
    peakGigabitsPerSecond: add(a.peakGigabitsPerSecond, b.peakGigabitsPerSecond),
  };
}

/** Latency in microseconds: of sends and writes one way, half of each round; of reads and atomics there and back. */
export interface Latency {
  /** Samples that were counted, all of them. */
  count: number;
  microseconds: Summary;
  distribution: Quantile[];
  /** Each sample, in the order in which they came, where that was asked for. */
  samples?: number[];
}

/** What one size came to. */
export interface SizeResult {
  /** Bytes of a message. */
  size: number;
  /** Messages that this end has sent or received, or rounds that it has played; of a passive end, what the peer says. */
  iterations: number;
  /** `'peer'`: this end was passive, and these are the peer's figures. */
  measuredBy: 'this end' | 'peer';
  /** With `bidirectional` both ways together. */
  bandwidth?: Bandwidth;
  /** With `bidirectional`: from this end to the peer, and from the peer to this end. */
  directions?: { outgoing: Bandwidth; incoming: Bandwidth };
  latency?: Latency;
  /** Messages that did not arrive here, of an unreliable connection. */
  lost?: number;
  /** Processor time of this process, as a share of the time it took; above 100 with several threads. Null for a passive end. */
  cpuPercent: number | null;
  /** It was broken off: these are the figures until then. */
  incomplete?: true;
}
