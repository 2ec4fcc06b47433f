import { Access, SendFlags } from './constants.js';
import { explaining, invalidArgType, outOfRange, RdmaError } from './errors.js';
import { MemoryRegion } from './memory-region.js';
import { native } from './native.js';
import type { NativeMemoryWindow } from './native-more.js';
import type { ProtectionDomain } from './protection-domain.js';
import type { QueuePair } from './queue-pair.js';
import { Resource } from './resource.js';
import { RemoteRegion } from './memory-region.js';
import { integer, options as checkOptions, unsigned64, wordNumber } from './validate.js';

/** `enum ibv_mw_type`. */
const typeNumbers = { 1: 1, 2: 2 } as const;
export type MemoryWindowType = keyof typeof typeNumbers;

/** A request about a window on the send queue. */
export interface WindowRequest {
  /** Comes back in the completion; 64 bits, 0 by default. */
  wrId?: bigint | number;
  /** Whether it makes a completion when it succeeds; true by default. A failure always does. */
  signaled?: boolean;
  /** Wait for earlier READs and atomics first. */
  fence?: boolean;
}

/** What a window opens, and to whom. */
export interface BindRequest extends WindowRequest {
  /** The region; registered with {@link Access}.MW_BIND. Without one a window of type 1 is closed again. */
  mr?: MemoryRegion;
  /** Bytes from the start of the region; 0 by default. */
  offset?: number;
  /** Bytes, at least 1; by default all from `offset` to the end of the region. */
  length?: number;
  /** Remote flags of {@link Access}: what a peer may do. By default all; only `REMOTE_READ` of a region without `LOCAL_WRITE`. */
  access?: number;
}

const REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

/**
 * A memory window (`struct ibv_mw`): a key of its own for a range of a memory region, which is opened and closed by requests
 * on a queue pair, far quicker than memory is registered. Made by {@link ProtectionDomain.allocMw}.
 *
 * Type 1 is open to all queue pairs of the domain. Type 2 is open only to the peer of the queue pair on which it was bound,
 * which can also close it (opcode `sendWithInv`); it must be closed before it is bound anew.
 *
 * rxe (Linux 6.1) holds a peer to the access that the window allows and to the memory region, not to the range of the window.
 *
 * On Linux 6.1 with rxe, a peer that names a window of type 2 that is free in `sendWithInv` crashes the kernel of the machine
 * that owns it: give such keys only to peers that you trust that far.
 */
export class MemoryWindow extends Resource {
  readonly pd: ProtectionDomain;
  readonly type: MemoryWindowType;
  /** @internal */
  readonly native: NativeMemoryWindow;
  #range: { mr: MemoryRegion; address: bigint; length: number } | undefined;
  #queuePair: QueuePair | undefined;

  /** @internal */
  constructor(pd: ProtectionDomain, type: MemoryWindowType) {
    const made = explaining(
      { device: pd.context.device.name },
      (errno) => (errno === 12 ? 'The device offers no more windows: see maxMw of its attributes' : ''),
      () => native().allocMw(pd.native, wordNumber('type', typeNumbers, String(type))),
    );
    super(made, [pd]);
    this.native = made;
    this.pd = pd;
    this.type = type;
  }

  get label(): string {
    return `memory window of type ${this.type}`;
  }

  /** The key by which a peer names it. It changes with each bind. */
  get rkey(): number {
    return this.native.rkey;
  }

  /**
   * What a peer needs to reach what the window opens.
   *
   * @throws RdmaError `ERR_RDMA_INVALID_STATE` for a window that opens nothing
   */
  remote(): RemoteRegion {
    if (this.#range === undefined || (this.type === 2 && !this.native.bound)) {
      throw new RdmaError('ERR_RDMA_INVALID_STATE', `the ${this.label} is not bound`);
    }
    return new RemoteRegion(this.#range.address, this.rkey, this.#range.length);
  }

  /** @internal */
  bindOn(qp: QueuePair, request: BindRequest): number {
    checkOptions('request', request);
    const { mr = this.#range?.mr } = request;
    if (request.mr === undefined) {
      if (this.type === 2)
        throw outOfRange('mr', 'given: a window of type 2 is closed by invalidateMw()', undefined);
      if (mr === undefined) {
        throw new RdmaError('ERR_RDMA_INVALID_STATE', `the ${this.label} is closed already`);
      }
    }
    if (!(mr instanceof MemoryRegion)) throw invalidArgType('mr', 'a MemoryRegion', mr);
    const all = (mr.access & Access.LOCAL_WRITE) === 0 ? Access.REMOTE_READ : REMOTE;
    const { access = request.mr === undefined ? 0 : all } = request;
    integer('access', access, 0, 2 ** 32 - 1);
    if ((access & ~REMOTE) !== 0) throw outOfRange('access', 'remote flags of Access, or-ed', access);
    const offset = integer('offset', request.offset ?? 0, 0, mr.length);
    const length =
      request.mr === undefined
        ? 0
        : integer('length', request.length ?? mr.length - offset, 1, mr.length - offset);
    const needs = (access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)) !== 0 ? Access.LOCAL_WRITE : 0;
    if ((mr.access & Access.MW_BIND) === 0 || (mr.access & needs) !== needs) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_ATTRIBUTES',
        `${mr.label} cannot have this window: register it with Access.MW_BIND${needs === 0 ? '' : ' and LOCAL_WRITE'}`,
      );
    }
    const { wrId, flags } = requestWords(request);
    const rkey = explaining(
      qp.subject,
      () => '',
      () => native().bindMw(this.native, qp.native, mr.native, offset, length, access, wrId, flags),
    );
    this.#range = length === 0 ? undefined : { mr, address: mr.address + BigInt(offset), length };
    if (this.type === 2) this.#hangOn(qp);
    return rkey;
  }

  /** @internal */
  invalidateOn(qp: QueuePair, request: WindowRequest): void {
    checkOptions('request', request);
    if (this.type !== 2) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `a ${this.label} is closed by a bind without a memory region`,
      );
    }
    const { wrId, flags } = requestWords(request);
    explaining(
      qp.subject,
      () => '',
      () => native().invalidateMw(this.native, qp.native, wrId, flags),
    );
    this.#range = undefined;
  }

  /** A queue pair must not go while the window is bound on it: the kernel would wait for that. */
  #hangOn(qp: QueuePair): void {
    if (this.#queuePair === qp) return;
    if (this.#queuePair === undefined) this.addParent(qp);
    else this.replaceParent(this.#queuePair, qp);
    this.#queuePair = qp;
  }
}

function requestWords({ wrId = 0, signaled = true, fence = false }: WindowRequest) {
  return {
    wrId: unsigned64('wrId', wrId),
    flags: (signaled ? SendFlags.SIGNALED : 0) | (fence ? SendFlags.FENCE : 0),
  };
}

/** The key that a window has after another bind: its lowest 8 bits, and only those, are counted up. `ibv_inc_rkey` */
export function incRkey(rkey: number): number {
  integer('rkey', rkey, 0, 2 ** 32 - 1);
  return ((rkey & 0xffffff00) | ((rkey + 1) & 0xff)) >>> 0;
}
