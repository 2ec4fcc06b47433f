import { once } from 'node:events';
import net from 'node:net';
import { abortError, RdmaError } from '../../verbs/errors.js';
import type { Exchange, Role } from './exchange.js';
import { peerLost, peerSilent } from './failures.js';
import { decodeKey, DONE, encodeKey } from './messages.js';

export interface TcpOptions {
  /** 0 lets the system choose one, for a server. */
  port: number;
  /** Milliseconds to connect in. */
  timeout: number;
  signal?: AbortSignal | undefined;
}

/** Milliseconds of silence after which the kernel asks whether the peer's host is still there, ten times, a second apart. */
const KEEP_ALIVE = 5000;
/** Milliseconds for a peer that does not close when all is said. */
const lingering = 2000;

/**
 * @param sourceAddress a local address to connect from
 * @throws RdmaError `ERR_RDMA_NO_PEER`, with the reason; AbortError
 */
export async function connectTcp(
  host: string,
  { port, timeout, signal, sourceAddress }: TcpOptions & { sourceAddress?: string | undefined },
): Promise<Exchange> {
  if (signal?.aborted) throw abortError(signal);
  const socket = net.connect({ host, port, ...(sourceAddress && { localAddress: sourceAddress }) });
  const deadline = AbortSignal.timeout(timeout);
  const giveUp = () => socket.destroy(new Error(`no answer in ${timeout} ms`));
  const abort = () => socket.destroy(abortError(signal!));
  deadline.addEventListener('abort', giveUp);
  signal?.addEventListener('abort', abort);
  try {
    await once(socket, 'connect');
  } catch (cause) {
    if (signal?.aborted) throw abortError(signal);
    throw new RdmaError(
      'ERR_RDMA_NO_PEER',
      `cannot connect to ${host}, TCP port ${port}: ${(cause as Error).message}. Start the other end first, without a host, ` +
        'and open that port for TCP',
      { cause },
    );
  } finally {
    deadline.removeEventListener('abort', giveUp);
    signal?.removeEventListener('abort', abort);
  }
  return new TcpExchange(socket, 'client', signal);
}

/**
 * Waits for one client, for as long as it takes, and lets no second one in.
 *
 * @throws RdmaError `ERR_RDMA_NO_PEER` where the port cannot be had; AbortError
 */
export async function acceptTcp({
  port,
  signal,
  onListening,
}: TcpOptions & { onListening?: ((port: number) => void) | undefined }): Promise<Exchange> {
  const server = net.createServer();
  try {
    await once(server.listen({ port, backlog: 1 }), 'listening', { signal });
  } catch (cause) {
    server.close();
    if (signal?.aborted) throw abortError(signal);
    throw new RdmaError(
      'ERR_RDMA_NO_PEER',
      `cannot listen on TCP port ${port}: ${(cause as Error).message}. Is another server running? Choose another port for both ends.`,
      { cause },
    );
  }
  try {
    const connection = once(server, 'connection', { signal });
    onListening?.((server.address() as net.AddressInfo).port);
    const [socket] = (await connection) as [net.Socket];
    return new TcpExchange(socket, 'server', signal);
  } catch (error) {
    if (signal?.aborted) throw abortError(signal);
    throw error;
  } finally {
    server.close();
  }
}

interface Reader {
  size: number;
  resolve(message: Buffer): void;
  reject(error: Error): void;
}

/** perftest reads each message with one call, and fails when it comes in pieces: so each is one write, and none waits for more. */
class TcpExchange implements Exchange {
  readonly role: Role;
  readonly peer: string;
  readonly keys = { encode: encodeKey, decode: decodeKey };
  readonly #socket: net.Socket;
  readonly #signal: AbortSignal | undefined;
  #arrived = Buffer.alloc(0);
  #reader: Reader | undefined;
  #ended = false;
  #failure: Error | undefined;

  constructor(socket: net.Socket, role: Role, signal: AbortSignal | undefined) {
    this.role = role;
    this.peer = (socket.remoteAddress ?? 'the peer').replace(/^::ffff:(?=\d+\.)/, '');
    this.#socket = socket;
    this.#signal = signal;
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE);
    socket.on('data', (chunk) => {
      this.#arrived = Buffer.concat([this.#arrived, chunk]);
      this.#serve();
    });
    socket.on('error', (error) => (this.#failure = error));
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.#ended = true;
        this.#serve();
      });
    }
  }

  get heard(): boolean {
    return this.#arrived.length > 0;
  }

  get gone(): boolean {
    return this.#ended && this.#arrived.length === 0;
  }

  async swap(message: Buffer, timeout: number): Promise<Buffer> {
    if (this.role === 'server') {
      const theirs = await this.#read(message.length, timeout);
      this.#socket.write(message);
      return theirs;
    }
    this.#socket.write(message);
    return this.#read(message.length, timeout);
  }

  end(): void {
    // The peer does not read it: that it has gone already, with a reset, is as it should be.
    this.#socket.end(DONE);
    this.#socket.setTimeout(lingering, () => this.#socket.destroy()).unref();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async #read(size: number, timeout: number): Promise<Buffer> {
    const signal = this.#signal;
    if (signal?.aborted) throw abortError(signal);
    let timer: NodeJS.Timeout | undefined;
    let abort: (() => void) | undefined;
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        this.#reader = { size, resolve, reject };
        if (timeout < Infinity) timer = setTimeout(() => reject(this.#silent(size, timeout)), timeout);
        abort = () => reject(abortError(signal!));
        signal?.addEventListener('abort', abort);
        this.#serve();
      });
    } finally {
      clearTimeout(timer);
      if (abort) signal?.removeEventListener('abort', abort);
      this.#reader = undefined;
    }
  }

  #serve(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    if (this.#arrived.length >= reader.size) {
      const message = this.#arrived.subarray(0, reader.size);
      this.#arrived = this.#arrived.subarray(reader.size);
      reader.resolve(message);
    } else if (this.#ended) {
      reader.reject(peerLost(this.peer, this.#failure));
    }
  }

  #silent(size: number, timeout: number): RdmaError {
    const came = this.#arrived.length === 0 ? 'nothing' : `${this.#arrived.length} of ${size} bytes`;
    return peerSilent(this.peer, came, timeout);
  }
}
