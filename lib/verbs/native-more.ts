// The shape of what the addon has for single calls: functions of its own, which take native objects.
import type {
  NativeAddressHandle,
  NativeCompletionChannel,
  NativeCompletionQueue,
  NativeContext,
  NativeGid,
  NativeMemoryRegion,
  NativeProtectionDomain,
  NativeQueuePair,
  NativeResource,
  NativeSharedReceiveQueue,
  QueueLayout,
} from './native.js';

export interface NativeMemoryWindow extends NativeResource {
  readonly rkey: number;
  /** Of type 2: whether it is bound, as far as this side knows. */
  readonly bound: boolean;
}

export interface NativeDeviceMemory extends NativeResource {
  readonly handle: number;
  copy(toDevice: boolean, offset: number, bytes: Uint8Array): void;
  exportDmabufFd(): number;
}

export interface NativeReceiveWorkQueue extends NativeResource {
  readonly wqNum: number;
  readonly handle: number;
  readonly memory: ArrayBuffer;
  readonly receiveQueue: QueueLayout;
  readonly state: number;
  readonly postReceive: () => void;
  modify(mask: number, state: number, currentState: number, flags: number, flagsMask: number): void;
}

export interface NativeRssQueuePair extends NativeResource {
  readonly qpNum: number;
  modify(mask: number, attributes: Uint32Array): void;
}

export interface NativeFlowAction extends NativeResource {
  modify(words: Uint32Array): void;
}

export interface NativeCounters extends NativeResource {
  attach(description: number, index: number, flow: NativeResource | undefined): void;
  read(count: number, flags: number): BigUint64Array;
}

/** A range of a region, for each element of a list. */
export type NativeElements = (NativeMemoryRegion | number)[];

export interface NativeSingleCalls {
  // Memory
  allocNullMr(pd: NativeProtectionDomain): NativeMemoryRegion;
  regImplicitMr(pd: NativeProtectionDomain, access: number): NativeMemoryRegion;
  /** A promise unless `sync`, as of the next ones that have it. */
  regDmabufMr(
    pd: NativeProtectionDomain,
    fd: number,
    offset: number,
    length: number,
    iova: bigint,
    access: number,
    sync: boolean,
  ): NativeMemoryRegion | Promise<NativeMemoryRegion>;
  regDmMr(
    pd: NativeProtectionDomain,
    dm: NativeDeviceMemory,
    offset: number,
    length: number,
    access: number,
  ): NativeMemoryRegion;
  importMr(
    pd: NativeProtectionDomain,
    handle: number,
    iova: bigint,
    length: number,
    access: number,
  ): NativeMemoryRegion;
  reregMr(
    mr: NativeMemoryRegion,
    flags: number,
    pd: NativeProtectionDomain,
    source: number | ArrayBufferView | undefined,
    access: number,
    sync: boolean,
  ): undefined | Promise<void>;
  adviseMr(
    pd: NativeProtectionDomain,
    advice: number,
    flags: number,
    sync: boolean,
    count: number,
    ...elements: NativeElements
  ): undefined | Promise<void>;
  allocDm(context: NativeContext, length: number, logAlignment: number): NativeDeviceMemory;
  importDm(context: NativeContext, handle: number, length: number): NativeDeviceMemory;
  allocMw(pd: NativeProtectionDomain, type: number): NativeMemoryWindow;
  bindMw(
    mw: NativeMemoryWindow,
    qp: NativeQueuePair,
    mr: NativeMemoryRegion,
    offset: number,
    length: number,
    access: number,
    wrId: bigint,
    flags: number,
  ): number;
  invalidateMw(mw: NativeMemoryWindow, qp: NativeQueuePair, wrId: bigint, flags: number): number;

  // Domains
  allocTd(context: NativeContext): NativeResource;
  openXrcd(context: NativeContext, fd: number | undefined, flags: number): NativeResource;
  allocParentDomain(pd: NativeProtectionDomain, td: NativeResource | undefined): NativeProtectionDomain;
  importPd(context: NativeContext, handle: number): NativeProtectionDomain;

  // Contexts
  importDevice(fd: number): NativeContext;
  commandFd(context: NativeContext): number;
  queryGid(context: NativeContext, port: number, index: number): Uint8Array;
  queryGidEntry(context: NativeContext, port: number, index: number): NativeGid;
  queryPkey(context: NativeContext, port: number, index: number): number;
  pkeyIndex(context: NativeContext, port: number, pkey: number): number;
  queryRtValues(context: NativeContext): bigint;
  queryPortSpeed(context: NativeContext, port: number): number;
  resolveEthL2(context: NativeContext, words: Uint32Array): Promise<{ mac: Uint8Array; vlan: number }>;

  // Completion queues
  createCqEx(
    context: NativeContext,
    cqe: number,
    compVector: number,
    channel: NativeCompletionChannel | null | undefined,
    wcFlags: number,
    flags: number,
    pd: NativeProtectionDomain | undefined,
  ): NativeCompletionQueue;
  extendedPoll(cq: NativeCompletionQueue, limit: number): BigUint64Array;
  modifyCq(cq: NativeCompletionQueue, count: number, periodMicroseconds: number): void;

  // Shared receive queues
  srqNum(srq: NativeSharedReceiveQueue): number;
  postSrqOps(
    srq: NativeSharedReceiveQueue,
    words: Uint32Array,
    tag: bigint,
    mask: bigint,
    wrId: bigint,
    recvWrId: bigint,
    ...elements: NativeElements
  ): number;

  // Queue pairs
  sendTso(
    qp: NativeQueuePair,
    header: Uint8Array,
    mss: number,
    ah: NativeAddressHandle | undefined,
    remoteQpn: number,
    remoteQkey: number,
    wrId: bigint,
    flags: number,
    count: number,
    ...elements: NativeElements
  ): void;
  attachMcast(qp: NativeQueuePair, gid: Uint8Array, lid: number): void;
  detachMcast(qp: NativeQueuePair, gid: Uint8Array, lid: number): void;
  setEce(qp: NativeQueuePair, vendorId: number, options: number): void;
  queryEce(qp: NativeQueuePair): { vendorId: number; options: number };
  modifyQpRateLimit(qp: NativeQueuePair, rateLimit: number, maxBurst: number, typicalPacket: number): void;
  queryQpDataInOrder(qp: NativeQueuePair, opcode: number, flags: number): number;
  createWq(
    pd: NativeProtectionDomain,
    cq: NativeCompletionQueue,
    maxWr: number,
    maxSge: number,
    flags: number,
    descriptors: number,
  ): NativeReceiveWorkQueue;
  createRwqIndTable(
    context: NativeContext,
    logSize: number,
    ...queues: NativeReceiveWorkQueue[]
  ): NativeResource;
  createRssQp(
    pd: NativeProtectionDomain,
    table: NativeResource,
    type: number,
    hashFunction: number,
    key: Uint8Array,
    hashFields: bigint,
    createFlags: number,
  ): NativeRssQueuePair;

  // Flow steering
  createFlow(
    qp: NativeQueuePair | NativeRssQueuePair,
    words: Uint32Array,
    specs: Uint8Array,
    ...objects: (number | NativeFlowAction | NativeCounters)[]
  ): NativeResource;
  createFlowActionEsp(context: NativeContext, words: Uint32Array): NativeFlowAction;
  createCounters(context: NativeContext): NativeCounters;

  // The library
  wcStatusString(status: number): string;
  nodeTypeString(type: number): string;
  portStateString(state: number): string;
  eventTypeString(type: number): string;
  cmEventString(type: number): string;
  wrOpcodeString(opcode: number): string;
  rateToMult(rate: number): number;
  multToRate(multiple: number): number;
  rateToMbps(rate: number): number;
  mbpsToRate(mbps: number): number;
  forkStatus(): number;
  forkInit(): void;
}
