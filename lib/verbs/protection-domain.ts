import { AddressHandle } from './address-handle.js';
import { Access, CompletionFlags } from './constants.js';
import type { Context } from './context.js';
import { explaining, explainingAsync, invalidArgType, outOfRange, RdmaError } from './errors.js';
import type { GidSelection } from './gid.js';
import { parseGrh } from './grh.js';
import { hugePageAdvice } from './huge-pages.js';
import { keepInPlace } from './keep-in-place.js';
import { ADDRESS_VECTOR_WORDS } from './layout.js';
import { pinAdvice } from './memlock.js';
import { MemoryRegion, type RegisterOptions } from './memory-region.js';
import type { NativeProtectionDomain } from './native.js';
import { addressAdvice, randomFlowLabel, requireGid } from './path.js';
import { packAddress, unpackAddress, type AddressVector } from './queue-pair-attributes.js';
import { checkQueuePairOptions, QueuePair, type QueuePairOptions } from './queue-pair.js';
import { Resource } from './resource.js';
import { SharedReceiveQueue, type SharedReceiveQueueOptions } from './shared-receive-queue.js';
import { integer, options as checkOptions, unsigned64, withinDevice } from './validate.js';
import type { WorkCompletion } from './work-completion.js';

/** What may be registered: a length in bytes, for memory of the library's own, or a view of memory that exists. */
export type MemorySource = number | ArrayBufferView | ArrayBuffer | SharedArrayBuffer;

const REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;
const KNOWN_ACCESS = Object.values(Access).reduce((all, flag) => all | flag, 0);

/** Of `odpGeneralCaps`: `IBV_ODP_SUPPORT`. */
const ODP_SUPPORT = 1n;

/** A protection domain (`struct ibv_pd`): memory regions and queue pairs of one domain work together. */
export class ProtectionDomain extends Resource {
  readonly context: Context;
  readonly #native: NativeProtectionDomain;

  /** @internal `owner`: what it is closed with, besides the context. */
  constructor(native: NativeProtectionDomain, context: Context, owner?: Resource) {
    super(native, owner === undefined ? [context] : [context, owner]);
    this.#native = native;
    this.context = context;
  }

  /** @internal */
  get native(): NativeProtectionDomain {
    return this.#native;
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
    const native = await explainingAsync(
      this.#subject(),
      (errno, syscall) => registerAdvice(errno, syscall, request),
      () => this.#native.regMr(request.source, request.access, request.pageSize, request.iova),
    );
    return new MemoryRegion(native, this, request.access);
  }

  /** {@link regMr} on this thread. */
  regMrSync(source: MemorySource, options: RegisterOptions = {}): MemoryRegion {
    const request = this.#request(source, options);
    const native = explaining(
      this.#subject(),
      (errno, syscall) => registerAdvice(errno, syscall, request),
      () => this.#native.regMrSync(request.source, request.access, request.pageSize, request.iova),
    );
    return new MemoryRegion(native, this, request.access);
  }

  /**
   * Makes a queue pair, in the RESET state. `ibv_create_qp`
   *
   * @throws TypeError, RangeError for options out of range; RdmaError `ERR_RDMA_LIMIT` that names the capability and by
   * how much it was exceeded, `ERR_RDMA_FOREIGN_OBJECT` for completion queues of another context
   */
  createQp(options: QueuePairOptions): QueuePair {
    const request = checkQueuePairOptions(options, this.context);
    const native = explaining(
      this.#subject(),
      (errno) =>
        errno === 22 && request.cap[4]! > 0
          ? `The device attributes allow all of it but maxInlineData, which no attribute tells: ${request.cap[4]} may be too much`
          : pinAdvice(errno, (request.cap[0]! + request.cap[1]!) * 128),
      () => this.#native.createQp(...request.forNative),
    );
    return new QueuePair(native, this, request);
  }

  /**
   * Makes a queue of receives that many queue pairs take from. `ibv_create_srq`
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
    const native = explaining(
      this.#subject(),
      (errno) => pinAdvice(errno, maxWr * maxSge * 32),
      () => this.#native.createSrq(maxWr, maxSge, 0, descriptors),
    );
    const queue = new SharedReceiveQueue(native, this);
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
    const native = await explainingAsync(
      this.#addressSubject(complete),
      (errno) => addressAdvice(errno, this.context, complete),
      () => this.#native.createAh(words),
    );
    return new AddressHandle(native, this, complete);
  }

  /** {@link createAh} on this thread, which it may block for a second. */
  createAhSync(vector: AddressVector & { gid?: GidSelection }): AddressHandle {
    const { words, complete } = this.#address(vector);
    const native = explaining(
      this.#addressSubject(complete),
      (errno) => addressAdvice(errno, this.context, complete),
      () => this.#native.createAhSync(words),
    );
    return new AddressHandle(native, this, complete);
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
    const native = await explainingAsync({ ...this.#subject(), port: portNum }, replyAdvice, () =>
      this.#native.createAhFromWc(portNum, fields, header),
    );
    return new AddressHandle(native, this, unpackAddress(native.words, 0));
  }

  /** {@link createAhFromWc} on this thread, which it may block for a second. */
  createAhFromWcSync(
    completion: WorkCompletion,
    header: Uint8Array,
    { portNum = 1 }: { portNum?: number } = {},
  ): AddressHandle {
    const fields = this.#completionFields(completion, header, portNum);
    const native = explaining({ ...this.#subject(), port: portNum }, replyAdvice, () =>
      this.#native.createAhFromWcSync(portNum, fields, header),
    );
    return new AddressHandle(native, this, unpackAddress(native.words, 0));
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
    integer('access', access, 0, 2 ** 32 - 1);
    if ((access & ~KNOWN_ACCESS) !== 0) throw outOfRange('access', 'flags of Access, or-ed', access);
    if (
      (access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)) !== 0 &&
      (access & Access.LOCAL_WRITE) === 0
    ) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_ATTRIBUTES',
        'access: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE as well (ibv_reg_mr)',
      );
    }
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
    const checked = typeof source === 'number' ? length(source) : viewOf(source, access);
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
