import type { Link } from './link.js';
import { Fifo } from './fifo.js';

/** Writes the request for a part of a transfer. */
export type WriteRequest = (id: number, offset: number, length: number) => void;

interface Transfer {
  length: number;
  write: WriteRequest;
  /** Bytes that are asked for. */
  begun: number;
  /** Requests without an answer. */
  pending: number;
  resolve(this: void): void;
  reject(this: void, error: Error): void;
}

export interface PipelineLimits {
  /** Requests outstanding. */
  requests: number;
  /** Bytes of them together. */
  bytes: number;
  /** Bytes of one. */
  part: number;
}

/**
 * Transfers to or from the peer's memory, in parts of a size that all share: as many requests as the device does well with, and a long
 * transfer does not hold up a short one.
 */
export class Pipeline {
  readonly #link: Link;
  readonly #limits: PipelineLimits;
  readonly #transfers = new Fifo<Transfer>();
  #requests = 0;
  #bytes = 0;
  #failure: Error | undefined;

  constructor(link: Link, limits: PipelineLimits) {
    this.#link = link;
    this.#limits = limits;
  }

  /** Resolves when all parts have ended. One of no bytes is one request. */
  run(length: number, write: WriteRequest): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#transfers.push({ length, write, begun: 0, pending: 0, resolve, reject });
      this.#go();
    });
  }

  fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#transfers.drain()) reject(error);
  }

  #go(): void {
    const { requests, bytes, part } = this.#limits;
    while (this.#transfers.length > 0 && this.#link.usable) {
      const transfer = this.#transfers.first!;
      const count = Math.min(transfer.length - transfer.begun, part);
      if (this.#requests >= requests || (this.#requests > 0 && this.#bytes + count > bytes)) break;
      this.#transfers.shift();
      this.#request(transfer, count);
      this.#link.postSoon();
      if (transfer.begun < transfer.length) this.#transfers.push(transfer);
    }
  }

  #request(transfer: Transfer, count: number): void {
    const offset = transfer.begun;
    const id = this.#link.begin((error) => {
      --this.#requests;
      this.#bytes -= count;
      --transfer.pending;
      if (error !== undefined) transfer.reject(error);
      else if (transfer.pending === 0 && transfer.begun === transfer.length) transfer.resolve();
      this.#go();
    });
    transfer.begun += count;
    ++transfer.pending;
    ++this.#requests;
    this.#bytes += count;
    transfer.write(id, offset, count);
  }
}
