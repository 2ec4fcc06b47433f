import { AddressHandle } from './address-handle.js';
import { Opcode, SendFlags, type SendOpcode } from './constants.js';
import type { QueueMemory } from './descriptor-queue.js';
import { invalidArgType, outOfRange, RdmaError } from './errors.js';
import { INLINE_AREA, ReceiveDescriptor, ScatterGatherElement, SendDescriptor } from './layout.js';
import { MemoryRegion, RemoteRegion } from './memory-region.js';
import type { QueueLayout } from './native.js';
import type { Resource } from './resource.js';
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
  /**
   * The rkey to invalidate at the peer, for `sendWithInv`. That of a memory region of this library cannot be: the peer's receive
   * fails and its connection with it, of which rxe (Linux 6.1) tells the sender nothing.
   */
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
const REMOTE_SRQN = SendDescriptor.remoteSrqn / 4;
const RECEIVE_ID = ReceiveDescriptor.id / 4;
const RECEIVE_ID_HIGH = ReceiveDescriptor.idHigh / 4;
const RECEIVE_SGE = ReceiveDescriptor.sge / 4;
const ELEMENT_MR = ScatterGatherElement.mr / 4;
const ELEMENT_LENGTH = ScatterGatherElement.length / 4;
const ELEMENT_OFFSET = ScatterGatherElement.offset / 4;
// In bytes.
const SEND_SIZE = SendDescriptor.size;
const RECEIVE_SIZE = ReceiveDescriptor.size;
const { SIGNALED, FENCE, SOLICITED, INLINE } = SendFlags;
const { sendWithInv: SEND_WITH_INV, atomicCmpAndSwp: COMPARE_AND_SWAP } = Opcode;

const opcodeNumbers = new Map<unknown, number>(Object.entries(Opcode));

/** By the numbers of the opcodes. */
const withRemote = bits('rdmaWrite', 'rdmaWriteWithImm', 'rdmaRead', 'atomicCmpAndSwp', 'atomicFetchAndAdd');
const withImmediate = bits('sendWithImm', 'rdmaWriteWithImm');
const atomic = bits('atomicCmpAndSwp', 'atomicFetchAndAdd');

function bits(...opcodes: SendOpcode[]): number {
  return opcodes.reduce((all, opcode) => all | (1 << Opcode[opcode]), 0);
}

/** What send and receive descriptors share: an identifier and elements, written into a queue's shared memory. */
abstract class DescriptorWriter {
  protected readonly layout: QueueLayout;
  protected readonly memory: QueueMemory;

  constructor(memory: QueueMemory, layout: QueueLayout) {
    this.layout = layout;
    this.memory = memory;
  }

  /** Writes 64 bits in two places, given in words. */
  protected writeHalves(low: number, high: number, name: string, value: bigint | number = 0): void {
    const { words } = this.memory;
    if (typeof value === 'number' && value >= 0 && Number.isSafeInteger(value)) {
      words[low] = value;
      words[high] = value / TWO_32;
      return;
    }
    const long = unsigned64(name, value);
    words[low] = Number(BigInt.asUintN(32, long));
    words[high] = Number(long >> 32n);
  }

  /** Writes the elements of the descriptor that begins at a word; returns how many there are. */
  protected writeElements(place: number, word: number, sge: Sge | readonly Sge[] | undefined): number {
    if (sge === undefined) return 0;
    if (!Array.isArray(sge)) {
      this.#writeRange(word, sge as Sge);
      return 1;
    }
    const elements = sge as readonly Sge[];
    const { maxSge, elements: area } = this.layout;
    if (elements.length > maxSge) {
      throw new RdmaError(
        'ERR_RDMA_LIMIT',
        `${elements.length} scatter/gather elements are ${elements.length - maxSge} above the ${maxSge} of this queue`,
      );
    }
    elements.forEach((element, k) => {
      const where =
        elements.length === 1 ? word : (area + (place * maxSge + k) * ScatterGatherElement.size) / 4;
      this.#writeRange(where, element);
    });
    return elements.length;
  }

  protected writeElement(word: number, mr: number, offset: number, length: number): void {
    const { words } = this.memory;
    words[word + ELEMENT_MR] = mr;
    words[word + ELEMENT_LENGTH] = length;
    words[word + ELEMENT_OFFSET] = offset;
    words[word + ELEMENT_OFFSET + 1] = offset / TWO_32;
  }

  #writeRange(word: number, element: Sge): void {
    const { mr } = element;
    if (!(mr instanceof MemoryRegion)) throw invalidArgType('sge.mr', 'a MemoryRegion', mr);
    if (mr.closed) throw closedError(mr);
    const offset = integer('sge.offset', element.offset ?? 0, 0, mr.length);
    const rest = mr.length - offset;
    const length = integer('sge.length', element.length ?? rest, 0, 2 ** 32 - 1);
    if (length > rest) {
      throw outOfRange('sge.length', `at most ${rest} from offset ${offset} of ${mr.label}`, length);
    }
    this.writeElement(word, mr.slot, offset, length);
  }
}

function closedError(resource: Resource): RdmaError {
  return new RdmaError('ERR_RDMA_CLOSED', `${resource.label} is closed`);
}

/** Writes send requests as descriptors into a queue's shared memory. */
export class SendWriter extends DescriptorWriter {
  readonly #maxInlineData: number;

  constructor(memory: QueueMemory, layout: QueueLayout, maxInlineData: number) {
    super(memory, layout);
    this.#maxInlineData = maxInlineData;
  }

  /** @throws TypeError, RangeError */
  write(place: number, request: SendRequest): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgType('request', 'a send request', request);
    const {
      opcode,
      remote,
      remoteSrqn,
      immData,
      ud,
      fence = false,
      solicited = false,
      signaled = true,
    } = request;
    const number = opcodeNumbers.get(opcode) ?? wordNumber('opcode', Opcode, opcode);
    const bit = 1 << number;
    const { words, view } = this.memory;
    const at = this.layout.descriptors + place * SEND_SIZE;
    const word = at >> 2;
    // The other words are written below, or nobody reads them for such a request.
    words[word + IMM_DATA] = 0;
    words[word + RKEY] = 0;
    words[word + REMOTE_ADDRESS] = 0;
    words[word + REMOTE_ADDRESS + 1] = 0;
    let flags = (signaled ? SIGNALED : 0) | (fence ? FENCE : 0) | (solicited ? SOLICITED : 0);
    let count: number;
    if (request.inline !== undefined) {
      if (request.sge !== undefined) throw outOfRange('inline', 'given without sge', 'both');
      count = this.#writeInline(place, word + SGE, request.inline);
      flags |= INLINE;
    } else {
      count = this.writeElements(place, word + SGE, request.sge);
    }
    words[word] = number | (flags << 8) | (count << 16);
    this.writeHalves(word + ID, word + ID_HIGH, 'wrId', request.wrId);
    if ((bit & withRemote) !== 0) {
      this.#writeRemote(word, remote, opcode);
    } else if (remote !== undefined) {
      throw outOfRange('remote', `absent for ${opcode}: it has no remote address`, 'one');
    }
    words[word + REMOTE_SRQN] =
      remoteSrqn === undefined ? 0 : integer('remoteSrqn', remoteSrqn, 0, 2 ** 24 - 1);
    if (ud !== undefined) this.#writeTarget(word, ud);
    if ((bit & withImmediate) !== 0) {
      words[word + IMM_DATA] = integer('immData', immData, 0, 2 ** 32 - 1);
    } else if (immData !== undefined) {
      throw outOfRange('immData', `absent for ${opcode}: use ${opcode}WithImm`, immData);
    }
    if (number === SEND_WITH_INV) {
      const rkey = integer('invalidateRkey', request.invalidateRkey, 0, 2 ** 32 - 1);
      words[word + IMM_DATA] = rkey;
    }
    if ((bit & atomic) !== 0) {
      view.setBigUint64(at + SendDescriptor.compareAdd, unsigned64('compareAdd', request.compareAdd), true);
    }
    if (number === COMPARE_AND_SWAP) {
      view.setBigUint64(at + SendDescriptor.swap, unsigned64('swap', request.swap), true);
    }
  }

  #writeRemote(word: number, remote: RemoteTarget | RemoteRegion | undefined, opcode: SendOpcode): void {
    const { words } = this.memory;
    const address = word + REMOTE_ADDRESS;
    if (remote instanceof RemoteRegion) {
      words[address] = remote.addressLow;
      words[address + 1] = remote.addressHigh;
      words[word + RKEY] = remote.rkey;
      return;
    }
    if (typeof remote !== 'object' || remote === null)
      throw invalidArgType('remote', `given for ${opcode}`, remote);
    this.writeHalves(address, address + 1, 'remote.address', remote.address);
    words[word + RKEY] = integer('remote.rkey', remote.rkey, 0, 2 ** 32 - 1);
  }

  #writeTarget(word: number, target: DatagramTarget): void {
    const { ah } = target;
    if (!(ah instanceof AddressHandle)) throw invalidArgType('ud.ah', 'an AddressHandle', ah);
    if (ah.closed) throw closedError(ah);
    const { words } = this.memory;
    words[word + ADDRESS_HANDLE] = ah.slot;
    words[word + REMOTE_QPN] = integer('ud.remoteQpn', target.remoteQpn, 0, 2 ** 24 - 1);
    words[word + REMOTE_QKEY] = integer('ud.remoteQkey', target.remoteQkey, 0, 2 ** 32 - 1);
  }

  #writeInline(place: number, word: number, data: Uint8Array): number {
    if (!(data instanceof Uint8Array)) throw invalidArgType('inline', 'a Uint8Array', data);
    if (data.length > this.#maxInlineData) {
      throw new RdmaError(
        'ERR_RDMA_LIMIT',
        `${data.length} bytes inline are ${data.length - this.#maxInlineData} above the ${this.#maxInlineData} of this queue pair: ` +
          'create it with a larger maxInlineData, or send from a memory region',
      );
    }
    const { inlineArea, inlineStride } = this.layout;
    if (data.length > 0) this.memory.bytes.set(data, inlineArea + place * inlineStride);
    this.writeElement(word, INLINE_AREA, 0, data.length);
    return data.length > 0 ? 1 : 0;
  }
}

/** Writes receive requests as descriptors into a queue's shared memory. */
export class ReceiveWriter extends DescriptorWriter {
  /** @throws TypeError, RangeError */
  write(place: number, request: ReceiveRequest): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgType('request', 'a receive request', request);
    const { words } = this.memory;
    const word = (this.layout.descriptors + place * RECEIVE_SIZE) >> 2;
    const count = this.writeElements(place, word + RECEIVE_SGE, request.sge);
    words[word] = count << 16;
    this.writeHalves(word + RECEIVE_ID, word + RECEIVE_ID_HIGH, 'wrId', request.wrId);
  }
}
