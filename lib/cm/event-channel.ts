import { PortSpaceNumber, type PortSpace } from './constants.js';
import { explain, RdmaError } from '../verbs/errors.js';
import { listDevices } from '../verbs/device.js';
import { native, type NativeEventChannel } from '../verbs/native.js';
import { Resource } from '../verbs/resource.js';
import { cmChannelRoutes } from '../verbs/routes.js';
import { wordNumber } from '../verbs/validate.js';
import { refuseZeroGuid } from './devices.js';
import { CmId } from './id.js';

/** Identifiers of which something is awaited: nothing else may hold them. */
const awaited = new Map<Resource, number>();

/**
 * An event channel of the connection manager (`struct rdma_event_channel`): events of the identifiers made on it come here.
 * Made by {@link createEventChannel}.
 *
 * The library reads and acknowledges them by itself, and gives each to its identifier; so one channel serves any number of
 * identifiers. It keeps the process alive only while something is awaited on one of them, or one listens.
 */
export class EventChannel extends Resource {
  readonly #native: NativeEventChannel;

  /** @internal */
  constructor(channel: NativeEventChannel) {
    super(channel, []);
    this.#native = channel;
    cmChannelRoutes.add(channel.serial, this);
  }

  get label(): string {
    return `event channel ${this.fd}`;
  }

  /** The descriptor. The library reads it: leave its events alone. */
  get fd(): number {
    return this.#native.fd;
  }

  /** @internal */
  get native(): NativeEventChannel {
    return this.#native;
  }

  /**
   * Makes an identifier: one end of a connection to be, or a listener. `rdma_create_id`
   *
   * @throws RangeError for an unknown port space; RdmaError as the system has it
   */
  createId(portSpace: PortSpace = 'tcp'): CmId {
    const number = wordNumber('portSpace', PortSpaceNumber, portSpace);
    try {
      return new CmId(this.#native.createId(number), this);
    } catch (error) {
      throw explain(error, {});
    }
  }

  /** @internal Keeps the process, and the identifier, alive until the function that it returns is called. */
  hold(owner: Resource): () => void {
    this.#native.ref();
    awaited.set(owner, (awaited.get(owner) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#native.unref();
      const count = awaited.get(owner)! - 1;
      if (count > 0) awaited.set(owner, count);
      else awaited.delete(owner);
    };
  }

  /** @internal The channel gives no more events. */
  fail(errno: number): void {
    const error = RdmaError.fromErrno('rdma_get_cm_event', errno, {}, 'No more events come to this channel');
    for (const resource of this.descendants()) if (resource instanceof CmId) resource.fail(error);
  }
}

/**
 * Opens the connection manager. `rdma_create_event_channel`
 *
 * @throws RdmaError `ERR_RDMA_NO_DEVICE` where there is no RDMA device, or one with a GUID of zero, which librdmacm does not
 * survive; `ENOENT`, `EACCES` and others with what to do; `ERR_RDMA_LOAD`
 */
export function createEventChannel(): EventChannel {
  refuseZeroGuid(listDevices());
  try {
    return new EventChannel(native().createEventChannel());
  } catch (error) {
    if (error instanceof RdmaError && error.code === 'ENODEV') {
      throw new RdmaError('ERR_RDMA_NO_DEVICE', `${error.message}. ${channelAdvice(19)}`, { cause: error });
    }
    throw explain(error, {}, channelAdvice);
  }
}

function channelAdvice(errno: number): string {
  switch (errno) {
    case 19: // ENODEV
      return (
        'The kernel has no RDMA device that this process may use. Load the driver of your NIC, or try Soft-RoCE: ' +
        'npx node-rdma rxe run -- COMMAND'
      );
    case 2: // ENOENT
    case 6: // ENXIO
      return '/dev/infiniband/rdma_cm is missing: modprobe rdma_ucm; in a container: --device /dev/infiniband/rdma_cm';
    case 1: // EPERM
    case 13: // EACCES
      return 'This user may not open /dev/infiniband/rdma_cm: mode 0666 is usual; in a container: --device /dev/infiniband/rdma_cm';
    default:
      return '';
  }
}
