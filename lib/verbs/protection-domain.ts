import { AddressHandle } from './address-handle.js';
import { Access, CompletionFlags } from './constants.js';
import type { Context } from './context.js';
import type { DeviceMemory } from './device-memory.js';
import { ThreadDomain } from './domains.js';
import { explaining, explainingAsync, invalidArgType, outOfRange, RdmaError } from './errors.js';
import type { GidSelection } from './gid.js';
import { parseGrh } from './grh.js';
import { hugePageAdvice } from './huge-pages.js';
import { keepInPlace } from './keep-in-place.js';
import { ADDRESS_VECTOR_WORDS } from './layout.js';
import { pinAdvice } from './memlock.js';
import { MemoryRegion, type RegisterOptions } from './memory-region.js';
import * as kinds from './memory-kinds.js';
import { checkAccess } from './memory-kinds.js';
import { MemoryWindow, type MemoryWindowType } from './memory-window.js';
import { native, type NativeProtectionDomain } from './native.js';
import { addressAdvice, randomFlowLabel, requireGid } from './path.js';
import { packAddress, unpackAddress, type AddressVector } from './queue-pair-attributes.js';
import { checkQueuePairOptions, QueuePair, type QueuePairOptions } from './queue-pair.js';
import {
  ReceiveWorkQueue,
  RssQueuePair,
  type ReceiveWorkQueueOptions,
  type RssQueuePairOptions,
} from './receive-work-queue.js';
import { Resource } from './resource.js';
import { SharedReceiveQueue, srqExtension, type SharedReceiveQueueOptions } from './shared-receive-queue.js';
import { integer, options as checkOptions, unsigned64, withinDevice } from './validate.js';
import type { WorkCompletion } from './work-completion.js';
import type { Sge } from './work-request.js';

/** What may be registered: a length in bytes, for memory of the library's own, or a view of memory that exists. */
export type MemorySource = number | ArrayBufferView | ArrayBuffer | SharedArrayBuffer;

const REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

/** Of `odpGeneralCaps`: `IBV_ODP_SUPPORT`. */
const ODP_SUPPORT = 1n;

/** A protection domain (`struct ibv_pd`): memory regions and queue pairs of one domain work together. */
export class ProtectionDomain extends Resource {
  readonly context: Context;
  readonly #native: NativeProtectionDomain;

  /** @internal `owners`: what it is closed with, besides the context. */
  constructor(made: NativeProtectionDomain, context: Context, ...owners: Resource[]) {
    super(made, [context, ...owners]);
    this.#native = made;
    this.context = context;
  }

  /** @internal */
  get native(): NativeProtectionDomain {
    return this.#native;
  }

  /** By which another process imports it: see {@link Context.importPd}. */
  get handle(): number {
    return this.#native.handle;
  }

  get label(): string {
    return `protection domain of ${this.context.device.name}`;
  }

  /**
   * Registers memory, on another thread, since pinning takes milliseconds for each gigabyte and more. `ibv_reg_mr`,
   * `ibv_reg_mr_iova`
   *
   * With a length the memory is the library's own: page-aligned, zeroed, kept for as long as the device can reach it.
   * A view of yours is kept while it is registered, and cannot be transferred to another thread.
   *
   * Child processes of `node:child_process` do the memory no harm: they run another program at once, and since Linux 5.12 it is
   * the child that has a copy of what is pinned. On an older kernel set RDMAV_FORK_SAFE=1 before Node.js starts.
   *
   * @throws TypeError, RangeError for what cannot be registered (nothing, a resizable buffer, remote access to a slice
   * of Node's buffer pool); RdmaError `ENOMEM` with the memlock limit and what is pinned, or with what is free of huge pages,
   * `EPERM` where that limit is 0, `ERR_RDMA_UNSUPPORTED` for ON_DEMAND on a device that cannot
   */
  async regMr(source: MemorySource, options: RegisterOptions = {}): Promise<MemoryRegion> {
    const request = this.#request(source, options);
    const made = await explainingAsync(
      this.#subject(),
      (errno, syscall) => registerAdvice(errno, syscall, request),
      () => this.#native.regMr(request.source, request.access, request.pageSize, request.iova),
    );
    return new MemoryRegion(made, this, request.access);
  }

  /** {@link regMr} on this thread. */
  regMrSync(source: MemorySource, options: RegisterOptions = {}): MemoryRegion {
    const request = this.#request(source, options);
    const made = explaining(
      this.#subject(),
      (errno, syscall) => registerAdvice(errno, syscall, request),
      () => this.#native.regMrSync(request.source, request.access, request.pageSize, request.iova),
    );
    return new MemoryRegion(made, this, request.access);
  }

  /**
   * A region that is no memory: what is sent from it is zero, and what is written to it is gone. Its length is that of all
   * addresses. `ibv_alloc_null_mr`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  allocNullMr(): MemoryRegion {
    return kinds.allocNullMr(this);
  }

  /**
   * All memory of the process, what it has and what it will have, present only while the device uses it (implicit ODP). A
   * place in it is an address. `ibv_reg_mr` with `IBV_ACCESS_ON_DEMAND`, from address 0 on. Whoever has it, and with a remote
   * flag each peer, can read or write everything here: nothing of this library checks where.
   *
   * Arguments checked, not run on a NIC: rxe has no implicit ODP.
   *
   * @param access flags of {@link Access}; `ON_DEMAND` is added
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  regImplicitMr(access: number = Access.LOCAL_WRITE): MemoryRegion {
    return kinds.regImplicitMr(this, access);
  }

  /**
   * Registers memory of a device, such as a GPU, by the descriptor of a dma-buf; on another thread. It has no bytes here.
   * `ibv_reg_dmabuf_mr`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`, `EBADF` for what is no dma-buf
   */
  regDmabufMr(options: kinds.DmabufOptions): Promise<MemoryRegion> {
    return kinds.regDmabufMr(this, options);
  }

  /** {@link regDmabufMr} on this thread. */
  regDmabufMrSync(options: kinds.DmabufOptions): MemoryRegion {
    return kinds.regDmabufMrSync(this, options);
  }

  /**
   * Registers device memory, or a part of it; its first byte has address 0. `ibv_reg_dm_mr`. Arguments checked, not run on a
   * NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  regDmMr(dm: DeviceMemory, options: kinds.DeviceMemoryRegionOptions = {}): MemoryRegion {
    return kinds.regDmMr(this, dm, options);
  }

  /**
   * The region that another process has registered, in a domain that was imported. Closing it leaves the other process's as
   * it is. `ibv_import_mr`, `ibv_unimport_mr`. Arguments checked, not run on a NIC: rxe has none.
   */
  importMr(options: kinds.ImportedRegionOptions): MemoryRegion {
    return kinds.importMr(this, options);
  }

  /**
   * Says what will be done with parts of regions that were registered with {@link Access}.ON_DEMAND, on another thread.
   * `ibv_advise_mr`. Arguments checked, not run on a NIC: rxe of Linux 6.1 has no ODP.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_UNSUPPORTED`
   */
  adviseMr(sge: Sge | readonly Sge[], options: kinds.AdviseOptions): Promise<void> {
    return kinds.adviseMr(this, sge, options);
  }

  /** {@link adviseMr} on this thread. */
  adviseMrSync(sge: Sge | readonly Sge[], options: kinds.AdviseOptions): void {
    kinds.adviseMrSync(this, sge, options);
  }

  /**
   * Makes a memory window, which opens nothing yet: see {@link QueuePair.bindMw}. `ibv_alloc_mw`
   *
   * @throws RangeError; RdmaError `ERR_RDMA_UNSUPPORTED` for a type that the device lacks (see {@link DeviceCapFlags}), `ENOMEM`
   */
  allocMw(type: MemoryWindowType): MemoryWindow {
    return new MemoryWindow(this, type);
  }

  /**
   * Makes a domain for what one thread uses, over this one: regions of this domain serve queue pairs of that.
   * `ibv_alloc_parent_domain`; allocators of one's own cannot be given. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  allocParentDomain({ td }: { td?: ThreadDomain } = {}): ProtectionDomain {
    if (td !== undefined && !(td instanceof ThreadDomain)) throw invalidArgType('td', 'a ThreadDomain', td);
    const made = explaining(
      this.#subject(),
      () => '',
      () => native().allocParentDomain(this.#native, td?.native),
    );
    return new ProtectionDomain(made, this.context, this, ...(td === undefined ? [] : [td]));
  }

  /**
   * Makes a receive queue without a queue pair, for an indirection table. `ibv_create_wq`. Arguments checked, not run on a
   * NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_UNSUPPORTED`
   */
  createWq(options: ReceiveWorkQueueOptions): ReceiveWorkQueue {
    return new ReceiveWorkQueue(this, options);
  }

  /**
   * Makes a queue pair that spreads what it receives over the queues of an indirection table (RSS). `ibv_create_qp_ex`.
   * Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_UNSUPPORTED`
   */
  createRssQp(options: RssQueuePairOptions): RssQueuePair {
    return new RssQueuePair(this, options);
  }

  /**
   * Makes a queue pair, in the RESET state. `ibv_create_qp`; with an option of {@link QueuePairExtensionOptions}
   * `ibv_create_qp_ex` or `ibv_open_qp`
   *
   * @throws TypeError, RangeError for options out of range; RdmaError `ERR_RDMA_LIMIT` that names the capability and by
   * how much it was exceeded, `ERR_RDMA_FOREIGN_OBJECT` for completion queues of another context
   */
  createQp(options: QueuePairOptions): QueuePair {
    const request = checkQueuePairOptions(options, this.context);
    const made = explaining(
      this.#subject(),
      (errno) =>
        errno === 22 && request.cap[4]! > 0
          ? `The device attributes allow all of it but maxInlineData, which no attribute tells: ${request.cap[4]} may be too much`
          : pinAdvice(errno, (request.cap[0]! + request.cap[1]!) * 128),
      () => this.#native.createQp(...request.forNative),
    );
    return new QueuePair(made, this, request);
  }

  /**
   * Makes a queue of receives that many queue pairs take from. `ibv_create_srq`; for XRC and tag matching `ibv_create_srq_ex`,
   * of which the arguments are checked, and which was not run on a NIC: rxe has neither.
   *
   * @throws RangeError for options out of range; RdmaError `ERR_RDMA_LIMIT` that names the capability and by how much it was
   * exceeded
   */
  createSrq(options: SharedReceiveQueueOptions = {}): SharedReceiveQueue {
    checkOptions('options', options);
    const { maxWr = 128, maxSge = 1, srqLimit = 0, descriptors = 256 } = options;
    const { maxSrqWr, maxSrqSge } = this.context.queryDevice();
    const device = this.context.device.name;
    withinDevice('maxWr', maxWr, 1, maxSrqWr, device);
    withinDevice('maxSge', maxSge, 1, maxSrqSge, device);
    integer('srqLimit', srqLimit, 0, maxWr);
    integer('descriptors', descriptors, 1, 2 ** 20);
    const made = explaining(
      this.#subject(),
      (errno) => pinAdvice(errno, maxWr * maxSge * 32),
      () => this.#native.createSrq(maxWr, maxSge, 0, descriptors, ...srqExtension(options)),
    );
    const queue = new SharedReceiveQueue(made, this, options);
    if (srqLimit > 0) queue.setLimit(srqLimit);
    return queue;
  }

  /**
   * Makes the way to a peer, for datagrams, on another thread: on RoCE the kernel asks for the peer's link address, which
   * may take a second. `ibv_create_ah`
   *
   * The source GID is chosen as {@link Context.chooseGid} does unless `sgidIndex` gives it.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_NO_GID`, `ERR_RDMA_INVALID_ATTRIBUTES` for a vector without a GID on
   * Ethernet; `ETIMEDOUT`, `EHOSTUNREACH`, `ENETUNREACH` where the peer's address was not found
   */
  async createAh(vector: AddressVector & { gid?: GidSelection }): Promise<AddressHandle> {
    const { words, complete } = this.#address(vector);
    const made = await explainingAsync(
      this.#addressSubject(complete),
      (errno) => addressAdvice(errno, this.context, complete),
      () => this.#native.createAh(words),
    );
    return new AddressHandle(made, this, complete);
  }

  /** {@link createAh} on this thread, which it may block for a second. */
  createAhSync(vector: AddressVector & { gid?: GidSelection }): AddressHandle {
    const { words, complete } = this.#address(vector);
    const made = explaining(
      this.#addressSubject(complete),
      (errno) => addressAdvice(errno, this.context, complete),
      () => this.#native.createAhSync(words),
    );
    return new AddressHandle(made, this, complete);
  }

  /**
   * Makes the way back to the sender of a datagram, on another thread, from the completion of its receive. The datagram's
   * traffic class and, on IPv6, its flow label go into it; the source GID is the one that it was sent to.
   * `ibv_create_ah_from_wc`
   *
   * @param header the first {@link GRH_BYTES} bytes of the receive
   * @throws TypeError, RangeError for what is no completion of a datagram's receive, or no header; RdmaError as
   * {@link createAh}
   */
  async createAhFromWc(
    completion: WorkCompletion,
    header: Uint8Array,
    { portNum = 1 }: { portNum?: number } = {},
  ): Promise<AddressHandle> {
    const fields = this.#completionFields(completion, header, portNum);
    const made = await explainingAsync({ ...this.#subject(), port: portNum }, replyAdvice, () =>
      this.#native.createAhFromWc(portNum, fields, header),
    );
    return new AddressHandle(made, this, unpackAddress(made.words, 0));
  }

  /** {@link createAhFromWc} on this thread, which it may block for a second. */
  createAhFromWcSync(
    completion: WorkCompletion,
    header: Uint8Array,
    { portNum = 1 }: { portNum?: number } = {},
  ): AddressHandle {
    const fields = this.#completionFields(completion, header, portNum);
    const made = explaining({ ...this.#subject(), port: portNum }, replyAdvice, () =>
      this.#native.createAhFromWcSync(portNum, fields, header),
    );
    return new AddressHandle(made, this, unpackAddress(made.words, 0));
  }

  /** What a completion says of the way that its datagram came. */
  #completionFields(completion: WorkCompletion, header: Uint8Array, portNum: number): Uint32Array {
    const { linkLayer } = this.context.queryPort(portNum);
    if (typeof completion !== 'object' || completion === null) {
      throw invalidArgType('completion', 'the completion of a receive', completion);
    }
    const { opcode, wcFlags = 0, slid = 0, sl = 0, dlidPathBits = 0 } = completion;
    if (opcode !== 'recv') {
      throw outOfRange('completion', 'of a datagram that was received', opcode ?? completion.status);
    }
    const global = (wcFlags & CompletionFlags.GRH) !== 0;
    if (!global && linkLayer === 'ethernet') {
      throw outOfRange(
        'completion',
        'of a datagram: on RoCE each has a GRH, and its flags say so',
        'one without',
      );
    }
    // The same check that a reader of the header makes: what is none would lead anywhere.
    if (global) parseGrh(header);
    else if (!(header instanceof Uint8Array)) throw invalidArgType('header', 'a Uint8Array', header);
    return Uint32Array.of(
      wcFlags,
      integer('completion.slid', slid, 0, 2 ** 16 - 1),
      integer('completion.sl', sl, 0, 15),
      integer('completion.dlidPathBits', dlidPathBits, 0, 127),
    );
  }

  #address(vector: AddressVector & { gid?: GidSelection }): { words: Uint32Array; complete: AddressVector } {
    if (vector === undefined) throw invalidArgType('vector', 'an address vector', vector);
    checkOptions('vector', vector);
    const { gid, ...rest } = vector;
    const portNum = rest.portNum ?? 1;
    const { linkLayer } = this.context.queryPort(portNum);
    requireGid('the address vector', rest, linkLayer, portNum, this.#subject());
    const complete: AddressVector = {
      ...rest,
      portNum,
      ...(rest.dgid !== undefined && {
        sgidIndex: rest.sgidIndex ?? this.context.chooseGid({ peer: rest.dgid, ...gid }, portNum).index,
        flowLabel: rest.flowLabel ?? randomFlowLabel(),
      }),
    };
    const words = new Uint32Array(ADDRESS_VECTOR_WORDS);
    packAddress(words, 0, 'vector', complete);
    return { words, complete };
  }

  #addressSubject({ portNum, sgidIndex }: AddressVector) {
    return {
      ...this.#subject(),
      ...(portNum !== undefined && { port: portNum }),
      ...(sgidIndex !== undefined && { gidIndex: sgidIndex }),
    };
  }

  #subject() {
    return { device: this.context.device.name };
  }

  #request(source: MemorySource, options: RegisterOptions): RegisterRequest {
    checkOptions('options', options);
    const { access = Access.LOCAL_WRITE, pageSize = 0, iova } = options;
    checkAccess(access);
    if (
      (access & Access.ON_DEMAND) !== 0 &&
      (this.context.queryDevice().odpGeneralCaps & ODP_SUPPORT) === 0n
    ) {
      throw new RdmaError(
        'ERR_RDMA_UNSUPPORTED',
        `access: ${this.context.device.name} cannot page on demand (odpGeneralCaps): register without ON_DEMAND, which pins the memory`,
        this.#subject(),
      );
    }
    if (![0, 2 ** 21, 2 ** 30].includes(pageSize))
      throw outOfRange('pageSize', '0 (usual), 2 MiB or 1 GiB', pageSize);
    const checked = sourceOf(source, access);
    if (pageSize !== 0 && typeof checked !== 'number') {
      throw outOfRange('pageSize', '0 for memory that exists already', pageSize);
    }
    return {
      source: checked,
      access,
      pageSize,
      iova: iova === undefined ? undefined : unsigned64('iova', iova),
      bytes: typeof checked === 'number' ? checked : checked.byteLength,
    };
  }
}

interface RegisterRequest {
  source: number | ArrayBufferView;
  access: number;
  pageSize: number;
  iova: bigint | undefined;
  bytes: number;
}

/** @internal A length in bytes, or the view of memory that may be registered. */
export function sourceOf(source: MemorySource, access: number): number | ArrayBufferView {
  return typeof source === 'number' ? length(source) : viewOf(source, access);
}

function length(bytes: number): number {
  return integer('length', bytes, 1, Number.MAX_SAFE_INTEGER);
}

/** The view of memory that JavaScript made, if the device may be let loose on it. */
function viewOf(source: Exclude<MemorySource, number>, access: number): ArrayBufferView {
  const whole = source instanceof ArrayBuffer || source instanceof SharedArrayBuffer;
  if ((whole || ArrayBuffer.isView(source)) && source.byteLength === 0) {
    throw outOfRange('source', 'at least one byte long (is its buffer detached?)', 'empty');
  }
  const view = whole ? new Uint8Array(source) : source;
  if (!ArrayBuffer.isView(view)) {
    throw invalidArgType(
      'source',
      'a length in bytes, or a Buffer, TypedArray, DataView, ArrayBuffer or SharedArrayBuffer',
      source,
    );
  }
  const buffer = view.buffer as ArrayBuffer & { resizable?: boolean; growable?: boolean };
  if (buffer.resizable === true || buffer.growable === true) {
    throw outOfRange(
      'source',
      'of a fixed size: the memory of a resizable buffer may go while it is registered',
      'resizable',
    );
  }
  if ((access & REMOTE) !== 0 && Buffer.isBuffer(view) && buffer.byteLength === Buffer.poolSize) {
    throw outOfRange(
      'source',
      "memory of its own: this Buffer is a slice of Node's pool, and remote access works on whole pages, so that a peer would " +
        'reach other Buffers; use regMr(length), or Buffer.allocUnsafeSlow()',
      'a pooled Buffer',
    );
  }
  if (!(buffer instanceof SharedArrayBuffer)) keepInPlace(buffer);
  return view;
}

function replyAdvice(errno: number): string {
  return errno === 2 || errno === 5 || errno === 22
    ? 'The GID that the datagram was sent to is in the table of this port no more, or the header is not that of this completion'
    : 'The way back to the sender was not found: does the link have an address of its subnet, or a route to it?';
}

function registerAdvice(errno: number, syscall: string, { bytes, pageSize }: RegisterRequest): string {
  if (syscall === 'mmap' && pageSize !== 0) return hugePageAdvice(errno, pageSize, bytes);
  if (errno === 14) return 'The memory is not there, or not writable where LOCAL_WRITE asks for it';
  return pinAdvice(errno, bytes);
}
