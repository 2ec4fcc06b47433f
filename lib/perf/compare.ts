import type { PerfResult } from './perf.js';
import type { SizeResult } from './results.js';

/** One figure of two results. */
export interface Change {
  name: string;
  /** Whether more is better. */
  higherIsBetter: boolean;
  before: number | null;
  after: number | null;
  /** By how much it has changed, in percent of before; null where either is missing or before is 0. */
  percent: number | null;
}

export interface SizeComparison {
  /** Bytes of a message. */
  size: number;
  changes: Change[];
}

export interface Comparison {
  /** What was different apart from the figures: it may be why they are. */
  differences: { name: string; before: string; after: string }[];
  /** Sizes that both have. */
  sizes: SizeComparison[];
  /** Sizes that only one has. */
  unmatched: number[];
}

type Figure = readonly [
  name: string,
  higherIsBetter: boolean,
  (one: SizeResult) => number | null | undefined,
];

const figures: readonly Figure[] = [
  ['MiB/s', true, ({ bandwidth }) => bandwidth?.mebibytesPerSecond],
  ['messages/s', true, ({ bandwidth }) => bandwidth?.messagesPerSecond],
  ['µs p50', false, ({ latency }) => latency?.microseconds.p50],
  ['µs p99', false, ({ latency }) => latency?.microseconds.p99],
  ['µs p99.9', false, ({ latency }) => latency?.microseconds.p999],
  ['µs max', false, ({ latency }) => latency?.microseconds.max],
];

/**
 * Sets one result against another one of the same test.
 *
 * @throws RangeError for results of two tests; TypeError for what is no result
 */
export function compareResults(before: PerfResult, after: PerfResult): Comparison {
  for (const [name, result] of [
    ['before', before],
    ['after', after],
  ] as const) {
    if (result?.schemaVersion !== 1 || !Array.isArray(result.results))
      throw new TypeError(`${name}: it is no result of node-rdma perf (schemaVersion 1)`);
  }
  if (before.test !== after.test) {
    throw new RangeError(
      `${before.test} and ${after.test} measure different things: compare two results of one test`,
    );
  }
  const later = new Map(after.results.map((one) => [one.size, one]));
  const earlier = new Map(before.results.map((one) => [one.size, one]));
  const both = [...earlier.keys()].filter((size) => later.has(size));
  return {
    differences: differencesOf(before, after),
    sizes: both.map((size) => ({ size, changes: changesOf(earlier.get(size)!, later.get(size)!) })),
    unmatched: [...earlier.keys(), ...later.keys()].filter((size) => !both.includes(size)),
  };
}

function changesOf(before: SizeResult, after: SizeResult): Change[] {
  return figures.flatMap(([name, higherIsBetter, of]) => {
    const [a, b] = [of(before), of(after)];
    if (a === undefined && b === undefined) return [];
    return [{ name, higherIsBetter, before: a ?? null, after: b ?? null, percent: percentOf(a, b) }];
  });
}

function percentOf(before: number | null | undefined, after: number | null | undefined): number | null {
  if (typeof before !== 'number' || typeof after !== 'number' || before === 0) return null;
  return (100 * (after - before)) / before;
}

function differencesOf(before: PerfResult, after: PerfResult): Comparison['differences'] {
  const [a, b] = [before, after].map(circumstancesOf) as [Map<string, string>, Map<string, string>];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((name) => a.get(name) !== b.get(name))
    .map((name) => ({ name, before: a.get(name) ?? '–', after: b.get(name) ?? '–' }));
}

function circumstancesOf({
  role,
  platform,
  configuration,
  device,
  connection,
}: PerfResult): Map<string, string> {
  const { device: name, activeMtu, firmware, gid } = device;
  const all = {
    role,
    ...platform,
    ...configuration,
    device: name,
    activeMtu,
    firmware,
    gidType: gid.type,
    pathMtu: connection?.pathMtu,
    perftest: connection?.peer.perftest,
    peerNodeRdma: connection?.peer.nodeRdma?.nodeRdma,
  };
  return new Map(
    Object.entries(all)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([key, value]) => [key, Array.isArray(value) ? value.join(', ') : String(value)]),
  );
}
