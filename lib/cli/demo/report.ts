import { createRequire } from 'node:module';
import { release } from 'node:os';
import type { QpState, QpType } from '../../index.js';
import type { Bandwidth } from '../../perf/bandwidth.js';
import type { Endpoint, EndpointPair } from '../../perf/endpoint-pair.js';
import type { Latency } from '../../perf/latency.js';
import type { OperationReport } from './operations.js';

/** What the demonstration says, as `--json` prints it. */
export interface DemoReport {
  platform: Platform;
  devices: { reason: string; a: PortReport; b: PortReport };
  connection: { type: QpType; pathMtu: number; a: QueuePairReport; b: QueuePairReport };
  operations: OperationReport[];
  measurements: Measurement[];
}

export interface Platform {
  nodeRdma: string;
  node: string;
  kernel: string;
  /** Engine of `node-rdma rxe`, in one of its machines; null elsewhere. */
  engine: string | null;
}

export interface PortReport {
  device: string;
  port: number;
  linkLayer: string;
  state: string;
  /** In bytes. */
  activeMtu: number;
  maxMtu: number;
  /** Null where the device tells none. */
  firmware: string | null;
  vendorId: number;
  vendorPartId: number;
  gid: {
    gid: string;
    address: string;
    index: number;
    type: string;
    netdev: string;
    reason: string;
    /** Of how many it was chosen. */
    tableLength: number;
  };
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

export function reportPlatform(): Platform {
  const { version } = createRequire(import.meta.url)('../../../package.json') as { version: string };
  return {
    nodeRdma: version,
    node: process.version,
    kernel: release(),
    engine: process.env.NODE_RDMA_RXE_ENGINE ?? null,
  };
}

export function reportPort({ context, port, gid }: Pick<Endpoint, 'context' | 'port' | 'gid'>): PortReport {
  const { fwVer, vendorId, vendorPartId } = context.queryDevice();
  const { linkLayer, state, activeMtu, maxMtu } = context.queryPort(port);
  return {
    device: context.device.name,
    port,
    linkLayer,
    state,
    activeMtu,
    maxMtu,
    firmware: fwVer === '' ? null : fwVer,
    vendorId,
    vendorPartId,
    gid: {
      gid: gid.gid,
      address: gid.address,
      index: gid.index,
      type: gid.type,
      netdev: gid.netdev,
      reason: gid.reason,
      tableLength: context.queryGidTable(port).length,
    },
  };
}

export function reportConnection({ a, b, pathMtu }: EndpointPair): DemoReport['connection'] {
  return { type: a.qp.type, pathMtu, a: reportQueuePair(a), b: reportQueuePair(b) };
}

function reportQueuePair({ qp, told }: Endpoint): QueuePairReport {
  const { qpState, destQpNum, maxDestRdAtomic } = qp.query();
  return { qpNum: qp.qpNum, state: qpState, psn: told.psn, destQpNum, maxDestRdAtomic };
}
