// The devices of the connection manager. It opens each once for the whole process, and its identifiers work only with what was
// made on that context.
import { Context } from '../verbs/context.js';
import { describeDevice, type Device } from '../verbs/device.js';
import { native, type NativeContext } from '../verbs/native.js';
import { RdmaError } from '../verbs/errors.js';

const contexts = new WeakMap<NativeContext, Context>();

/** @internal The context of the connection manager: the same object for as long as it is open. */
export function contextOf(nativeContext: NativeContext): Context {
  let context = contexts.get(nativeContext);
  if (context === undefined) {
    context = new Context(nativeContext, describeDevice(nativeContext.device));
    contexts.set(nativeContext, context);
  }
  return context;
}

/**
 * The devices as the connection manager has opened them. Protection domains and completion queues for its identifiers are made
 * here, or on {@link CmId.context}: those of a device that `openDevice()` has opened do not work with them. `rdma_get_devices`
 *
 * Closing one closes what was made on it; the library itself keeps the device open. Asynchronous events of such a context
 * go to the environment (main thread or worker) that has used it first.
 *
 * @throws RdmaError where a device cannot be opened: then it gives none at all
 */
export function connectionManagerDevices(): Context[] {
  return native().connectionManagerContexts().map(contextOf);
}

const ZERO_GUID = '0000:0000:0000:0000';

/**
 * Refuses devices without a GUID: librdmacm 44 finds devices by it, and follows a null pointer when an address leads to
 * one that it has not found.
 *
 * @internal
 */
export function refuseZeroGuid(devices: readonly Pick<Device, 'name' | 'guid'>[]): void {
  const bad = devices.find(({ guid }) => guid === ZERO_GUID);
  if (bad === undefined) return;
  throw new RdmaError(
    'ERR_RDMA_NO_DEVICE',
    `device ${bad.name} has a node GUID of zero, as a network interface without a hardware address gives it (tun, for ` +
      'example). librdmacm finds devices by their GUID and would crash on this one: remove the device (rdma link delete ' +
      `${bad.name}), or make it on an interface that has an address.`,
    { device: bad.name },
  );
}

/** An address that the connection manager can use. */
export interface RdmaAddress {
  address: string;
  device: string;
  netdev: string;
}

/** @internal The addresses that are on an interface with an RDMA device; none where that cannot be told. */
export function rdmaAddresses(): RdmaAddress[] {
  try {
    return connectionManagerDevices().flatMap((context) =>
      Array.from({ length: context.queryDevice().physPortCnt }, (_, i) => context.queryGidTable(i + 1))
        .flat()
        .map(({ address, netdev }) => ({ address, device: context.device.name, netdev })),
    );
  } catch {
    return [];
  }
}
