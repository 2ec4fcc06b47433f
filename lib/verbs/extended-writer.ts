import { Opcode, SendFlags } from './constants.js';
import type { QueueMemory } from './descriptor-queue.js';
import { invalidArgType, outOfRange } from './errors.js';
import {
  ExtendedOpcode,
  type AtomicWriteRequest,
  type ExtendedSendRequest,
  type FlushRequest,
} from './extended-posting.js';
import { SendDescriptor } from './layout.js';
import type { QueueLayout } from './native.js';
import { integer, unsigned64, wordNumber } from './validate.js';
import { SendWriter } from './work-request.js';

/** `enum ib_placement_type`, `enum ib_selectivity_level`. */
const GLOBAL = 1;
const PERSISTENT = 2;
const WHOLE_REGION = 1;

/** Writes requests of extended posting as descriptors into a queue's shared memory. */
export class ExtendedWriter {
  readonly #memory: QueueMemory;
  readonly #layout: QueueLayout;
  readonly #plain: SendWriter;

  constructor(memory: QueueMemory, layout: QueueLayout, maxInlineData: number) {
    this.#memory = memory;
    this.#layout = layout;
    this.#plain = new SendWriter(memory, layout, maxInlineData);
  }

  /** @throws TypeError, RangeError */
  write(place: number, request: ExtendedSendRequest): void {
    if (typeof request !== 'object' || request === null)
      throw invalidArgType('request', 'a send request', request);
    if (request.opcode === 'atomicWrite' || request.opcode === 'flush') {
      this.#writeExtended(place, request);
      return;
    }
    wordNumber('opcode', { ...Opcode, ...ExtendedOpcode }, request.opcode);
    this.#plain.write(place, request);
  }

  #writeExtended(place: number, request: AtomicWriteRequest | FlushRequest): void {
    const { remote, signaled = true, fence = false } = request;
    if (typeof remote !== 'object' || remote === null)
      throw invalidArgType('remote', `given for ${request.opcode}`, remote);
    const at = this.#layout.descriptors + place * SendDescriptor.size;
    const { bytes, view } = this.#memory;
    bytes.fill(0, at, at + SendDescriptor.size);
    const flags = (signaled ? SendFlags.SIGNALED : 0) | (fence ? SendFlags.FENCE : 0);
    view.setUint8(at + SendDescriptor.opcode, ExtendedOpcode[request.opcode]);
    view.setUint8(at + SendDescriptor.flags, flags);
    const id = unsigned64('wrId', request.wrId ?? 0);
    view.setUint32(at + SendDescriptor.id, Number(id & 0xffffffffn), true);
    view.setUint32(at + SendDescriptor.idHigh, Number(id >> 32n), true);
    view.setUint32(at + SendDescriptor.rkey, integer('remote.rkey', remote.rkey, 0, 2 ** 32 - 1), true);
    const address = unsigned64('remote.address', remote.address);
    view.setBigUint64(at + SendDescriptor.remoteAddress, address, true);
    if (request.opcode === 'atomicWrite') {
      view.setBigUint64(at + SendDescriptor.compareAdd, unsigned64('value', request.value), true);
      return;
    }
    const { global = false, persistent = false, wholeRegion = false } = request;
    if (!global && !persistent) throw outOfRange('global', 'true, or persistent, in a flush', global);
    const length = integer('length', request.length, wholeRegion ? 0 : 1, Number.MAX_SAFE_INTEGER);
    view.setBigUint64(at + SendDescriptor.compareAdd, BigInt(length), true);
    const type = (global ? GLOBAL : 0) | (persistent ? PERSISTENT : 0);
    view.setBigUint64(at + SendDescriptor.swap, BigInt(type | ((wholeRegion ? WHOLE_REGION : 0) << 8)), true);
  }
}
