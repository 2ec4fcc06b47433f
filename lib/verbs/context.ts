import { AsyncEvents } from './async-events.js';
import { CompletionChannel } from './completion-channel.js';
import { checkEntries, CompletionQueue, type CompletionQueueOptions } from './completion-queue.js';
import {
  atomicCaps,
  linkLayers,
  mtuBytes,
  portStates,
  WcFlags,
  type AtomicCap,
  type LinkLayer,
  type Mtu,
  type PortState,
} from './constants.js';
import type { Device } from './device.js';
import { allocDm, importDm, type DeviceMemory, type DeviceMemoryOptions } from './device-memory.js';
import { ThreadDomain, XrcDomain, type XrcDomainOptions } from './domains.js';
import { explaining, explainingAsync, invalidArgType, RdmaError } from './errors.js';
import {
  createFlags,
  ExtendedCompletionQueue,
  type ExtendedCompletionQueueOptions,
} from './extended-completion-queue.js';
import { Counters, FlowAction, type EspOptions } from './flow-objects.js';
import { chooseGid, formatGid, gidEntry, type GidChoice, type GidEntry, type GidSelection } from './gid.js';
import { formatGuid } from './guid.js';
import { ADDRESS_VECTOR_WORDS } from './layout.js';
import { pinAdvice } from './memlock.js';
import { native, type NativeContext, type NativeDeviceAttributes, type NativePort } from './native.js';
import { netdevUnder, ownAddresses } from './netdev.js';
import { addressAdvice } from './path.js';
import { ProtectionDomain } from './protection-domain.js';
import { packAddress, type AddressVector } from './queue-pair-attributes.js';
import { IndirectionTable, type ReceiveWorkQueue } from './receive-work-queue.js';
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

  /** @internal */
  get native(): NativeContext {
    return this.#native;
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
    const { pkeyTblLen } = this.queryPort(port);
    return this.#ofPort(port, () =>
      Array.from({ length: pkeyTblLen }, (_, index) => native().queryPkey(this.#native, port, index)),
    );
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

  /**
   * The GID at an index of a port; `'::'` where the place is empty. `ibv_query_gid`. {@link queryGidTable} tells more.
   *
   * @throws RangeError; RdmaError for an index outside the table
   */
  queryGid(index: number, port = 1): string {
    return formatGid(this.#ofPort(port, () => native().queryGid(this.#native, port, tableIndex(index))));
  }

  /**
   * An entry of a port's GID table. `ibv_query_gid_ex`
   *
   * @throws RangeError; RdmaError `ENODATA` for an empty place, `EINVAL` for one outside the table
   */
  queryGidEntry(index: number, port = 1): GidEntry {
    return gidEntry(this.#ofPort(port, () => native().queryGidEntry(this.#native, port, tableIndex(index))));
  }

  /**
   * The P_Key at an index of a port, in host order. `ibv_query_pkey`
   *
   * @throws RangeError for an index outside the table
   */
  queryPkey(index = 0, port = 1): number {
    const { pkeyTblLen } = this.queryPort(port);
    integer('index', index, 0, pkeyTblLen - 1);
    return this.#ofPort(port, () => native().queryPkey(this.#native, port, index));
  }

  /** The index of a P_Key in the table of a port; undefined where it is not there. `ibv_get_pkey_index` */
  getPkeyIndex(pkey: number, port = 1): number | undefined {
    integer('pkey', pkey, 0, 2 ** 16 - 1);
    const index = this.#ofPort(port, () => native().pkeyIndex(this.#native, port, pkey));
    return index < 0 ? undefined : index;
  }

  /**
   * The device's own clock now, in ticks of `hcaCoreClock` kHz. `ibv_query_rt_values_ex`. Arguments checked, not run on a NIC:
   * rxe has no clock.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  queryRawClock(): bigint {
    return explaining(this.#subject(), noAdvice, () => native().queryRtValues(this.#native));
  }

  /**
   * The speed of a port, in units of 100 Mbit/s. `ibv_query_port_speed`, newer than rdma-core 44.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED` where the library or the provider has no such function
   */
  queryPortSpeed(port = 1): number {
    return this.#ofPort(port, () => native().queryPortSpeed(this.#native, port));
  }

  /**
   * The link address, and the VLAN if any, by which a peer's GID is reached: asks the kernel's neighbour table, on another
   * thread. `ibv_resolve_eth_l2_from_gid`
   *
   * @throws TypeError, RangeError; RdmaError `EHOSTUNREACH` and the like where the peer's address was not found
   */
  async resolveEthL2(vector: AddressVector): Promise<{ mac: string; vlan: number | undefined }> {
    if (vector === undefined) throw invalidArgType('vector', 'an address vector', vector);
    checkOptions('vector', vector);
    const complete: AddressVector = { portNum: 1, sgidIndex: this.chooseGid({}).index, ...vector };
    const words = new Uint32Array(ADDRESS_VECTOR_WORDS);
    packAddress(words, 0, 'vector', complete);
    const { mac, vlan } = await explainingAsync(
      this.#subject(complete.portNum),
      (errno) => addressAdvice(errno, this, complete),
      () => native().resolveEthL2(this.#native, words),
    );
    return {
      mac: Buffer.from(mac)
        .toString('hex')
        .replace(/(..)(?=.)/g, '$1:'),
      vlan: vlan === NO_VLAN ? undefined : vlan,
    };
  }

  /**
   * The descriptor by which another process imports the context ({@link importDevice}), when it was sent there. It stays the
   * context's own: do not close it.
   */
  get commandFd(): number {
    return native().commandFd(this.#native);
  }

  /**
   * The domain that another process has made, in a context that was imported, by its {@link ProtectionDomain.handle}. Closing
   * it leaves the other process's as it is. `ibv_import_pd`, `ibv_unimport_pd`. Arguments checked, not run on a NIC: rxe has
   * no import.
   */
  importPd(handle: number): ProtectionDomain {
    integer('handle', handle, 0, 2 ** 32 - 1);
    return new ProtectionDomain(
      explaining(this.#subject(), noAdvice, () => native().importPd(this.#native, handle)),
      this,
    );
  }

  /**
   * Makes memory on the device. `ibv_alloc_dm`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_LIMIT`, `ERR_RDMA_UNSUPPORTED`
   */
  allocDm(options: DeviceMemoryOptions): DeviceMemory {
    return allocDm(this, options);
  }

  /**
   * The device memory of another process, by its {@link DeviceMemory.handle} and its length in bytes. `ibv_import_dm`,
   * `ibv_unimport_dm`. Arguments checked, not run on a NIC: rxe has no import.
   */
  importDm(handle: number, length: number): DeviceMemory {
    return importDm(this, handle, length);
  }

  /**
   * Makes a thread domain. `ibv_alloc_td`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  allocTd(): ThreadDomain {
    return new ThreadDomain(this);
  }

  /**
   * Opens an XRC domain. `ibv_open_xrcd`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  openXrcd(options: XrcDomainOptions = {}): XrcDomain {
    return new XrcDomain(this, options);
  }

  /**
   * Makes an indirection table over work queues, a power of two of them; one may be in it several times.
   * `ibv_create_rwq_ind_table`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  createRwqIndTable(queues: readonly ReceiveWorkQueue[]): IndirectionTable {
    return new IndirectionTable(this, queues);
  }

  /**
   * Makes counters. `ibv_create_counters`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  createCounters(): Counters {
    return new Counters(this);
  }

  /**
   * Makes an action for packets of IPsec. `ibv_create_flow_action_esp`; headers around the payload of tunnel mode
   * (`esp_encap`) cannot be given. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  createFlowActionEsp(options: EspOptions): FlowAction {
    return new FlowAction(this, options);
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
      ...(owner === undefined ? [] : [owner]),
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
    const { cqe, compVector, channel, advice } = this.#checkQueue(options);
    return new CompletionQueue(
      explaining(this.#subject(), advice, () => this.#native.createCq(cqe, compVector, channel)),
      this,
      options.channel,
      owner,
    );
  }

  /**
   * Makes a completion queue that tells more of each completion. `ibv_create_cq_ex`. rxe has the flags of
   * `WcFlags.STANDARD`, and none of the options besides; of the others the arguments are checked, and they were not run on a
   * NIC.
   *
   * @throws as {@link createCq}; RdmaError `ERR_RDMA_UNSUPPORTED` for flags or options that the device lacks
   */
  createCqEx(options: ExtendedCompletionQueueOptions = {}): ExtendedCompletionQueue {
    const { cqe, compVector, channel, advice } = this.#checkQueue(options);
    const { parentDomain } = options;
    if (parentDomain !== undefined && !(parentDomain instanceof ProtectionDomain))
      throw invalidArgType('parentDomain', 'a ProtectionDomain', parentDomain);
    // Failures name their queue pair in every case.
    const wcFlags = integer('wcFlags', options.wcFlags ?? WcFlags.STANDARD, 0, 2 ** 32 - 1) | WcFlags.QP_NUM;
    const made = explaining(this.#subject(), advice, () =>
      native().createCqEx(
        this.#native,
        cqe,
        compVector,
        channel,
        wcFlags >>> 0,
        createFlags(options),
        parentDomain?.native,
      ),
    );
    return new ExtendedCompletionQueue(made, this, options.channel, wcFlags, parentDomain);
  }

  #checkQueue(options: CompletionQueueOptions) {
    checkOptions('options', options);
    const attributes = this.queryDevice();
    const { cqe = 256, compVector = 0 } = options;
    integer('cqe', cqe, 1, 2 ** 31 - 1);
    integer('compVector', compVector, 0, Math.max(attributes.numCompVectors, 1) - 1);
    checkEntries(cqe, this);
    const channel = this.#nativeChannel(options.channel);
    const advice = (errno: number) => pinAdvice(errno, cqe * 64);
    return { cqe, compVector, channel, advice };
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

  /** Asks something about a port that the device has. */
  #ofPort<T>(port: number, ask: () => T): T {
    integer('port', port, 1, this.queryDevice().physPortCnt);
    return explaining(this.#subject(port), noAdvice, ask);
  }

  #subject(port?: number) {
    return port === undefined ? { device: this.device.name } : { device: this.device.name, port };
  }
}

const noAdvice = () => '';

/** As the library says where there is none. */
const NO_VLAN = 0xffff;

function tableIndex(index: unknown): number {
  return integer('index', index, 0, 2 ** 31 - 1);
}

function mtuOf(code: number): Mtu {
  return mtuBytes[code as keyof typeof mtuBytes] ?? 256;
}
