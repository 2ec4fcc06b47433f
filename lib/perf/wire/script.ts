// The order in which perftest exchanges keys, by test. Each "sync" is a swap of the first key, which says nothing new.
import type { PerfTest } from '../kinds.js';

type Step = 'keys' | 'sync';

export interface Script {
  /** Before the queue pairs are connected; `keys` tells the peer of each. */
  before: readonly Step[];
  /** When they are. */
  after: readonly Step[];
  /** Whether it ends with a sync and the last words. */
  ends: boolean;
}

const bandwidth: Script = { before: ['keys'], after: ['keys', 'sync'], ends: true };
const sends: Script = { before: ['keys'], after: ['sync', 'keys'], ends: true };
const latency: Script = { before: ['sync', 'keys'], after: ['keys', 'sync'], ends: true };

export const scripts: Record<PerfTest, Script> = {
  'send-bw': sends,
  'send-lat': sends,
  'write-bw': bandwidth,
  'write-lat': { ...latency, ends: false },
  'read-bw': bandwidth,
  'read-lat': latency,
  'atomic-bw': bandwidth,
  'atomic-lat': latency,
};
