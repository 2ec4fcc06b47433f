import { nodeTypes, transportTypes, type NodeType, type TransportType } from './constants.js';
import { Context } from './context.js';
import { accessProblem, kernelDevices, leftOut, type DeviceProblem } from './device-access.js';
import { explain, explaining, invalidArgType, RdmaError } from './errors.js';
import { formatGuid } from './guid.js';
import { native, type NativeDevice } from './native.js';
import { integer } from './validate.js';

/** An RDMA device (`struct ibv_device`). */
export interface Device {
  name: string;
  /** Kernel's index, stable while the device exists; −1 where it is not known. `ibv_get_device_index` */
  index: number;
  /** Such as `5054:00ff:fe12:3456`. `ibv_get_device_guid` */
  guid: string;
  nodeType: NodeType;
  transport: TransportType;
  /** Such as `/sys/class/infiniband/rxe0`. */
  sysfsPath: string;
  /** Whether it can be opened, as far as its character device tells. */
  accessible: boolean;
  /** Of a device that is not accessible. */
  problem?: DeviceProblem;
}

/**
 * The RDMA devices of this machine as they are now, those that cannot be opened with the reason. `ibv_get_device_list`, and
 * the devices of the kernel that it leaves out: without a character device, or without a provider.
 *
 * Empty where there is none.
 *
 * @throws RdmaError `ERR_RDMA_LOAD` where libibverbs is not installed
 */
export function listDevices(): Device[] {
  const usable = native()
    .deviceList()
    .map((device) => describeDevice(device, accessProblem(device.uverbs)));
  const names = new Set(usable.map((device) => device.name));
  const others = kernelDevices()
    .filter((device) => !names.has(device.name))
    .map((device): Device => ({
      name: device.name,
      index: -1,
      guid: device.guid,
      nodeType: nodeTypeOf(device.nodeType),
      transport: 'unknown',
      sysfsPath: `/sys/class/infiniband/${device.name}`,
      ...access(leftOut(device)),
    }));
  return [...usable, ...others];
}

/**
 * Opens a device by its name; without one, the first that can be opened. `ibv_open_device`
 *
 * @throws RdmaError `ERR_RDMA_NO_DEVICE` where there is none of that name (or none at all), with those that there are
 * and what is missing; `EACCES`, `EPERM`, `ENOENT`, `ERR_RDMA_NO_PROVIDER` where it cannot be opened, with what to do
 */
export function openDevice(name?: string): Context {
  if (name !== undefined && typeof name !== 'string') throw invalidArgType('name', 'a string', name);
  if (name !== undefined) return open(name);
  const devices = listDevices();
  const device = devices.find(({ accessible }) => accessible);
  if (device === undefined) throw new RdmaError('ERR_RDMA_NO_DEVICE', noDevice(name, devices));
  return open(device.name);
}

/**
 * The context that another process has opened, by its {@link Context.commandFd}, when that was received from there: objects made
 * in one process can be used in both. The descriptor stays the caller's. `ibv_import_device`. Arguments checked, not run on a
 * NIC: rxe has no import.
 *
 * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`, `EBADF` for what is no descriptor
 */
export function importDevice(fd: number): Context {
  integer('fd', fd, 0, 2 ** 31 - 1);
  const context = explaining(
    {},
    () => 'Is it the command descriptor of an RDMA device, and does its provider share contexts?',
    () => native().importDevice(fd),
  );
  return new Context(context, describeDevice(context.device));
}

function open(name: string): Context {
  try {
    const context = native().openDevice(name);
    return new Context(context, describeDevice(context.device));
  } catch (error) {
    if (!(error instanceof RdmaError) || error.syscall !== 'ibv_open_device') throw error;
    throw openFailure(name, error);
  }
}

function openFailure(name: string, cause: RdmaError): unknown {
  const devices = listDevices();
  const device = devices.find((candidate) => candidate.name === name);
  if (device === undefined) {
    return new RdmaError('ERR_RDMA_NO_DEVICE', noDevice(name, devices), { device: name });
  }
  if (device.problem === undefined) return explain(cause, { device: name });
  // The library may answer with the errno of something that it tried afterwards; what the character device says is right.
  const { code, message } = device.problem;
  return new RdmaError(code, `${name} cannot be opened: ${message}`, { device: name, cause });
}

/** @internal */
export function describeDevice(device: NativeDevice, problem?: DeviceProblem): Device {
  return {
    name: device.name,
    index: device.index,
    guid: formatGuid(device.guid),
    nodeType: nodeTypeOf(device.nodeType),
    transport: transportTypes[String(device.transport) as keyof typeof transportTypes] ?? 'unknown',
    sysfsPath: device.sysfsPath,
    ...access(problem),
  };
}

function nodeTypeOf(number: number): NodeType {
  return nodeTypes[String(number) as keyof typeof nodeTypes] ?? 'unknown';
}

function access(problem: DeviceProblem | undefined): Pick<Device, 'accessible' | 'problem'> {
  return problem === undefined ? { accessible: true } : { accessible: false, problem };
}

function noDevice(name: string | undefined, devices: readonly Device[]): string {
  const what =
    name === undefined ? 'there is no RDMA device that can be used' : `there is no RDMA device "${name}"`;
  if (devices.length === 0) {
    return (
      `${what}: the kernel has none. Load the driver of your NIC, or try Soft-RoCE: ` +
      'npx node-rdma rxe run -- COMMAND runs a command where there are two devices.'
    );
  }
  const described = devices.map((device) =>
    device.problem === undefined ? device.name : `${device.name} (${device.problem.message})`,
  );
  return `${what}. There are: ${described.join(', ')}.`;
}
