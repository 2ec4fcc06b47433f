import { EventEmitter } from 'node:events';
import type { CmAddress } from '../cm/address-info.js';
import { getAddressInfo } from '../cm/address-info.js';
import type { CmId } from '../cm/id.js';
import type { Context } from '../verbs/context.js';
import { abortError, invalidArgType, RdmaError } from '../verbs/errors.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import { integer, options as checkOptions } from '../verbs/validate.js';
import { acquireChannel, releaseChannel } from './cm-channel.js';
import { helloOf } from './connect.js';
import { Connection } from './connection.js';
import { NetError } from './errors.js';
import { Link } from './link.js';
import { Memory, type AllocateOptions } from './memory.js';
import { connectionSettings, signalOf, type ConnectionOptions, type Settings } from './options.js';
import { decodeHello, encodeHello, encodeRefusal, type Hello } from './protocol.js';

/** How a server works: {@link ConnectionOptions} are those of its ends of the connections. */
export interface ServerOptions extends ConnectionOptions {
  /** Connections at a time at the most; others are refused. By default there is no limit. */
  maxConnections?: number;
  /** Milliseconds that a client has to complete a connection; 10 000 by default. */
  handshakeTimeout?: number;
}

/** Where a server listens. */
export interface ListenOptions {
  /** Name or address; by default `0.0.0.0`, which is every IPv4 address with an RDMA device. */
  host?: string;
  /** By default 0: any that is free. */
  port?: number;
  /** Requests that may wait; more are refused. 511 by default. */
  backlog?: number;
  /** Closes the server. */
  signal?: AbortSignal;
}

/** The events of a {@link Server}. */
export interface ServerEvents {
  listening: [];
  connection: [connection: Connection];
  /** It listens no more, and all its connections are closed. */
  close: [];
  /** It cannot go on listening. */
  error: [error: Error];
  /** A client that did not become a connection. */
  drop: [error: NetError];
}

/** Nothing else may hold a server that listens. */
const listening = new Set<Server>();

const HANDSHAKE_MS = 10_000;
const BACKLOG = 511;

/** Listens for connections. Made by {@link createServer}. */
export class Server extends EventEmitter<ServerEvents> implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #maxConnections: number;
  readonly #handshakeTimeout: number;
  readonly #connections = new Set<Connection>();
  readonly #memories = new Map<Context, Memory>();
  #listener: CmId | undefined;
  #address: CmAddress | undefined;
  #starting = false;
  #handshakes = 0;
  #closed: Promise<void> | undefined;
  #nothingLeft: (() => void) | undefined;
  #referenced = true;

  /** @internal */
  constructor(options: ServerOptions = {}) {
    super();
    this.#settings = connectionSettings(options);
    const { maxConnections = Infinity, handshakeTimeout = HANDSHAKE_MS } = options;
    this.#maxConnections =
      maxConnections === Infinity ? Infinity : integer('maxConnections', maxConnections, 0, 2 ** 31 - 1);
    this.#handshakeTimeout = integer('handshakeTimeout', handshakeTimeout, 1, 2 ** 31 - 1);
  }

  get listening(): boolean {
    return this.#listener !== undefined;
  }

  /** The open connections. */
  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  /** Where it listens; null before and after. */
  address(): CmAddress | null {
    return this.#listener === undefined ? null : { ...this.#address! };
  }

  /**
   * Listens. `'listening'` is emitted before the promise resolves.
   *
   * @throws TypeError, RangeError; NetError `EADDRINUSE`, `EADDRNOTAVAIL`, `ENODEV` for an address without an RDMA device, `ENOTFOUND`;
   * RdmaError `ERR_RDMA_INVALID_STATE` where it listens already; AbortError
   */
  async listen(options: ListenOptions = {}): Promise<this> {
    checkOptions('options', options);
    const { host = '0.0.0.0', port = 0, backlog = BACKLOG } = options;
    if (typeof host !== 'string') throw invalidArgType('host', 'a string', host);
    integer('port', port, 0, 65535);
    integer('backlog', backlog, 1, 65535);
    const signal = signalOf(options);
    if (signal?.aborted) throw abortError(signal);
    if (this.#listener !== undefined || this.#starting)
      throw new RdmaError('ERR_RDMA_INVALID_STATE', 'the server listens already');
    this.#starting = true;
    this.#closed = undefined;
    const channel = acquireChannel();
    let id: CmId | undefined;
    try {
      const found = await getAddressInfo(host, port, { passive: true, noRoute: true });
      id = channel.createId('tcp');
      id.bindAddr(found.find(({ source }) => source !== undefined)?.source?.address ?? host, port);
      id.listen(backlog);
    } catch (error) {
      await id?.closeAsync();
      releaseChannel();
      throw listenFailure(error, host, port);
    } finally {
      this.#starting = false;
    }
    this.#listener = id;
    this.#address = id.localAddress!;
    if (!this.#referenced) id.unref();
    const abort = () => void this.close();
    signal?.addEventListener('abort', abort, { once: true });
    this.once('close', () => signal?.removeEventListener('abort', abort));
    listening.add(this);
    void this.#serve(id);
    this.emit('listening');
    return this;
  }

  /**
   * Registered memory of zeros for all connections of the server, to be exported by any of them; closed with the server.
   *
   * @throws RangeError; RdmaError `ERR_RDMA_INVALID_STATE` where it does not listen, or on all addresses instead of one of a device;
   * `ENOMEM` with the memlock limit
   */
  async alloc(bytes: number, options: AllocateOptions = {}): Promise<MemoryRegion> {
    if (this.#listener === undefined)
      throw new RdmaError('ERR_RDMA_INVALID_STATE', 'the server does not listen: listen() first');
    return this.#memoryOf(this.#listener.context).allocate(bytes, options);
  }

  /** Listens no more; connections stay. Resolves when all are closed. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Destroys all connections. */
  closeAllConnections(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  /** It keeps the process alive while it listens: so it is at first. */
  ref(): this {
    this.#referenced = true;
    this.#listener?.ref();
    return this;
  }

  unref(): this {
    this.#referenced = false;
    this.#listener?.unref();
    return this;
  }

  /** Closes it and all its connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = this.close();
    this.closeAllConnections();
    await closed;
  }

  async #serve(listener: CmId): Promise<void> {
    try {
      for await (const request of listener.requests()) void this.#welcome(request);
    } catch (error) {
      if (this.#listener === listener) this.emit('error', error as Error);
    }
  }

  /** Makes a connection of a request, or says why not. Whatever becomes of it harms nobody else. */
  async #welcome(request: CmId): Promise<void> {
    ++this.#handshakes;
    acquireChannel();
    let connection: Connection | undefined;
    try {
      const peer = this.#admit(request);
      connection = await this.#accept(request, peer);
    } catch (error) {
      await request.closeAsync({ cascade: true }).catch(() => undefined);
      releaseChannel();
      this.emit('drop', dropped(error as Error, request));
    }
    --this.#handshakes;
    if (connection !== undefined) {
      this.#connections.add(connection);
      connection.start();
      if (this.#listener === undefined) connection.destroy();
      else this.emit('connection', connection);
    }
    this.#checkLeft();
  }

  /** What the client tells of itself. @throws NetError why it is refused, after it was told so */
  #admit(request: CmId): Hello {
    const hello = decodeHello(request.request!.data);
    const full = this.#connections.size + this.#handshakes > this.#maxConnections;
    if (!('wrong' in hello) && !full) return hello;
    const why = 'wrong' in hello ? hello.wrong : `it has its ${this.#maxConnections} connections`;
    request.reject({ data: encodeRefusal(why) });
    throw new NetError(
      'wrong' in hello ? 'ERR_RDMA_PROTOCOL' : 'ECONNREFUSED',
      `a client was refused: ${why}`,
    );
  }

  async #accept(request: CmId, peer: Hello): Promise<Connection> {
    request.setOption('ackTimeout', this.#settings.ackTimeout);
    const shared = this.#memoryOf(request.context);
    const link = await Link.open(request, shared.pd, this.#settings);
    try {
      const data = encodeHello(helloOf(this.#settings));
      await request.accept({ data, timeoutMs: this.#handshakeTimeout });
    } catch (error) {
      await link.close(error as Error);
      throw error;
    }
    const initiatorDepth = request.request!.connection!.initiatorDepth;
    const connection: Connection = new Connection({
      link,
      settings: this.#settings,
      peer,
      initiatorDepth,
      shared,
      onClosed: () => {
        releaseChannel();
        this.#connections.delete(connection);
        this.#checkLeft();
      },
    });
    return connection;
  }

  /** The memory that all connections of a device share, with their protection domain. */
  #memoryOf(context: Context): Memory {
    let memory = this.#memories.get(context);
    if (memory === undefined || memory.pd.closed)
      this.#memories.set(context, (memory = new Memory(context.allocPd())));
    return memory;
  }

  async #close(): Promise<void> {
    const listener = this.#listener;
    if (listener === undefined) throw new RdmaError('ERR_RDMA_INVALID_STATE', 'the server does not listen');
    this.#listener = undefined;
    listening.delete(this);
    await listener.closeAsync();
    releaseChannel();
    await new Promise<void>((resolve) => {
      this.#nothingLeft = resolve;
      this.#checkLeft();
    });
    this.#nothingLeft = undefined;
    for (const { pd } of this.#memories.values()) await pd.closeAsync({ cascade: true });
    this.#memories.clear();
    this.emit('close');
  }

  #checkLeft(): void {
    if (this.#connections.size + this.#handshakes === 0) this.#nothingLeft?.();
  }
}

/**
 * Makes a server: `listen()` makes it known, `'connection'` gives a {@link Connection} for each client.
 *
 * @throws TypeError, RangeError
 */
export function createServer(
  options: ServerOptions | ((connection: Connection) => void) = {},
  onConnection?: (connection: Connection) => void,
): Server {
  if (typeof options === 'function') return createServer({}, options);
  const server = new Server(options);
  if (onConnection !== undefined) {
    if (typeof onConnection !== 'function') throw invalidArgType('onConnection', 'a function', onConnection);
    server.on('connection', onConnection);
  }
  return server;
}

function listenFailure(error: unknown, host: string, port: number): unknown {
  if (!(error instanceof RdmaError)) return error;
  return new NetError(error.code, `listen ${error.code} ${host}:${port}: ${error.message}`, {
    syscall: 'listen',
    cause: error,
  });
}

function dropped(error: Error, request: CmId): NetError {
  const peer = request.request === undefined ? undefined : request.peerAddress;
  const where = { remoteAddress: peer?.address, remotePort: peer?.port };
  if (error instanceof NetError) return new NetError(error.code, error.message, { ...where, cause: error });
  return new NetError('ECONNABORTED', `a client has given up, or could not be accepted: ${error.message}`, {
    ...where,
    cause: error,
  });
}
