// Whether a device can be opened, and if not why: what the kernel shows of it, beside what the library makes of that.
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A device of the kernel (`/sys/class/infiniband`). */
export interface KernelDevice {
  name: string;
  /** Such as `uverbs0`; undefined where it has no character device at all. */
  uverbs: string | undefined;
  /** Such as `5054:00ff:fe12:3456`. */
  guid: string;
  /** `IBV_NODE_*` */
  nodeType: number;
}

/** What the kernel has, whether the library can use it or not. */
export function kernelDevices(sysfs = '/sys'): KernelDevice[] {
  const uverbs = new Map<string, string>();
  for (const entry of list(join(sysfs, 'class/infiniband_verbs'))) {
    const name = read(join(sysfs, 'class/infiniband_verbs', entry, 'ibdev'));
    if (name !== undefined) uverbs.set(name, entry);
  }
  return list(join(sysfs, 'class/infiniband')).map((name) => ({
    name,
    uverbs: uverbs.get(name),
    guid: read(join(sysfs, 'class/infiniband', name, 'node_guid')) ?? '0000:0000:0000:0000',
    nodeType: Number.parseInt(read(join(sysfs, 'class/infiniband', name, 'node_type')) ?? '-1', 10),
  }));
}

/** Why a device cannot be opened. */
export interface DeviceProblem {
  /** Of the error that {@link openDevice} throws: as the system has it, such as `'EACCES'`, or `'ERR_RDMA_NO_PROVIDER'`. */
  code: string;
  /** What is wrong, and what to do. */
  message: string;
}

/** Why a device that the library leaves out is of no use. */
export function leftOut({ uverbs }: KernelDevice, open = tryOpen): DeviceProblem {
  if (uverbs === undefined) {
    return { code: 'ENOENT', message: 'the kernel module ib_uverbs is not loaded: modprobe ib_uverbs' };
  }
  return (
    accessProblem(uverbs, open) ?? {
      code: 'ERR_RDMA_NO_PROVIDER',
      message: 'libibverbs has no provider for it: apt-get install ibverbs-providers',
    }
  );
}

/** Why a character device cannot be opened; undefined where it can. */
export function accessProblem(uverbs: string, open = tryOpen): DeviceProblem | undefined {
  const node = `/dev/infiniband/${uverbs}`;
  const code = open(node);
  return code === undefined ? undefined : { code, message: describe(node, code) };
}

function describe(node: string, code: string): string {
  switch (code) {
    case 'ENOENT':
    case 'ENXIO':
    case 'ENODEV':
      return `${node} is missing: in a container pass --device ${node}`;
    case 'EPERM':
      return `${node} is there, but the cgroup forbids it: start the container with --device ${node}, a bind mount is not enough`;
    case 'EACCES':
      return `this user may not open ${node}: mode 0666 is usual (udev rules of rdma-core), or the rdma group`;
    default:
      return `${node} cannot be opened: ${code}`;
  }
}

/** The code of the error by which a character device cannot be opened. Opening it changes nothing. */
function tryOpen(node: string): string | undefined {
  try {
    closeSync(openSync(node, 'r+'));
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).filter((entry) => entry !== 'abi_version');
  } catch {
    return [];
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    // A device that is just going away has no attributes any more.
    return undefined;
  }
}
