import type { Endpoint } from '../endpoint.js';
import type { Key } from './messages.js';

/** How an exchange writes keys: as text over TCP, in binary over RDMA. */
export interface KeyCodec {
  encode(key: Key): Buffer;
  /** @throws RdmaError `ERR_RDMA_PROTOCOL` */
  decode(bytes: Buffer): Key;
}

/**
 * The talk of the two ends beside the data. Both go through the same script, of messages whose size both know. TCP carries it
 * (`tcp.ts`), or a connection of rdma_cm (`cm.ts`).
 */
export interface Exchange {
  /** Who speaks first in each swap. The client. */
  readonly role: Role;
  /** Whom this end talks to, for messages. */
  readonly peer: string;
  readonly keys: KeyCodec;
  /** The peer has begun to say what comes next: it has finished what it did before. */
  readonly heard: boolean;
  /** The peer has ended the talk, and all it said was taken. */
  readonly gone: boolean;

  /**
   * Gives a message and takes one of the same size.
   *
   * @param timeout milliseconds for the peer's message; Infinity while it may be busy for as long as it likes
   * @throws RdmaError `ERR_RDMA_PEER_LOST`, `ERR_RDMA_TIMEOUT`; AbortError
   */
  swap(message: Buffer, timeout: number): Promise<Buffer>;

  /**
   * Connects the queue pairs of this end to those of the peer, before their keys are exchanged. Absent where the keys tell how to
   * do it.
   *
   * @throws RdmaError, ConnectionError; AbortError
   */
  readonly join?: ((endpoint: Endpoint) => Promise<void>) | undefined;

  /** Says the last words, to which there is no answer. */
  end(): void;
  /** Breaks it off. */
  destroy(): void;
}

export type Role = 'client' | 'server';
