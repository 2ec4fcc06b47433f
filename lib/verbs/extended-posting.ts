// Posting by ibv_wr_*: what only that has, and how its requests are written as descriptors.
import { SendFlags, Opcode } from './constants.js';
import { invalidArgType, outOfRange } from './errors.js';
import { SendDescriptor } from './layout.js';
import type { QueueLayout } from './native.js';
import { integer, unsigned64, wordNumber } from './validate.js';
import type { DescriptorWriter, RemoteTarget, SendRequest } from './work-request.js';

/** `enum ibv_wr_opcode`: what only extended posting sends. */
export const ExtendedOpcode = { flush: 14, atomicWrite: 15 } as const;
export type ExtendedSendOpcode = keyof typeof ExtendedOpcode;

/** `enum ibv_qp_create_send_ops_flags`, as bits. */
export const SendOpBit = {
  rdmaWrite: 0,
  rdmaWriteWithImm: 1,
  send: 2,
  sendWithImm: 3,
  rdmaRead: 4,
  atomicCmpAndSwp: 5,
  atomicFetchAndAdd: 6,
  localInv: 7,
  bindMw: 8,
  sendWithInv: 9,
  tso: 10,
  flush: 11,
  atomicWrite: 12,
} as const;
/** What an extended queue pair is to send. */
export type SendOp = keyof typeof SendOpBit;

interface ExtendedRequest {
  /** Comes back in the completion; 64 bits, 0 by default. */
  wrId?: bigint | number;
  remote: RemoteTarget;
  /** Whether it makes a completion when it succeeds; true by default. A failure always does. */
  signaled?: boolean;
  /** Wait for earlier READs and atomics first. */
  fence?: boolean;
}

/** Puts 8 bytes into a peer's memory at once, never by halves. */
export interface AtomicWriteRequest extends ExtendedRequest {
  opcode: 'atomicWrite';
  /** 64 bits in host order; the address must be a multiple of 8. */
  value: bigint | number;
}

/** Waits until what was written before is where it is to be. */
export interface FlushRequest extends ExtendedRequest {
  opcode: 'flush';
  /** Bytes from the remote address on. */
  length: number;
  /** `global`: visible to all who look at the memory; `persistent`: safe from a loss of power. Both by default false; one must be true. */
  global?: boolean;
  persistent?: boolean;
  /** The whole memory region, instead of the range; false by default. */
  wholeRegion?: boolean;
}

/** What {@link QueuePair.postSendEx} takes. */
export type ExtendedSendRequest = SendRequest | AtomicWriteRequest | FlushRequest;

/** `enum ib_placement_type`, `enum ib_selectivity_level`. */
const GLOBAL = 1;
const PERSISTENT = 2;
const WHOLE_REGION = 1;

/** @internal Writes one request as a descriptor. */
export function writeExtended(
  writer: DescriptorWriter,
  memory: ArrayBuffer,
  layout: QueueLayout,
  place: number,
  request: ExtendedSendRequest,
): void {
  if (typeof request !== 'object' || request === null)
    throw invalidArgType('request', 'a send request', request);
  if (request.opcode !== 'atomicWrite' && request.opcode !== 'flush') {
    wordNumber('opcode', { ...Opcode, ...ExtendedOpcode }, request.opcode);
    writer.writeSend(place, request);
    return;
  }
  const { remote, signaled = true, fence = false } = request;
  if (typeof remote !== 'object' || remote === null)
    throw invalidArgType('remote', `given for ${request.opcode}`, remote);
  const at = layout.descriptors + place * SendDescriptor.size;
  new Uint8Array(memory, at, SendDescriptor.size).fill(0);
  const view = new DataView(memory, at, SendDescriptor.size);
  view.setUint8(SendDescriptor.opcode, ExtendedOpcode[request.opcode]);
  view.setUint8(SendDescriptor.flags, (signaled ? SendFlags.SIGNALED : 0) | (fence ? SendFlags.FENCE : 0));
  const id = unsigned64('wrId', request.wrId ?? 0);
  view.setUint32(SendDescriptor.id, Number(id & 0xffffffffn), true);
  view.setUint32(SendDescriptor.idHigh, Number(id >> 32n), true);
  view.setUint32(SendDescriptor.rkey, integer('remote.rkey', remote.rkey, 0, 2 ** 32 - 1), true);
  view.setBigUint64(SendDescriptor.remoteAddress, unsigned64('remote.address', remote.address), true);
  if (request.opcode === 'atomicWrite') {
    view.setBigUint64(SendDescriptor.compareAdd, unsigned64('value', request.value), true);
    return;
  }
  const { global = false, persistent = false, wholeRegion = false } = request;
  if (!global && !persistent) throw outOfRange('global', 'true, or persistent, in a flush', global);
  const length = integer('length', request.length, wholeRegion ? 0 : 1, Number.MAX_SAFE_INTEGER);
  view.setBigUint64(SendDescriptor.compareAdd, BigInt(length), true);
  const type = (global ? GLOBAL : 0) | (persistent ? PERSISTENT : 0);
  view.setBigUint64(SendDescriptor.swap, BigInt(type | ((wholeRegion ? WHOLE_REGION : 0) << 8)), true);
}
