import type { Context } from '../verbs/context.js';
import { openDevice } from '../verbs/device.js';
import { configurationOf, type PerfConfiguration } from './configuration.js';
import { resolveOptions, type PerfOptions, type Settings } from './options.js';
import { makePlan, type Plan } from './plan.js';
import {
  describePlatform,
  describePort,
  sharedLibraryVersion,
  type Platform,
  type PortReport,
} from './platform.js';
import type { SizeResult } from './results.js';
import { runSession, type Connected, type SessionHooks } from './session.js';
import type { PerfTest } from './kinds.js';
import type { Exchange, Role } from './wire/exchange.js';
import type { OurPeer } from './wire/our-kind.js';
import { acceptCm, connectCm, type CmExchange } from './wire/cm.js';
import { acceptTcp, connectTcp } from './wire/tcp.js';

/** A measurement with all that is needed to judge it later. Plain data, in the same form as `node-rdma perf --json` prints. */
export interface PerfResult {
  schemaVersion: 1;
  test: PerfTest;
  role: Role;
  /** ISO 8601. */
  started: string;
  platform: Platform & {
    /** Of the file of libibverbs; null where it does not tell. */
    libibverbs: string | null;
  };
  /** As asked for, with all defaults. */
  configuration: PerfConfiguration;
  device: PortReport;
  /** Null where it did not come so far. */
  connection: PerfConnection | null;
  /** In the order in which they were measured. Empty at the server of `read-lat` and `atomic-lat`, which measures nothing. */
  results: SizeResult[];
  /** Why it ended before its end; null where it did not. */
  error: { code: string; message: string } | null;
}

export interface PerfConnection {
  peer: {
    address: string;
    /** perftest's version, or the one that a peer of this library announces. */
    perftest: string;
    nodeRdma: OurPeer | null;
  };
  /** In bytes. */
  pathMtu: number;
  queuePairs: { local: QueuePairSummary; remote: QueuePairSummary }[];
}

export interface QueuePairSummary {
  qpNum: number;
  psn: number;
  gid: string;
  rkey: number;
  /** Hexadecimal. */
  address: string;
}

const DEFAULT_PORT = 18_515;

/** Hooks for those inside this library. */
export type InnerHooks = Pick<SessionHooks, 'onFinished' | 'onResult'> & {
  /** The ends are connected, and nothing is measured yet. */
  onDescribed?: (result: PerfResult) => void;
};

/**
 * Measures with a peer: another one of these, `node-rdma perf`, or the program of perftest (`ib_write_bw` for `write-bw`). With
 * `host` as the client of a server there; without as a server, until its one client is done.
 *
 * @throws TypeError, RangeError for an option that does not fit; RdmaError: `ERR_RDMA_LIMIT`, `ERR_RDMA_NO_GID` and others for what
 * the device cannot do, `ERR_RDMA_NO_PEER` where none is reached, `ERR_RDMA_MISMATCH` where a peer of this library was given other
 * options, `ERR_RDMA_PEER_LOST`, `ERR_RDMA_TIMEOUT`, `ERR_RDMA_PROTOCOL`; WorkCompletionError for a message that failed; AbortError. All
 * but the first two have what was measured until then as `result`, unless with `rdmaCm` no peer was reached.
 */
export async function perf(options: PerfOptions): Promise<PerfResult> {
  return measure(options, {});
}

/** {@link perf}, with hooks. */
export async function measure(options: PerfOptions, hooks: InnerHooks): Promise<PerfResult> {
  const settings = resolveOptions(options);
  const { device } = options;
  // With rdma_cm it is the address that decides on the device.
  const early = settings.rdmaCm && device === undefined ? await meetByCm(settings, options) : undefined;
  const context = openEarly(early, device);
  try {
    return await measureOn(context, settings, options, hooks, early);
  } finally {
    context.close({ cascade: true });
  }
}

function openEarly(exchange: CmExchange | undefined, device: string | undefined): Context {
  try {
    return openDevice(device ?? exchange?.device);
  } catch (error) {
    exchange?.destroy();
    throw error;
  }
}

async function measureOn(
  context: Context,
  settings: Settings,
  options: PerfOptions,
  hooks: InnerHooks,
  early: Exchange | undefined,
): Promise<PerfResult> {
  const plan = makePlan(settings, context);
  const result = describe(plan, options.host === undefined ? 'server' : 'client');
  let exchange = early;
  try {
    exchange ??= await meet(settings, options);
    const { peer } = exchange;
    await runSession(plan, exchange, {
      signal: options.signal,
      onProgress: options.onProgress,
      onConnected: (connected) => {
        result.connection = summarize(peer, connected);
        hooks.onDescribed?.(result);
      },
      onFinished: hooks.onFinished,
      onResult: (one) => {
        result.results.push(one);
        hooks.onResult?.(one);
      },
    });
    return result;
  } catch (error) {
    const { code = 'ERR_UNKNOWN', message } = error as Error & { code?: string };
    result.error = { code, message };
    exchange?.destroy();
    throw Object.assign(error as Error, { result });
  }
}

function meet(settings: Settings, options: PerfOptions): Promise<Exchange> {
  if (settings.commRdmaCm) return meetByCm(settings, options);
  const { timeout } = settings;
  const { host, port = DEFAULT_PORT, sourceAddress, signal, onListening } = options;
  return host === undefined
    ? acceptTcp({ port, timeout, signal, onListening })
    : connectTcp(host, { port, timeout, signal, sourceAddress });
}

function meetByCm(
  { timeout, rdmaCm: queuePairs }: Settings,
  { host, port = DEFAULT_PORT, sourceAddress, signal, onListening }: PerfOptions,
): Promise<CmExchange> {
  const options = { port, timeout, signal, queuePairs };
  return host === undefined
    ? acceptCm({ ...options, onListening })
    : connectCm(host, { ...options, sourceAddress });
}

function describe(plan: Plan, role: Role): PerfResult {
  const { settings, context, gid } = plan;
  return {
    schemaVersion: 1,
    test: settings.test,
    role,
    started: new Date().toISOString(),
    platform: { ...describePlatform(), libibverbs: sharedLibraryVersion('libibverbs') },
    configuration: configurationOf(settings, plan),
    device: describePort({ context, port: settings.devicePort, gid }),
    connection: null,
    results: [],
    error: null,
  };
}

function summarize(address: string, { agreement, pathMtu, local, remote }: Connected): PerfConnection {
  const { peer } = agreement;
  const brief = ({ qpNum, psn, gid, rkey, address: at }: Connected['local'][number]): QueuePairSummary => ({
    qpNum,
    psn,
    gid,
    rkey,
    address: `0x${at.toString(16)}`,
  });
  return {
    peer: { address, perftest: peer.version, nodeRdma: peer.ours },
    pathMtu,
    queuePairs: local.map((key, i) => ({ local: brief(key), remote: brief(remote[i]!) })),
  };
}
