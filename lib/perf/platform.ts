import { readFileSync, realpathSync } from 'node:fs';
import { release } from 'node:os';
import path from 'node:path';
import { packageVersion } from '../package.js';
import type { Context } from '../verbs/context.js';
import type { GidChoice } from '../verbs/gid.js';

/** What a measurement ran on. */
export interface Platform {
  nodeRdma: string;
  node: string;
  kernel: string;
  /** Engine of `node-rdma rxe`, in one of its machines; null elsewhere. */
  engine: string | null;
}

export function describePlatform(): Platform {
  return {
    nodeRdma: packageVersion(),
    node: process.version,
    kernel: release(),
    engine: process.env.NODE_RDMA_RXE_ENGINE ?? null,
  };
}

/** Version of a shared library that this process has loaded, by the name of its file: `1.14.44.0`. Null where it does not tell. */
export function sharedLibraryVersion(name: string): string | null {
  const line = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .find((mapping) => path.basename(mapping).startsWith(`${name}.so`));
  if (line === undefined) return null;
  const file = path.basename(realpathSync(line.slice(line.indexOf('/'))));
  return /\.so\.(\d+\.\d[\d.]*)$/.exec(file)?.[1] ?? null;
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

export function describePort({
  context,
  port,
  gid,
}: {
  context: Context;
  port: number;
  gid: GidChoice;
}): PortReport {
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
