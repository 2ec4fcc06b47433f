/** What a test does to the peer. */
export type Verb = 'send' | 'write' | 'read' | 'atomic';
/** What a test measures: bandwidth with a window of messages, or the latency of one at a time. */
export type Measure = 'bw' | 'lat';

/** The tests; each plays with the program of perftest whose name it resembles: `write-bw` with `ib_write_bw`. */
export const perfTests = [
  'send-bw',
  'send-lat',
  'write-bw',
  'write-lat',
  'read-bw',
  'read-lat',
  'atomic-bw',
  'atomic-lat',
] as const satisfies readonly `${Verb}-${Measure}`[];
export type PerfTest = (typeof perfTests)[number];

export function partsOf(test: PerfTest): { verb: Verb; measure: Measure } {
  const [verb, measure] = test.split('-') as [Verb, Measure];
  return { verb, measure };
}

/** The program of perftest that plays the other end. */
export function programOf(test: PerfTest): string {
  return `ib_${test.replace('-', '_')}`;
}
