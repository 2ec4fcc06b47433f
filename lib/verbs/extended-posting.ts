// Posting by ibv_wr_*: what only that has.
import type { RemoteTarget, SendRequest } from './work-request.js';

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
