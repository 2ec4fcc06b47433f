import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeTypes, transportTypes, type NodeType, type TransportType } from './constants.js';
import { Context } from './context.js';
import { explain, invalidArgType, RdmaError } from './errors.js';
import { formatGuid } from './guid.js';
import { native } from './native.js';

/** A device that libibverbs can use (`struct ibv_device`). */
export interface Device {
  name: string;
  /** Kernel's index, stable while the device exists; −1 where the kernel does not tell. `ibv_get_device_index` */
  index: number;
  /** Such as `5054:00ff:fe12:3456`. `ibv_get_device_guid` */
  guid: string;
  nodeType: NodeType;
  transport: TransportType;
  /** Such as `/sys/class/infiniband/rxe0`. */
  sysfsPath: string;
}

/**
 * The RDMA devices of this machine that libibverbs can use, as they are now. `ibv_get_device_list`
 *
 * Empty where there is none. A device that the kernel has but the library leaves out (no character device, no
 * provider) is not in the list; {@link openDevice} says why it is missing.
 *
 * @throws RdmaError `ERR_RDMA_LOAD` where libibverbs is not installed
 */
export function listDevices(): Device[] {
  return native()
    .deviceList()
    .map((device) => ({
      name: device.name,
      index: device.index,
      guid: formatGuid(device.guid),
      nodeType: nodeTypes[String(device.nodeType) as keyof typeof nodeTypes] ?? 'unknown',
      transport: transportTypes[String(device.transport) as keyof typeof transportTypes] ?? 'unknown',
      sysfsPath: device.sysfsPath,
    }));
}

/**
 * Opens a device by its name; without one, the first that there is. `ibv_open_device`
 *
 * @throws RdmaError `ERR_RDMA_NO_DEVICE` where there is none of that name (or none at all), with those that there are
 * and what is missing; `EACCES`, `EPERM` and others as the system has them
 */
export function openDevice(name?: string): Context {
  if (name !== undefined && typeof name !== 'string') throw invalidArgType('name', 'a string', name);
  const devices = listDevices();
  const device = name === undefined ? devices[0] : devices.find((candidate) => candidate.name === name);
  if (device === undefined) {
    throw new RdmaError(
      'ERR_RDMA_NO_DEVICE',
      noDevice(name, devices),
      name === undefined ? {} : { device: name },
    );
  }
  try {
    return new Context(native().openDevice(device.name), device);
  } catch (error) {
    throw explain(error, { device: device.name }, (errno) => openAdvice(errno));
  }
}

function openAdvice(errno: number): string {
  switch (errno) {
    case 1:
      return 'The character device is there but its cgroup forbids it: start the container with --device /dev/infiniband/uverbsN';
    case 13:
      return 'This user may not open /dev/infiniband/uverbsN: mode 0666 is usual (udev rules of rdma-core), or the rdma group';
    case 2:
    case 6:
    case 19:
      return 'The device has no character device here: in a container pass --device /dev/infiniband/uverbsN';
    default:
      return '';
  }
}

function noDevice(name: string | undefined, devices: readonly Device[]): string {
  const what =
    name === undefined ? 'there is no RDMA device that can be used' : `there is no RDMA device "${name}"`;
  if (devices.length > 0) return `${what}. There are: ${devices.map((device) => device.name).join(', ')}.`;
  const seen = kernelDevices();
  if (seen.length === 0) {
    return (
      `${what}: the kernel has none. Load the driver of your NIC, or try Soft-RoCE: ` +
      'npx node-rdma rxe run -- COMMAND runs a command where there are two devices.'
    );
  }
  return (
    `${what}, but the kernel has ${seen.map((device) => device.name).join(', ')}. ` +
    seen.map(({ name: device, problem }) => `${device}: ${problem}`).join('; ')
  );
}

/** What the kernel has, with the likely reason why the library leaves it out. */
function kernelDevices(): { name: string; problem: string }[] {
  const folder = '/sys/class/infiniband_verbs';
  let entries: string[];
  try {
    entries = readdirSync(folder).filter((entry) => entry.startsWith('uverbs'));
  } catch {
    return [];
  }
  return entries.map((uverbs) => {
    let name = uverbs;
    try {
      name = readFileSync(join(folder, uverbs, 'ibdev'), 'utf8').trim();
    } catch {
      // A device that is just going away has no name any more.
    }
    const node = `/dev/infiniband/${uverbs}`;
    const problem = existsSync(node)
      ? 'libibverbs has no provider for it (apt-get install ibverbs-providers), or may not open ' + node
      : `${node} is missing (in a container: --device ${node})`;
    return { name, problem };
  });
}
