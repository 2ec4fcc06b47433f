import type { Key } from './messages.js';

/** How an exchange writes keys: as text over TCP. */
export interface KeyCodec {
  encode(key: Key): Buffer;
  /** @throws RdmaError `ERR_RDMA_PROTOCOL` */
  decode(bytes: Buffer): Key;
}

/**
 * The talk of the two ends beside the data. Both go through the same script, of messages whose size both know. TCP carries it
 * now (`tcp.ts`); whatever else is to carry it implements this.
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

  /** Says the last words, to which there is no answer. */
  end(): void;
  /** Breaks it off. */
  destroy(): void;
}

export type Role = 'client' | 'server';
