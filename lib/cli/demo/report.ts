import type { QpState, QpType } from '../../index.js';
import type { Bandwidth } from '../../perf/pair/bandwidth.js';
import type { Endpoint, EndpointPair } from '../../perf/pair/endpoint-pair.js';
import type { Latency } from '../../perf/pair/latency.js';
import type { Platform, PortReport } from '../../perf/platform.js';
import type { OperationReport } from './operations.js';

/** What the demonstration says, as `--json` prints it. */
export interface DemoReport {
  platform: Platform;
  devices: { reason: string; a: PortReport; b: PortReport };
  connection: { type: QpType; pathMtu: number; a: QueuePairReport; b: QueuePairReport };
  operations: OperationReport[];
  measurements: Measurement[];
}

/** As the device has it. */
export interface QueuePairReport {
  qpNum: number;
  state: QpState;
  /** First packet sequence number that it sends. */
  psn: number;
  destQpNum: number;
  /** Reads and atomics of the peer that it serves at a time. */
  maxDestRdAtomic: number;
}

export interface Measurement {
  /** Bytes of a message. */
  size: number;
  write: Bandwidth;
  send: Latency;
}

export function reportConnection({ a, b, pathMtu }: EndpointPair): DemoReport['connection'] {
  return { type: a.qp.type, pathMtu, a: reportQueuePair(a), b: reportQueuePair(b) };
}

function reportQueuePair({ qp, told }: Endpoint): QueuePairReport {
  const { qpState, destQpNum, maxDestRdAtomic } = qp.query();
  return { qpNum: qp.qpNum, state: qpState, psn: told.psn, destQpNum, maxDestRdAtomic };
}
