import { AddressHandle } from './address-handle.js';
import { Opcode, SendFlags, type SendOpcode } from './constants.js';
import { invalidArgType, outOfRange, RdmaError } from './errors.js';
import { INLINE_AREA, ReceiveDescriptor, ScatterGatherElement, SendDescriptor } from './layout.js';
import { MemoryRegion, type RemoteRegion } from './memory-region.js';
import type { QueueLayout } from './native.js';
import { integer, unsigned64, wordNumber } from './validate.js';

/** A range of a memory region (`struct ibv_sge`). */
export interface Sge {
  mr: MemoryRegion;
  /** Bytes from the start of the region; 0 by default. */
  offset?: number;
  /** Bytes; by default all from `offset` to the end of the region. */
  length?: number;
}

/** Memory of a peer: where an RDMA operation goes. */
export interface RemoteTarget {
  address: bigint | number;
  rkey: number;
}

/** Whom a datagram goes to. */
export interface DatagramTarget {
  ah: AddressHandle;
  /** Queue pair at the peer, 24 bits. */
  remoteQpn: number;
  /** Its Q_Key, 32 bits. With the high bit set, that of the sending queue pair is used instead. */
  remoteQkey: number;
}

/** A request for the send queue (`struct ibv_send_wr`). */
export interface SendRequest {
  /** Comes back in the completion; 64 bits, 0 by default. */
  wrId?: bigint | number;
  opcode: SendOpcode;
  /** Local memory: what is sent or written, or where a READ or atomic puts what it got. */
  sge?: Sge | readonly Sge[];
  /** Instead of `sge`: bytes that are copied at once, up to the queue pair's `maxInlineData`. */
  inline?: Uint8Array;
  /** For RDMA operations and atomics. A {@link RemoteRegion} does. */
  remote?: RemoteTarget | RemoteRegion;
  /** Whom it goes to, on a queue pair for datagrams. */
  ud?: DatagramTarget;
  /** 32 bits in host order, for the opcodes with immediate data. */
  immData?: number;
  /** The rkey to invalidate at the peer, for `sendWithInv`. */
  invalidateRkey?: number;
  /** For atomics: the value to add, or to compare with. 64 bits in host order. */
  compareAdd?: bigint | number;
  /** For compare-and-swap: the value to put in. */
  swap?: bigint | number;
  /** On an XRC queue pair: the peer's shared receive queue ({@link SharedReceiveQueue.srqNum}). */
  remoteSrqn?: number;
  /** Whether it makes a completion when it succeeds; true by default. A failure always does. */
  signaled?: boolean;
  /** Wait for earlier READs and atomics first. */
  fence?: boolean;
  /** Wakes a peer that waits for solicited completions. */
  solicited?: boolean;
}

/** A request for the receive queue (`struct ibv_recv_wr`). */
export interface ReceiveRequest {
  /** Comes back in the completion; 64 bits, 0 by default. */
  wrId?: bigint | number;
  /** Where the message goes; none takes messages of no bytes, and writes with immediate data. */
  sge?: Sge | readonly Sge[];
}

const REMOTE_OPCODES = new Set<SendOpcode>([
  'rdmaWrite',
  'rdmaWriteWithImm',
  'rdmaRead',
  'atomicCmpAndSwp',
  'atomicFetchAndAdd',
]);

/** Writes requests as descriptors into a queue's shared memory. */
export class DescriptorWriter {
  readonly #layout: QueueLayout;
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  readonly #maxInlineData: number;

  constructor(memory: ArrayBuffer, layout: QueueLayout, maxInlineData: number) {
    this.#layout = layout;
    this.#view = new DataView(memory);
    this.#bytes = new Uint8Array(memory);
    this.#maxInlineData = maxInlineData;
  }

  /** @throws TypeError, RangeError */
  writeSend(place: number, request: SendRequest): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgType('request', 'a send request', request);
    const { opcode, remote, fence = false, solicited = false, signaled = true } = request;
    const number = wordNumber('opcode', Opcode, opcode);
    const at = this.#layout.descriptors + place * SendDescriptor.size;
    this.#bytes.fill(0, at, at + SendDescriptor.size);
    const view = this.#view;
    let flags =
      (signaled ? SendFlags.SIGNALED : 0) |
      (fence ? SendFlags.FENCE : 0) |
      (solicited ? SendFlags.SOLICITED : 0);
    if (request.inline !== undefined) {
      if (request.sge !== undefined) throw outOfRange('inline', 'given without sge', 'both');
      this.#writeInline(place, at, request.inline);
      flags |= SendFlags.INLINE;
    } else {
      this.#writeElements(place, at + SendDescriptor.sgeCount, at + SendDescriptor.sge, request.sge);
    }
    view.setUint8(at + SendDescriptor.opcode, number);
    view.setUint8(at + SendDescriptor.flags, flags);
    this.#writeId(at + SendDescriptor.id, at + SendDescriptor.idHigh, request.wrId);
    if (REMOTE_OPCODES.has(opcode)) {
      if (typeof remote !== 'object' || remote === null)
        throw invalidArgType('remote', `given for ${opcode}`, remote);
      view.setBigUint64(
        at + SendDescriptor.remoteAddress,
        unsigned64('remote.address', remote.address),
        true,
      );
      view.setUint32(at + SendDescriptor.rkey, integer('remote.rkey', remote.rkey, 0, 2 ** 32 - 1), true);
    } else if (remote !== undefined) {
      throw outOfRange('remote', `absent for ${opcode}: it has no remote address`, 'one');
    }
    if (request.ud !== undefined) this.#writeTarget(at, request.ud);
    if (request.remoteSrqn !== undefined) {
      const srqn = integer('remoteSrqn', request.remoteSrqn, 0, 2 ** 24 - 1);
      view.setUint32(at + SendDescriptor.remoteSrqn, srqn, true);
    }
    if (opcode === 'sendWithImm' || opcode === 'rdmaWriteWithImm') {
      view.setUint32(at + SendDescriptor.immData, integer('immData', request.immData, 0, 2 ** 32 - 1), true);
    } else if (request.immData !== undefined) {
      throw outOfRange('immData', `absent for ${opcode}: use ${opcode}WithImm`, request.immData);
    }
    if (opcode === 'sendWithInv') {
      const rkey = integer('invalidateRkey', request.invalidateRkey, 0, 2 ** 32 - 1);
      view.setUint32(at + SendDescriptor.immData, rkey, true);
    }
    if (opcode === 'atomicCmpAndSwp' || opcode === 'atomicFetchAndAdd') {
      view.setBigUint64(at + SendDescriptor.compareAdd, unsigned64('compareAdd', request.compareAdd), true);
    }
    if (opcode === 'atomicCmpAndSwp') {
      view.setBigUint64(at + SendDescriptor.swap, unsigned64('swap', request.swap), true);
    }
  }

  /** @throws TypeError, RangeError */
  writeReceive(place: number, request: ReceiveRequest): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgType('request', 'a receive request', request);
    const at = this.#layout.descriptors + place * ReceiveDescriptor.size;
    this.#bytes.fill(0, at, at + ReceiveDescriptor.size);
    this.#writeElements(place, at + ReceiveDescriptor.sgeCount, at + ReceiveDescriptor.sge, request.sge);
    this.#writeId(at + ReceiveDescriptor.id, at + ReceiveDescriptor.idHigh, request.wrId);
  }

  #writeTarget(at: number, target: DatagramTarget): void {
    if (!(target.ah instanceof AddressHandle)) throw invalidArgType('ud.ah', 'an AddressHandle', target.ah);
    if (target.ah.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${target.ah.label} is closed`);
    const view = this.#view;
    view.setUint32(at + SendDescriptor.addressHandle, target.ah.slot, true);
    view.setUint32(
      at + SendDescriptor.remoteQpn,
      integer('ud.remoteQpn', target.remoteQpn, 0, 2 ** 24 - 1),
      true,
    );
    view.setUint32(
      at + SendDescriptor.remoteQkey,
      integer('ud.remoteQkey', target.remoteQkey, 0, 2 ** 32 - 1),
      true,
    );
  }

  #writeId(low: number, high: number, wrId: bigint | number = 0): void {
    const id = unsigned64('wrId', wrId);
    this.#view.setUint32(low, Number(id & 0xffffffffn), true);
    this.#view.setUint32(high, Number(id >> 32n), true);
  }

  #writeInline(place: number, at: number, data: Uint8Array): void {
    if (!(data instanceof Uint8Array)) throw invalidArgType('inline', 'a Uint8Array', data);
    if (data.length > this.#maxInlineData) {
      throw new RdmaError(
        'ERR_RDMA_LIMIT',
        `${data.length} bytes inline are ${data.length - this.#maxInlineData} above the ${this.#maxInlineData} of this queue pair: ` +
          'create it with a larger maxInlineData, or send from a memory region',
      );
    }
    const { inlineArea, inlineStride } = this.#layout;
    if (data.length > 0) this.#bytes.set(data, inlineArea + place * inlineStride);
    this.#view.setUint8(at + SendDescriptor.sgeCount, data.length > 0 ? 1 : 0);
    this.#writeElement(at + SendDescriptor.sge, INLINE_AREA, 0, data.length);
  }

  #writeElements(place: number, countAt: number, at: number, sge: Sge | readonly Sge[] | undefined): void {
    const elements = sge === undefined ? [] : Array.isArray(sge) ? (sge as readonly Sge[]) : [sge as Sge];
    const { maxSge, elements: area } = this.#layout;
    if (elements.length > maxSge) {
      throw new RdmaError(
        'ERR_RDMA_LIMIT',
        `${elements.length} scatter/gather elements are ${elements.length - maxSge} above the ${maxSge} of this queue`,
      );
    }
    this.#view.setUint8(countAt, elements.length);
    elements.forEach((element, k) => {
      const where = elements.length === 1 ? at : area + (place * maxSge + k) * ScatterGatherElement.size;
      const { mr } = element;
      if (!(mr instanceof MemoryRegion)) throw invalidArgType('sge.mr', 'a MemoryRegion', mr);
      if (mr.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${mr.label} is closed`);
      const offset = integer('sge.offset', element.offset ?? 0, 0, mr.length);
      const length = integer('sge.length', element.length ?? mr.length - offset, 0, 2 ** 32 - 1);
      if (length > mr.length - offset) {
        throw outOfRange(
          'sge.length',
          `at most ${mr.length - offset} from offset ${offset} of ${mr.label}`,
          length,
        );
      }
      this.#writeElement(where, mr.slot, offset, length);
    });
  }

  #writeElement(at: number, mr: number, offset: number, length: number): void {
    const view = this.#view;
    view.setUint32(at + ScatterGatherElement.mr, mr, true);
    view.setUint32(at + ScatterGatherElement.length, length, true);
    view.setUint32(at + ScatterGatherElement.offset, offset % 2 ** 32, true);
    view.setUint32(at + ScatterGatherElement.offset + 4, Math.floor(offset / 2 ** 32), true);
  }
}
