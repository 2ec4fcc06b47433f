import { AsyncEvents } from './async-events.js';
import { CompletionChannel } from './completion-channel.js';
import { checkEntries, CompletionQueue, type CompletionQueueOptions } from './completion-queue.js';
import {
  atomicCaps,
  linkLayers,
  mtuBytes,
  portStates,
  type AtomicCap,
  type LinkLayer,
  type Mtu,
  type PortState,
} from './constants.js';
import type { Device } from './device.js';
import { explaining, invalidArgType, RdmaError } from './errors.js';
import { chooseGid, gidEntry, type GidChoice, type GidEntry, type GidSelection } from './gid.js';
import { formatGuid } from './guid.js';
import { pinAdvice } from './memlock.js';
import type { NativeContext, NativeDeviceAttributes, NativePort } from './native.js';
import { netdevUnder, ownAddresses } from './netdev.js';
import { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions } from './validate.js';

/** All of `ibv_query_device_ex`, flat; sizes in bytes, counts as they are, capability masks as verbs has them. */
export interface DeviceAttributes extends Omit<
  NativeDeviceAttributes,
  'nodeGuid' | 'sysImageGuid' | 'atomicCap'
> {
  nodeGuid: string;
  sysImageGuid: string;
  atomicCap: AtomicCap;
}

/** `struct ibv_port_attr`. */
export interface PortAttributes extends Omit<NativePort, 'state' | 'maxMtu' | 'activeMtu' | 'linkLayer'> {
  state: PortState;
  /** Bytes of payload a packet, at the most. */
  maxMtu: Mtu;
  /** Bytes of payload a packet that the link carries now; on RoCE it follows the MTU of the network interface. */
  activeMtu: Mtu;
  linkLayer: LinkLayer;
}

/** An open device (`struct ibv_context`). Made by {@link openDevice}. */
export class Context extends Resource {
  readonly device: Device;
  /** What the device tells by itself: ports that come and go, queues that fail. */
  readonly events: AsyncEvents;
  readonly #native: NativeContext;
  #attributes: DeviceAttributes | undefined;

  /** @internal */
  constructor(native: NativeContext, device: Device) {
    super(native, []);
    this.#native = native;
    this.device = device;
    this.events = new AsyncEvents(this, native);
  }

  get label(): string {
    return `context of ${this.device.name}`;
  }

  /** What the device is and can do. `ibv_query_device_ex`; asked once, since it does not change. */
  queryDevice(): DeviceAttributes {
    return (this.#attributes ??= explaining(this.#subject(), noAdvice, () => {
      const raw = this.#native.queryDevice();
      return {
        ...raw,
        nodeGuid: formatGuid(raw.nodeGuid),
        sysImageGuid: formatGuid(raw.sysImageGuid),
        atomicCap: atomicCaps[raw.atomicCap] ?? 'none',
      };
    }));
  }

  /**
   * The state of a port, from 1. `ibv_query_port`
   *
   * @throws RangeError for a port that the device does not have
   */
  queryPort(port = 1): PortAttributes {
    integer('port', port, 1, this.queryDevice().physPortCnt);
    const raw = explaining(this.#subject(port), noAdvice, () => this.#native.queryPort(port));
    return {
      ...raw,
      state: portStates[raw.state] ?? 'nop',
      maxMtu: mtuOf(raw.maxMtu),
      activeMtu: mtuOf(raw.activeMtu),
      linkLayer: linkLayers[raw.linkLayer] ?? 'unspecified',
    };
  }

  /**
   * The P_Keys of a port, each at the index by which a queue pair names it: 16 bits in host order, the highest of them set for
   * full membership. On RoCE there is one, 0xffff. `ibv_query_pkey`
   *
   * @throws RangeError for a port that the device does not have
   */
  queryPkeyTable(port = 1): number[] {
    integer('port', port, 1, this.queryDevice().physPortCnt);
    return explaining(this.#subject(port), noAdvice, () => this.#native.queryPkeyTable(port));
  }

  /** The GID table of a port as it is now, without its empty places. `ibv_query_gid_table` */
  queryGidTable(port = 1): GidEntry[] {
    integer('port', port, 1, this.queryDevice().physPortCnt);
    return explaining(this.#subject(port), noAdvice, () => this.#native.queryGidTable())
      .filter((entry) => entry.port === port)
      .map(gidEntry);
  }

  /**
   * The GID of a port that a selection names; without one, the best for RoCE v2, with the reason: IPv4 before global IPv6
   * before link-local, and what belongs to other network namespaces last.
   *
   * @throws RdmaError `ERR_RDMA_NO_GID`, with what the table holds
   */
  chooseGid(selection: GidSelection = {}, port = 1): GidChoice {
    checkOptions('selection', selection);
    const entries = this.queryGidTable(port);
    const device = this.device.name;
    return chooseGid(entries, selection, {
      device,
      port,
      netdev: netdevUnder(device, port),
      addresses: ownAddresses(),
    });
  }

  /** Makes a protection domain. `ibv_alloc_pd` */
  allocPd(): ProtectionDomain {
    return this.allocPdFor(undefined);
  }

  /** @internal A protection domain that is closed with `owner`. */
  allocPdFor(owner: Resource | undefined): ProtectionDomain {
    return new ProtectionDomain(
      explaining(this.#subject(), noAdvice, () => this.#native.allocPd()),
      this,
      owner,
    );
  }

  /**
   * Makes a completion queue. `ibv_create_cq`
   *
   * It can be waited for: queues that name no channel share one of the context's, which takes one descriptor for all of
   * them and costs nothing until somebody waits.
   *
   * @throws RangeError for options out of range; RdmaError `ERR_RDMA_LIMIT` for more entries than the device offers,
   * `ERR_RDMA_FOREIGN_OBJECT` for a channel of another context, `ENOMEM` with the memlock limit
   */
  createCq(options: CompletionQueueOptions = {}): CompletionQueue {
    return this.createCqFor(undefined, options);
  }

  /** @internal A completion queue that is closed with `owner`. */
  createCqFor(owner: Resource | undefined, options: CompletionQueueOptions): CompletionQueue {
    checkOptions('options', options);
    const attributes = this.queryDevice();
    const { cqe = 256, compVector = 0 } = options;
    integer('cqe', cqe, 1, 2 ** 31 - 1);
    integer('compVector', compVector, 0, Math.max(attributes.numCompVectors, 1) - 1);
    checkEntries(cqe, this);
    const channel = this.#nativeChannel(options.channel);
    const advice = (errno: number) => pinAdvice(errno, cqe * 64);
    return new CompletionQueue(
      explaining(this.#subject(), advice, () => this.#native.createCq(cqe, compVector, channel)),
      this,
      options.channel,
      owner,
    );
  }

  /** Makes a completion channel, for completion queues to name. `ibv_create_comp_channel` */
  createCompletionChannel(): CompletionChannel {
    return new CompletionChannel(
      explaining(this.#subject(), noAdvice, () => this.#native.createCompletionChannel()),
      this,
    );
  }

  protected override onClosed(): void {
    this.events.closed();
  }

  #nativeChannel(channel: unknown) {
    if (channel === undefined || channel === null) return channel;
    if (!(channel instanceof CompletionChannel))
      throw invalidArgType('channel', 'a CompletionChannel or null', channel);
    if (channel.context !== this) {
      throw new RdmaError(
        'ERR_RDMA_FOREIGN_OBJECT',
        `${channel.label} belongs to another context than the completion queue`,
        { device: this.device.name },
      );
    }
    return channel.native;
  }

  #subject(port?: number) {
    return port === undefined ? { device: this.device.name } : { device: this.device.name, port };
  }
}

const noAdvice = () => '';

function mtuOf(code: number): Mtu {
  return mtuBytes[code as keyof typeof mtuBytes] ?? 256;
}
