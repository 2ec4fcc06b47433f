import { Access } from './constants.js';
import { invalidArgType, outOfRange, RdmaError } from './errors.js';
import type { NativeMemoryRegion } from './native.js';
import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';
import { rereg, reregSync, type ReregisterOptions } from './reregister.js';
import { integer, unsigned64 } from './validate.js';

export interface RegisterOptions {
  /** Flags of {@link Access}, or-ed. By default `LOCAL_WRITE`. */
  access?: number;
  /** Size of pages in bytes for memory of the library's own: 0 (usual, the default), 2 MiB or 1 GiB. */
  pageSize?: number;
  /** The address by which peers and work requests know the first byte; by default its real one. `ibv_reg_mr_iova` */
  iova?: bigint | number;
}

const owner = Symbol('memory region');
const nothing = Buffer.alloc(0);

/**
 * Registered memory (`struct ibv_mr`). Work requests name it with an offset and a length, which are checked against it;
 * it cannot be closed while one is outstanding. After {@link close} memory of the library's own reads as empty.
 */
export class MemoryRegion extends Resource {
  readonly pd: ProtectionDomain;
  /** Flags of {@link Access}. */
  readonly access: number;
  /** In bytes. */
  readonly length: number;
  readonly lkey: number;
  /** 0 without a remote access flag (rxe). */
  readonly rkey: number;
  /** Address of the first byte, as peers and the device know it. */
  readonly address: bigint;
  /**
   * What names the region in ring descriptors. It changes with each registration, so that a descriptor that outlives its
   * region names no other one.
   */
  readonly slot: number;
  /** By which another process imports it; see {@link ProtectionDomain.importMr}. */
  readonly handle: number;
  readonly #native: NativeMemoryRegion;
  #bytes: Buffer = Buffer.alloc(0);

  /** @internal `parent`: what it hangs on besides its domain. */
  constructor(native: NativeMemoryRegion, pd: ProtectionDomain, access: number, parent?: Resource) {
    super(native, parent === undefined ? [pd] : [pd, parent]);
    this.#native = native;
    this.pd = pd;
    this.access = access;
    this.length = native.length;
    this.lkey = native.lkey;
    this.rkey = native.rkey;
    this.address = native.iova;
    this.slot = native.slot;
    this.handle = native.handle;
    this.#showMemory();
  }

  /** Memory that this process does not see (of a device, of another process) has no bytes here. */
  #showMemory(): void {
    const native = this.#native;
    if (native.buffer !== undefined) {
      // Whoever holds a view of the memory holds the region with it.
      Object.defineProperty(native.buffer, owner, { value: this });
      this.#bytes = Buffer.from(native.buffer);
    } else if (native.view !== undefined) {
      const { view } = native;
      this.#bytes = Buffer.from(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
    }
  }

  /** @internal */
  get native(): NativeMemoryRegion {
    return this.#native;
  }

  /**
   * Registers the region anew, on another thread: with other access, in another domain, with other memory, or several of
   * these. Its keys may change. No request under way may name it, and no peer should use it meanwhile. `ibv_rereg_mr`
   *
   * After a failure on the device that may have broken the region, it takes no more requests and can only be closed.
   * Arguments checked, not run on a NIC: rxe refuses.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_BUSY`, `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_UNSUPPORTED`, which leaves
   * it as it was
   */
  rereg(options: ReregisterOptions): Promise<void> {
    return rereg(this, options);
  }

  /** {@link rereg} on this thread. */
  reregSync(options: ReregisterOptions): void {
    reregSync(this, options);
  }

  /** @internal It was registered anew. */
  reregistered(pd: ProtectionDomain, access: number): void {
    if (pd !== this.pd) this.replaceParent(this.pd, pd);
    const { length, lkey, rkey, iova, view, buffer } = this.#native;
    Object.assign(this, { pd, access, length, lkey, rkey, address: iova });
    if (view !== undefined || buffer !== undefined) this.#showMemory();
  }

  get label(): string {
    return `memory region ${this.lkey.toString(16)} of ${this.length} bytes`;
  }

  /** The registered bytes. Empty once the region is closed. */
  get buffer(): Buffer {
    // Of a detached ArrayBuffer not even an empty part can be had.
    if (this.closed || this.#bytes.length === 0) this.#bytes = nothing;
    return this.#bytes;
  }

  /**
   * What a peer needs to reach the region, or a part of it.
   *
   * @throws RangeError for a part outside the region; RdmaError `ERR_RDMA_INVALID_ATTRIBUTES` for a region without remote
   * access
   */
  remote(offset = 0, length = this.length - offset): RemoteRegion {
    integer('offset', offset, 0, this.length);
    integer('length', length, 0, this.length - offset);
    if ((this.access & (Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)) === 0) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_ATTRIBUTES',
        `${this.label} was registered without remote access: add Access.REMOTE_READ, REMOTE_WRITE or REMOTE_ATOMIC`,
      );
    }
    return new RemoteRegion(this.address + BigInt(offset), this.rkey, length);
  }

  /**
   * A part of the region, to be used as an element of a request.
   *
   * @throws RangeError for a part outside the region
   */
  slice(offset = 0, length = this.length - offset): MemorySlice {
    integer('offset', offset, 0, this.length);
    integer('length', length, 0, this.length - offset);
    return new MemorySlice(this, offset, length);
  }

  protected override get workRequests(): number {
    return this.#native.workRequests;
  }
}

/** A part of a memory region. Made by {@link MemoryRegion.slice}. */
export class MemorySlice {
  readonly mr: MemoryRegion;
  /** Bytes from the start of the region. */
  readonly offset: number;
  /** In bytes. */
  readonly length: number;

  /** @internal */
  constructor(mr: MemoryRegion, offset: number, length: number) {
    this.mr = mr;
    this.offset = offset;
    this.length = length;
  }

  /** Its bytes. Empty once the region is closed. */
  get buffer(): Buffer {
    return this.mr.buffer.subarray(this.offset, this.offset + this.length);
  }

  /** What a peer needs to reach it; see {@link MemoryRegion.remote}. */
  remote(): RemoteRegion {
    return this.mr.remote(this.offset, this.length);
  }

  /** A part of the part. @throws RangeError for a part outside */
  slice(offset = 0, length = this.length - offset): MemorySlice {
    integer('offset', offset, 0, this.length);
    integer('length', length, 0, this.length - offset);
    return new MemorySlice(this.mr, this.offset + offset, length);
  }
}

/** Memory of a peer: its address, the key that opens it and its length in bytes. Plain data; send it as JSON. */
export class RemoteRegion {
  readonly address: bigint;
  readonly rkey: number;
  readonly length: number;
  /** The halves of the address, for arithmetic without BigInt. @internal */
  readonly addressLow: number;
  /** @internal */
  readonly addressHigh: number;

  constructor(address: bigint | number, rkey: number, length: number) {
    this.address = unsigned64('address', address);
    this.addressLow = Number(this.address & 0xffffffffn);
    this.addressHigh = Number(this.address >> 32n);
    this.rkey = integer('rkey', rkey, 0, 2 ** 32 - 1);
    this.length = integer('length', length, 0, Number.MAX_SAFE_INTEGER);
  }

  /**
   * The address of a part of it.
   *
   * @throws RangeError for a part outside
   */
  at(offset: number, length: number): bigint {
    integer('offset', offset, 0, this.length);
    integer('length', length, 0, Number.MAX_SAFE_INTEGER);
    if (length > this.length - offset) {
      throw outOfRange(
        'length',
        `at most the ${this.length - offset} bytes that the remote region has from offset ${offset}`,
        length,
      );
    }
    return this.address + BigInt(offset);
  }

  toJSON(): { address: string; rkey: number; length: number } {
    return { address: `0x${this.address.toString(16)}`, rkey: this.rkey, length: this.length };
  }

  /** The region that {@link toJSON} has described. */
  static from(json: unknown): RemoteRegion {
    if (typeof json !== 'object' || json === null)
      throw invalidArgType('json', 'a description of a remote region', json);
    const { address, rkey, length } = json as Record<string, unknown>;
    if (typeof address !== 'string' || !/^0x[0-9a-f]{1,16}$/i.test(address)) {
      throw outOfRange('address', 'a hexadecimal string such as "0x7f0012345000"', address);
    }
    return new RemoteRegion(BigInt(address), rkey as number, length as number);
  }
}
