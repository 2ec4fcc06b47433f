import type { AddressHandle } from '../verbs/address-handle.js';
import { Opcode, SendFlags } from '../verbs/constants.js';
import { outOfRange } from '../verbs/errors.js';
import { INLINE_AREA, SendDescriptor } from '../verbs/layout.js';
import type { MemoryRegion, RemoteRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { DescriptorRing } from './descriptor-ring.js';

const TWO_32 = 2 ** 32;
// Offsets in words. Copies, since the compiler looks up what is imported again at each use.
const ID = SendDescriptor.id / 4;
const ID_HIGH = SendDescriptor.idHigh / 4;
const SGE = SendDescriptor.sge / 4;
const IMM_DATA = SendDescriptor.immData / 4;
const RKEY = SendDescriptor.rkey / 4;
const REMOTE_ADDRESS = SendDescriptor.remoteAddress / 4;
const ADDRESS_HANDLE = SendDescriptor.addressHandle / 4;
const REMOTE_QPN = SendDescriptor.remoteQpn / 4;
const REMOTE_QKEY = SendDescriptor.remoteQkey / 4;
const COMPARE_ADD = SendDescriptor.compareAdd / 4;
const SWAP = SendDescriptor.swap / 4;
const { SIGNALED, INLINE } = SendFlags;
const {
  send,
  sendWithImm,
  sendWithInv,
  rdmaWrite,
  rdmaWriteWithImm,
  rdmaRead,
  atomicFetchAndAdd,
  atomicCmpAndSwp,
} = Opcode;

/**
 * Send requests as descriptors in shared memory: write any number, then post them with one call. Nothing is allocated on
 * the way, and no BigInt made; all checks are made natively, when they are posted.
 *
 * Identifiers are 32 bits here, and come back as the low half of the completion's. Offsets and lengths are bytes.
 * Each request has one range of a region; `postSend()` takes lists of them. With `SendFlags.INLINE` in the flags of a SEND or WRITE
 * the range, of `maxInlineData` bytes at the most, is copied when it is posted, and may change at once.
 * Requests make a completion only where `flags` has `SendFlags.SIGNALED`; signal one in each queue's length at least, since
 * only a completion makes room again.
 */
export class SendRing extends DescriptorRing {
  readonly #bytes: Uint8Array;
  readonly #maxInlineData: number;

  constructor(queuePair: QueuePair) {
    super(queuePair.sendQueue, SendDescriptor.size);
    this.#bytes = this.queue.memory.bytes;
    this.#maxInlineData = queuePair.maxInlineData;
  }

  /** SEND of a range of a region. */
  send(id: number, mr: MemoryRegion, offset: number, length: number, flags: number = SIGNALED): void {
    this.#request(send, flags, id, mr.slot, offset, length);
  }

  /** SEND with 32 bits of immediate data in host order. */
  sendWithImm(
    id: number,
    mr: MemoryRegion,
    offset: number,
    length: number,
    immData: number,
    flags: number = SIGNALED,
  ): void {
    this.words[this.#request(sendWithImm, flags, id, mr.slot, offset, length) + IMM_DATA] = immData;
  }

  /** SEND that also invalidates an rkey of the peer's. */
  sendWithInv(
    id: number,
    mr: MemoryRegion,
    offset: number,
    length: number,
    invalidateRkey: number,
    flags: number = SIGNALED,
  ): void {
    this.words[this.#request(sendWithInv, flags, id, mr.slot, offset, length) + IMM_DATA] = invalidateRkey;
  }

  /** SEND of bytes that are copied now, up to the queue pair's `maxInlineData`. */
  sendInline(id: number, data: Uint8Array, flags: number = SIGNALED): void {
    this.#inline(send, id, data, flags);
  }

  /** SEND of a range of a region to a queue pair for datagrams, from one: `remoteQpn` 24 bits, `remoteQkey` 32. */
  sendTo(
    id: number,
    mr: MemoryRegion,
    offset: number,
    length: number,
    ah: AddressHandle,
    remoteQpn: number,
    remoteQkey: number,
    flags: number = SIGNALED,
  ): void {
    const word = this.#request(send, flags, id, mr.slot, offset, length);
    const words = this.words;
    words[word + ADDRESS_HANDLE] = ah.slot;
    words[word + REMOTE_QPN] = remoteQpn;
    words[word + REMOTE_QKEY] = remoteQkey;
  }

  /** RDMA WRITE from a region to a peer's memory. */
  rdmaWrite(
    id: number,
    mr: MemoryRegion,
    offset: number,
    length: number,
    remote: RemoteRegion,
    remoteOffset: number,
    flags: number = SIGNALED,
  ): void {
    this.#remote(this.#request(rdmaWrite, flags, id, mr.slot, offset, length), remote, remoteOffset, length);
  }

  /** RDMA WRITE of bytes that are copied now, up to the queue pair's `maxInlineData`. */
  rdmaWriteInline(
    id: number,
    data: Uint8Array,
    remote: RemoteRegion,
    remoteOffset: number,
    flags: number = SIGNALED,
  ): void {
    this.#remote(this.#inline(rdmaWrite, id, data, flags), remote, remoteOffset, data.length);
  }

  /** RDMA WRITE that also ends a receive of the peer, with 32 bits of immediate data in host order. */
  rdmaWriteWithImm(
    id: number,
    mr: MemoryRegion,
    offset: number,
    length: number,
    remote: RemoteRegion,
    remoteOffset: number,
    immData: number,
    flags: number = SIGNALED,
  ): void {
    const word = this.#request(rdmaWriteWithImm, flags, id, mr.slot, offset, length);
    this.words[word + IMM_DATA] = immData;
    this.#remote(word, remote, remoteOffset, length);
  }

  /** RDMA READ from a peer's memory into a region. */
  rdmaRead(
    id: number,
    mr: MemoryRegion,
    offset: number,
    length: number,
    remote: RemoteRegion,
    remoteOffset: number,
    flags: number = SIGNALED,
  ): void {
    this.#remote(this.#request(rdmaRead, flags, id, mr.slot, offset, length), remote, remoteOffset, length);
  }

  /** Adds to 64 bits of a peer's memory; the value before comes to `offset`. The value to add is given in two halves. */
  fetchAdd(
    id: number,
    mr: MemoryRegion,
    offset: number,
    remote: RemoteRegion,
    remoteOffset: number,
    addLow: number,
    addHigh = 0,
    flags: number = SIGNALED,
  ): void {
    const word = this.#request(atomicFetchAndAdd, flags, id, mr.slot, offset, 8);
    this.#remote(word, remote, remoteOffset, 8);
    this.words[word + COMPARE_ADD] = addLow;
    this.words[word + COMPARE_ADD + 1] = addHigh;
  }

  /** Replaces 64 bits of a peer's memory if they equal `compare`; the value before comes to `offset`. */
  compareSwap(
    id: number,
    mr: MemoryRegion,
    offset: number,
    remote: RemoteRegion,
    remoteOffset: number,
    compare: bigint,
    swap: bigint,
    flags: number = SIGNALED,
  ): void {
    const word = this.#request(atomicCmpAndSwp, flags, id, mr.slot, offset, 8);
    this.#remote(word, remote, remoteOffset, 8);
    const words = this.words;
    words[word + COMPARE_ADD] = Number(compare & 0xffffffffn);
    words[word + COMPARE_ADD + 1] = Number(compare >> 32n);
    words[word + SWAP] = Number(swap & 0xffffffffn);
    words[word + SWAP + 1] = Number(swap >> 32n);
  }

  /** Starts the next descriptor; returns where it lies, in words. */
  #request(opcode: number, flags: number, id: number, mr: number, offset: number, length: number): number {
    const word = this.begin();
    const words = this.words;
    words[word] = opcode | ((flags & 0xff) << 8) | (1 << 16);
    words[word + ID] = id;
    words[word + ID_HIGH] = 0;
    this.element(word + SGE, mr, offset, length);
    return word;
  }

  /** Starts the next descriptor with bytes of its own; returns where it lies, in words. */
  #inline(opcode: number, id: number, data: Uint8Array, flags: number): number {
    if (data.length > this.#maxInlineData) {
      throw outOfRange('data', `at most the ${this.#maxInlineData} bytes of maxInlineData`, data.length);
    }
    const { inlineArea, inlineStride } = this.queue.layout;
    const place = this.queue.place(this.written);
    const word = this.#request(opcode, flags | INLINE, id, INLINE_AREA, 0, data.length);
    if (data.length > 0) this.#bytes.set(data, inlineArea + place * inlineStride);
    else this.#bytes[word * 4 + SendDescriptor.sgeCount] = 0;
    return word;
  }

  #remote(word: number, remote: RemoteRegion, offset: number, length: number): void {
    const within = offset >= 0 && length <= remote.length - offset;
    if (!within || (offset >>> 0 !== offset && !Number.isInteger(offset))) {
      this.abandon();
      throw outOfRange(
        'remoteOffset',
        `such that ${length} bytes lie within the remote region of ${remote.length}`,
        offset,
      );
    }
    const words = this.words;
    const low = remote.addressLow + offset;
    words[word + RKEY] = remote.rkey;
    words[word + REMOTE_ADDRESS] = low;
    words[word + REMOTE_ADDRESS + 1] =
      low < TWO_32 ? remote.addressHigh : remote.addressHigh + Math.floor(low / TWO_32);
  }
}
