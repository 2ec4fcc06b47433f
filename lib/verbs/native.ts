// Loads the addon, on the first call that needs it, and declares its shape. Nothing else imports the addon.
import { createRequire } from 'node:module';
import { packageFolder } from '../package.js';
import { RdmaError } from './errors.js';
import type { NativeSingleCalls } from './native-more.js';
import { reportLeak } from './leaks.js';
import { asyncEventRoutes, cmChannelRoutes, cmIdRoutes, completionRoutes } from './routes.js';

/** What every native object of the addon can do. */
export interface NativeResource {
  readonly closed: boolean;
  close(): void;
  closeAsync(): Promise<void>;
}

export interface NativeDevice {
  name: string;
  index: number;
  guid: bigint;
  nodeType: number;
  transport: number;
  sysfsPath: string;
  uverbs: string;
}

export interface NativePort {
  state: number;
  maxMtu: number;
  activeMtu: number;
  gidTblLen: number;
  portCapFlags: number;
  portCapFlags2: number;
  maxMsgSz: number;
  badPkeyCntr: number;
  qkeyViolCntr: number;
  pkeyTblLen: number;
  lid: number;
  smLid: number;
  lmc: number;
  maxVlNum: number;
  smSl: number;
  subnetTimeout: number;
  initTypeReply: number;
  activeWidth: number;
  activeSpeed: number;
  physState: number;
  linkLayer: number;
  flags: number;
}

export interface NativeGid {
  raw: Uint8Array;
  index: number;
  port: number;
  type: number;
  netdevIndex: number;
  netdev: string;
}

export type NativeDeviceAttributes = Record<
  | 'vendorId'
  | 'vendorPartId'
  | 'hwVer'
  | 'maxQp'
  | 'maxQpWr'
  | 'deviceCapFlags'
  | 'maxSge'
  | 'maxSgeRd'
  | 'maxCq'
  | 'maxCqe'
  | 'maxMr'
  | 'maxPd'
  | 'maxQpRdAtom'
  | 'maxEeRdAtom'
  | 'maxResRdAtom'
  | 'maxQpInitRdAtom'
  | 'maxEeInitRdAtom'
  | 'atomicCap'
  | 'maxEe'
  | 'maxRdd'
  | 'maxMw'
  | 'maxRawIpv6Qp'
  | 'maxRawEthyQp'
  | 'maxMcastGrp'
  | 'maxMcastQpAttach'
  | 'maxTotalMcastQpAttach'
  | 'maxAh'
  | 'maxFmr'
  | 'maxMapPerFmr'
  | 'maxSrq'
  | 'maxSrqWr'
  | 'maxSrqSge'
  | 'maxPkeys'
  | 'localCaAckDelay'
  | 'physPortCnt'
  | 'numCompVectors'
  | 'odpRcCaps'
  | 'odpUcCaps'
  | 'odpUdCaps'
  | 'tsoMax'
  | 'tsoQpts'
  | 'rssQpts'
  | 'rssMaxRwqIndirectionTables'
  | 'rssMaxRwqIndirectionTableSize'
  | 'rssRxHashFunction'
  | 'maxWqTypeRq'
  | 'packetPacingRateMin'
  | 'packetPacingRateMax'
  | 'packetPacingQpts'
  | 'rawPacketCaps'
  | 'tmMaxRndvHdrSize'
  | 'tmMaxNumTags'
  | 'tmFlags'
  | 'tmMaxOps'
  | 'tmMaxSge'
  | 'cqModMaxCount'
  | 'cqModMaxPeriod'
  | 'pciAtomicFetchAdd'
  | 'pciAtomicSwap'
  | 'pciAtomicCompareSwap'
  | 'xrcOdpCaps'
  | 'physPortCntEx',
  number
> &
  Record<
    | 'nodeGuid'
    | 'sysImageGuid'
    | 'maxMrSize'
    | 'pageSizeCap'
    | 'odpGeneralCaps'
    | 'completionTimestampMask'
    | 'hcaCoreClock'
    | 'deviceCapFlagsEx'
    | 'rssRxHashFieldsMask'
    | 'maxDmSize',
    bigint
  > & { fwVer: string };

export interface NativeContext extends NativeResource {
  readonly device: NativeDevice;
  queryDevice(): NativeDeviceAttributes;
  queryPort(port: number): NativePort;
  queryGidTable(): NativeGid[];
  allocPd(): NativeProtectionDomain;
  /** Without a channel it has the context's own; with null it has none. */
  createCq(
    cqe: number,
    compVector: number,
    channel: NativeCompletionChannel | null | undefined,
  ): NativeCompletionQueue;
  createCompletionChannel(): NativeCompletionChannel;
  /** By which asynchronous events name the context. */
  readonly serial: number;
  /** Whether the process lives on while nothing but asynchronous events of the context can come. */
  ref(ref: boolean): void;
}

export interface NativeCompletionChannel extends NativeResource {
  readonly fd: number;
}

export type NativeQueuePairOptions = [
  type: number,
  sendCq: NativeCompletionQueue,
  recvCq: NativeCompletionQueue,
  srq: NativeSharedReceiveQueue | undefined,
  cap: Uint32Array,
  sqSigAll: boolean,
  descriptors: number,
  /** Of an extended queue pair: see `extensionOf`. */
  extension: Uint32Array | undefined,
  xrcd: NativeResource | undefined,
];

export type NativeSrqExtension = [
  type: number,
  xrcd: NativeResource | undefined,
  cq: NativeCompletionQueue,
  maxNumTags: number,
  maxOps: number,
];

export interface NativeProtectionDomain extends NativeResource {
  readonly handle: number;
  regMr(
    source: number | ArrayBufferView,
    access: number,
    pageSize: number,
    iova: bigint | undefined,
  ): Promise<NativeMemoryRegion>;
  regMrSync(
    source: number | ArrayBufferView,
    access: number,
    pageSize: number,
    iova: bigint | undefined,
  ): NativeMemoryRegion;
  createQp(...options: NativeQueuePairOptions): NativeQueuePair;
  createSrq(
    maxWr: number,
    maxSge: number,
    srqLimit: number,
    descriptors: number,
    ...extension: [] | NativeSrqExtension
  ): NativeSharedReceiveQueue;
  createAh(words: Uint32Array): Promise<NativeAddressHandle>;
  createAhSync(words: Uint32Array): NativeAddressHandle;
  createAhFromWc(port: number, completion: Uint32Array, header: Uint8Array): Promise<NativeAddressHandle>;
  createAhFromWcSync(port: number, completion: Uint32Array, header: Uint8Array): NativeAddressHandle;
}

export interface NativeMemoryRegion extends NativeResource {
  readonly buffer?: ArrayBuffer;
  readonly view?: ArrayBufferView;
  readonly slot: number;
  readonly lkey: number;
  readonly rkey: number;
  readonly handle: number;
  readonly iova: bigint;
  readonly length: number;
  readonly workRequests: number;
}

export interface NativeCompletionQueue extends NativeResource {
  readonly records: ArrayBuffer;
  readonly handle: number;
  /** By which completion events name the queue. */
  readonly serial: number;
  /** Fills as many records as `limit` of the counters allows; `filled` tells how many it were. */
  readonly poll: () => void;
  /** Whether a poll would find a completion, at once or within some microseconds. */
  readonly ready: (spinMicroseconds: number) => boolean;
  readonly reqNotify: (solicitedOnly: boolean) => void;
  resize(cqe: number): Promise<void>;
  resizeSync(cqe: number): void;
  /** Counted: from the first until the last of them is undone, the process lives on. */
  ref(): void;
  unref(): void;
}

/** Where the parts of one queue lie in a queue pair's memory, in bytes. */
export interface QueueLayout {
  readonly counters: number;
  readonly descriptors: number;
  readonly descriptorCount: number;
  readonly elements: number;
  readonly inlineArea: number;
  readonly inlineStride: number;
  readonly maxSge: number;
}

export interface NativeQueuePair extends NativeResource {
  readonly qpNum: number;
  readonly handle: number;
  readonly maxInlineData: number;
  readonly memory: ArrayBuffer;
  readonly sendQueue: QueueLayout;
  readonly receiveQueue: QueueLayout;
  readonly state: number;
  /** Posts what `wanted` of the queue's counters says; `posted` tells how much it was. */
  readonly postSend: () => void;
  /** The same, by `ibv_wr_*`. */
  readonly postExtended: () => void;
  readonly postReceive: () => void;
  modify(mask: number, attributes: Uint32Array): Promise<void>;
  modifySync(mask: number, attributes: Uint32Array): void;
  query(): Uint32Array;
}

export interface NativeSharedReceiveQueue extends NativeResource {
  readonly handle: number;
  readonly memory: ArrayBuffer;
  readonly receiveQueue: QueueLayout;
  readonly postReceive: () => void;
  modify(srqLimit: number): void;
  resize(maxWr: number): Promise<void>;
  resizeSync(maxWr: number): void;
  query(): { maxWr: number; maxSge: number; srqLimit: number };
}

export interface NativeAddressHandle extends NativeResource {
  readonly slot: number;
  /** The address vector that it was made from. */
  readonly words: Uint32Array;
  readonly handle: number;
  readonly workRequests: number;
}

/** An address of IP with a port in host order. */
export interface NativeSocketAddress {
  family: 'IPv4' | 'IPv6';
  address: string;
  port: number;
}

export interface NativeEventChannel extends NativeResource {
  readonly serial: number;
  readonly fd: number;
  createId(portSpace: number): NativeCmId;
  /** Counted: from the first until the last of them is undone, the process lives on. */
  ref(): void;
  unref(): void;
}

export interface NativeCmEvent {
  type: number;
  /** 0, a negative errno, or the reason of a rejection. */
  status: number;
  /** Serial of the identifier; of the listener for a request. */
  id: number;
  request?: NativeCmId;
  remoteQpn: number;
  privateData: Buffer;
  /** Of datagrams, as are the next two: the words of an address vector. */
  address?: Uint32Array;
  remoteQkey?: number;
  /** Serial of the join. */
  multicast?: number;
  /** Of connections, as are the rest. */
  responderResources?: number;
  initiatorDepth?: number;
  flowControl?: boolean;
  retryCount?: number;
  rnrRetryCount?: number;
  srq?: boolean;
}

export interface NativeCmId extends NativeResource {
  readonly serial: number;
  readonly portSpace: number;
  readonly qpType: number;
  bindAddr(host: string, port: number): void;
  resolveAddr(
    timeoutMs: number,
    host: string,
    port: number,
    sourceHost: string | undefined,
    sourcePort: number,
  ): void;
  resolveRoute(timeoutMs: number): Promise<void>;
  createQp(pd: NativeProtectionDomain, ...options: NativeQueuePairOptions): NativeQueuePair;
  connect(parameters: Uint32Array, privateData: Uint8Array | undefined): Promise<void>;
  establish(): Promise<void>;
  listen(backlog: number): void;
  accept(parameters: Uint32Array, privateData: Uint8Array | undefined): Promise<void>;
  reject(privateData: Uint8Array | undefined, ece: boolean): void;
  disconnect(): void;
  notify(event: number): void;
  /** The mask, then the words of the attributes. */
  initQpAttr(state: number): Uint32Array;
  setOption(level: number, name: number, value: Uint8Array): void;
  setLocalEce(vendorId: number, options: number): void;
  getRemoteEce(): { vendorId: number; options: number };
  migrate(channel: NativeEventChannel): void;
  joinMulticast(host: string, port: number, sendOnly: boolean): number;
  leaveMulticast(host: string, port: number): void;
  route(): {
    local?: NativeSocketAddress;
    peer?: NativeSocketAddress;
    portNum: number;
    sgid: Uint8Array;
    dgid: Uint8Array;
    pkey: number;
  };
  context(): NativeContext | undefined;
}

export interface NativeAddressInfo {
  flags: number;
  qpType: number;
  portSpace: number;
  source?: NativeSocketAddress;
  destination?: NativeSocketAddress;
  sourceName?: string;
  destinationName?: string;
  route?: Uint8Array;
  connect?: Uint8Array;
}

export interface NativeAddon extends NativeSingleCalls {
  setCallbacks(
    errorFromErrno: (syscall: string, errno: number) => Error,
    errorFromCode: (code: string, message: string) => Error,
    onLeak: (kind: string) => void,
    onCompletionEvents: (queues: number[], errno: number) => void,
    onAsyncEvents: (context: number, events: number[]) => void,
    onCmEvents: (channel: number, events: NativeCmEvent[], errno: number) => void,
  ): void;
  deviceList(): NativeDevice[];
  openDevice(name: string): NativeContext;
  createEventChannel(): NativeEventChannel;
  /** Of every device that the connection manager knows. Always the same object for a context that is open. */
  connectionManagerContexts(): NativeContext[];
  getAddressInfo(
    node: string | undefined,
    service: string | undefined,
    flags: number,
    family: number,
    portSpace: number,
    qpType: number,
    source: string | undefined,
    sourcePort: number,
  ): Promise<NativeAddressInfo[]>;
  udpSourcePort(flowLabel: number): number;
  /** Numbers and offsets as the installed headers have them, for the tests. */
  headerConstants(): Record<string, Record<string, number>>;
}

let addon: NativeAddon | undefined;

/**
 * The addon, loaded on the first call.
 *
 * @throws RdmaError `ERR_RDMA_LOAD`, with each thing that was tried and what to install
 */
export function native(): NativeAddon {
  return (addon ??= load());
}

function load(): NativeAddon {
  const require = createRequire(import.meta.url);
  const override = process.env.NODE_RDMA_ADDON;
  const tried: string[] = [];
  try {
    let file = override;
    if (file === undefined) {
      tried.push(`prebuilds and build/Release in ${packageFolder}`);
      file = (require('node-gyp-build') as { path(folder: string): string }).path(packageFolder);
    }
    tried.push(file);
    const loaded = require(file) as NativeAddon;
    loaded.setCallbacks(
      (syscall, errno) => RdmaError.fromErrno(syscall, errno),
      (code, message) => new RdmaError(code, message),
      reportLeak,
      (queues, errno) => {
        for (const serial of queues) completionRoutes.get(serial)?.notified(errno);
      },
      (context, events) => asyncEventRoutes.get(context)?.receive(events),
      (channel, events, errno) => {
        for (const event of events) {
          const id = cmIdRoutes.get(event.id);
          if (id) id.receive(event);
          // Nobody is left to take it: destroying it tells the peer so.
          else event.request?.close();
        }
        if (errno !== 0) cmChannelRoutes.get(channel)?.fail(errno);
      },
    );
    return loaded;
  } catch (cause) {
    throw new RdmaError('ERR_RDMA_LOAD', loadFailure(cause as Error, tried), { cause });
  }
}

function loadFailure(cause: Error, tried: string[]): string {
  const library = /lib(ibverbs|rdmacm)\.so[^:]*: cannot open shared object/.exec(cause.message)?.[1];
  let advice: string;
  if (library !== undefined) {
    advice =
      `This machine has no lib${library}. Install it: apt-get install libibverbs1 librdmacm1 ibverbs-providers ` +
      `(on Fedora and RHEL: dnf install libibverbs librdmacm).`;
  } else if (/No native build was found/.test(cause.message)) {
    advice =
      'There is no prebuilt addon for this platform, and none was built here. Build it: apt-get install python3 ' +
      'make g++ libibverbs-dev librdmacm-dev, then npm rebuild node-rdma.';
  } else {
    advice = 'If it was built for another system or Node.js, build it here: npm rebuild node-rdma.';
  }
  return `cannot load the native addon. ${advice} Tried: ${tried.join('; ')}. It said: ${cause.message.trim()}`;
}
