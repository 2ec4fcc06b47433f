import { Duplex } from 'node:stream';
import type { RdmaError } from '../verbs/errors.js';
import type { Connection } from './connection.js';

/** How much a stream keeps. */
export interface DuplexOptions {
  /** Bytes that each half of the stream keeps beside what the connection keeps; 65 536 by default. */
  highWaterMark?: number;
  /** As with `node:net`; by default as the connection has it. */
  allowHalfOpen?: boolean;
}

/**
 * A connection as a stream of bytes: what is written goes as messages, whose bounds the other end does not see. Anything that takes a
 * `Duplex` works on it. Made by {@link Connection.toDuplex}.
 */
export class ConnectionStream extends Duplex {
  readonly connection: Connection;
  readonly connecting = false;
  #pulling = false;

  /** @internal */
  constructor(connection: Connection, { highWaterMark = 65_536, allowHalfOpen = false }: DuplexOptions) {
    super({ highWaterMark, allowHalfOpen });
    this.connection = connection;
    connection.on('error', (error) => this.destroy(error));
    connection.on('close', () => this.destroy());
    connection.on('timeout', () => this.emit('timeout'));
  }

  get remoteAddress(): string | undefined {
    return this.connection.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.connection.remotePort;
  }

  get remoteFamily(): string | undefined {
    return this.connection.remoteFamily;
  }

  get localAddress(): string | undefined {
    return this.connection.localAddress;
  }

  get localPort(): number | undefined {
    return this.connection.localPort;
  }

  get localFamily(): string | undefined {
    return this.connection.localFamily;
  }

  get bytesRead(): number {
    return this.connection.bytesRead;
  }

  get bytesWritten(): number {
    return this.connection.bytesWritten;
  }

  address() {
    return this.connection.address();
  }

  setTimeout(ms: number, listener?: () => void): this {
    this.connection.setTimeout(ms);
    if (listener !== undefined) this.once('timeout', listener);
    return this;
  }

  /** Nothing is ever held back for longer than the turn of the event loop: there is nothing to set. */
  setNoDelay(): this {
    return this;
  }

  /** The connection has its own: see `keepAliveInterval`. */
  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    this.connection.ref();
    return this;
  }

  unref(): this {
    this.connection.unref();
    return this;
  }

  override _read(): void {
    if (!this.#pulling) void this.#pull();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#settle(this.connection.send(chunk), callback);
  }

  override _writev(chunks: { chunk: Buffer }[], callback: (error?: Error | null) => void): void {
    this.#settle(Promise.all(chunks.map(({ chunk }) => this.connection.send(chunk))), callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#settle(this.connection.end(), callback);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const { connection } = this;
    if (connection.closed) return callback(error);
    connection.once('close', () => callback(error));
    // Where both halves have ended the connection closes by itself, once the peer knows all that it must.
    if (error !== null || !this.readableEnded || !this.writableFinished)
      connection.destroy(error ?? undefined);
  }

  #settle(work: Promise<unknown>, callback: (error?: Error | null) => void): void {
    work.then(
      () => callback(),
      (reason: unknown) => {
        const error = reason as RdmaError;
        // Whoever has closed the connection under the stream knows of it: that is no failure of the stream.
        if (error.code === 'ERR_RDMA_CLOSED') this.destroy();
        callback(error);
      },
    );
  }

  async #pull(): Promise<void> {
    this.#pulling = true;
    try {
      for (;;) {
        const message = await this.connection.receive();
        // An empty message is no bytes at all.
        if (message?.length === 0) continue;
        if (!this.push(message ?? null) || message === undefined) break;
      }
    } catch {
      // The connection has failed, and tells so by its events.
    } finally {
      this.#pulling = false;
    }
  }
}
