import { EventEmitter } from 'node:events';
import type { CmAddress } from '../cm/address-info.js';
import { checkWait, type CmWaitOptions } from '../cm/attempt.js';
import type { CmEvent } from '../cm/events.js';
import type { CmId } from '../cm/id.js';
import { waitFor } from '../cm/wait.js';
import { invalidArgType, RdmaError } from '../verbs/errors.js';
import { MemoryRegion, MemorySlice } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { integer } from '../verbs/validate.js';
import { Returns, SendCredits } from './credits.js';
import { ConnectionStream, type DuplexOptions } from './duplex.js';
import { NetError, protocolError } from './errors.js';
import { IdleTimer } from './idle.js';
import { Inbox, type Taker } from './inbox.js';
import { KeepAlive } from './keep-alive.js';
import type { Link } from './link.js';
import { Memory, type AllocateOptions, type Right } from './memory.js';
import { OneSided, type ReadOptions, type Token } from './one-sided.js';
import { RESERVE, type Settings } from './options.js';
import { afterEnd, Outbox, quiet } from './outbox.js';
import { Pipeline } from './pipeline.js';
import { FRAME_HEADER, FrameFlag, FrameType, readFrameHeader, type Hello } from './protocol.js';
import { RemoteMemory } from './remote-memory.js';
import { fetch, prepareOutgoing } from './rendezvous.js';

/** The events of a {@link Connection}. */
export interface ConnectionEvents {
  /** The peer has ended, and whoever takes messages was told so. */
  end: [];
  /** Why the connection has failed; `'close'` follows. Not where the failure is told to someone who waits. */
  error: [error: Error];
  /** It is over, and all that it had is freed. */
  close: [hadError: boolean];
  /** {@link Connection.writableNeedDrain} is false again. */
  drain: [];
  /** Nothing was sent and nothing came for as long as {@link Connection.setTimeout} says. */
  timeout: [];
}

/** What can be sent: text goes as UTF-8. */
export type MessageData = string | Uint8Array | MemoryRegion | MemorySlice;

/** Device-friendly bounds of what is under way at a time: rxe of Linux 6.1 hardly gets on with more READs. */
const READ_LIMITS = { bytes: 2 ** 20, part: 2 ** 18 };
const WRITE_LIMITS = { requests: 16, bytes: 2 ** 22, part: 2 ** 18 };
const MOST_READS = 16;

/** What a connection is made of. */
export interface ConnectionParts {
  link: Link;
  settings: Settings;
  /** What the peer has told of itself. */
  peer: Hello;
  /** READs and atomics that may be outstanding at the peer. */
  initiatorDepth: number;
  /** Memory that it shares with others. */
  shared?: Memory;
  /** Runs when all is closed. */
  onClosed(this: void): void;
}

/**
 * A connection with a peer: messages in both directions, whole and in their order, and the peer's memory where it exports some. Made by
 * {@link connect}, and by a {@link Server} for each client.
 */
export class Connection
  extends EventEmitter<ConnectionEvents>
  implements AsyncIterable<Buffer>, AsyncDisposable
{
  readonly #link: Link;
  readonly #settings: Settings;
  readonly #peer: Hello;
  readonly #outbox: Outbox;
  readonly #inbox: Inbox;
  readonly #credits: SendCredits;
  readonly #returns: Returns;
  readonly #reads: Pipeline;
  readonly #writes: Pipeline;
  readonly #keepAlive: KeepAlive;
  readonly #idle = new IdleTimer(() => this.emit('timeout'));
  readonly #onClosed: () => void;
  readonly #local: CmAddress | undefined;
  readonly #remote: CmAddress | undefined;
  readonly #memory: Memory;
  readonly #oneSided: OneSided;
  /** Iterations that are under way: they hear of a failure when they ask for the next message. */
  #iterations = 0;
  #waiting = 0;
  #scheduled = false;
  #stream: ConnectionStream | undefined;
  #closing: Promise<void> | undefined;
  #closed = false;
  #error: Error | undefined;
  #bytesWritten = 0;

  /** @internal */
  constructor({ link, settings, peer, initiatorDepth, shared, onClosed }: ConnectionParts) {
    super();
    this.#link = link;
    this.#settings = settings;
    this.#peer = peer;
    this.#onClosed = onClosed;
    this.#local = link.id.localAddress;
    this.#remote = link.id.peerAddress;
    this.#credits = new SendCredits(peer.slots, peer.reserve);
    this.#returns = new Returns(settings.slots + RESERVE, RESERVE);
    this.#reads = new Pipeline(link, {
      ...READ_LIMITS,
      requests: Math.max(Math.min(initiatorDepth, MOST_READS), 1),
    });
    this.#writes = new Pipeline(link, WRITE_LIMITS);
    this.#memory = new Memory(link.pd, shared);
    this.#oneSided = new OneSided({ link, reads: this.#reads, writes: this.#writes, initiatorDepth });
    const failed = (error: Error) => this.#fail(error);
    this.#inbox = new Inbox({
      slabs: link.slabs,
      eagerLimit: settings.eagerLimit,
      maxMessage: settings.maxMessage,
      highWaterMark: settings.highWaterMark,
      fetch: (announcement) => fetch(link, this.#reads, announcement),
      onFree: (slot) => this.#giveBack(slot, true),
      onFetched: () => this.#progress(),
      onRoom: () => this.#progressSoon(),
      onEnd: () => this.#peerEnded(),
      onFailed: failed,
    });
    this.#outbox = new Outbox({
      link,
      credits: this.#credits,
      returns: this.#returns,
      frameBytes: Math.min(settings.slabBytes, peer.slabBytes),
      eagerLimit: Math.min(settings.eagerLimit, peer.eagerLimit),
      highWaterMark: settings.highWaterMark,
      fetched: () => this.#inbox.fetched,
      endCame: () => this.#inbox.endCame,
      prepare: (data, region) => prepareOutgoing(link, data, region),
      onDrain: () => this.emit('drain'),
      onFinished: () => this.#maybeFinished(),
      onFailed: failed,
    });
    this.#keepAlive = new KeepAlive(link, this.#writes, {
      interval: settings.keepAliveInterval,
      timeout: settings.keepAliveTimeout,
      onDead: failed,
    });
    this.#watch(link.id);
  }

  /** @internal From here on things happen. */
  start(): void {
    this.#link.start({
      frame: (slot, bytes) => this.#frame(slot, bytes),
      arrived: (slab) => this.#outbox.arrived(slab),
      batchEnd: () => this.#progress(),
      failed: (error) => this.#lost(error),
    });
    if (this.#link.id.state === 'disconnected') this.#disconnected();
  }

  /** The identifier of the connection manager below it. */
  get id(): CmId {
    return this.#link.id;
  }

  /** The protection domain of its memory. The connections of one server share one for each device. */
  get pd(): ProtectionDomain {
    return this.#link.pd;
  }

  get localAddress(): string | undefined {
    return this.#local?.address;
  }

  get localPort(): number | undefined {
    return this.#local?.port;
  }

  get localFamily(): 'IPv4' | 'IPv6' | undefined {
    return this.#local?.family;
  }

  get remoteAddress(): string | undefined {
    return this.#remote?.address;
  }

  get remotePort(): number | undefined {
    return this.#remote?.port;
  }

  get remoteFamily(): 'IPv4' | 'IPv6' | undefined {
    return this.#remote?.family;
  }

  /** Own address, as `node:net` tells it. */
  address(): { address: string; port: number; family: 'IPv4' | 'IPv6' } | Record<string, never> {
    return this.#local === undefined ? {} : { ...this.#local };
  }

  /** Bytes of messages that came. */
  get bytesRead(): number {
    return this.#inbox.total;
  }

  /** Bytes of messages that were given to {@link send}. */
  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  /** Bytes of messages that wait to be sent: those whose {@link send} has not resolved, apart from announced ones. */
  get writableLength(): number {
    return this.#outbox.waiting;
  }

  get writableHighWaterMark(): number {
    return this.#settings.highWaterMark;
  }

  /** Whether more wait to be sent than {@link writableHighWaterMark}: whoever does not await {@link send} waits for `'drain'` now. */
  get writableNeedDrain(): boolean {
    return this.#outbox.needDrain;
  }

  /** Bytes of messages that came and were not taken. */
  get readableLength(): number {
    return this.#inbox.waiting;
  }

  /** Bytes of a message at the most that the peer takes. */
  get maxMessage(): number {
    return this.#peer.maxMessage;
  }

  /** Whether it is closed, or about to be. */
  get destroyed(): boolean {
    return this.#closing !== undefined;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get readyState(): 'open' | 'readOnly' | 'writeOnly' | 'closed' {
    if (this.#closing !== undefined) return 'closed';
    if (this.#outbox.ending) return this.#inbox.ended ? 'closed' : 'readOnly';
    return this.#inbox.ended ? 'writeOnly' : 'open';
  }

  /**
   * Sends a message, of 0 to {@link maxMessage} bytes. Many may be under way; they arrive in their order.
   *
   * Resolves when `data` may be changed again: a short message when it was copied, which is at once where there is room; a long one (above
   * `eagerLimit`) when the peer has read it, from where it lies. So to await it is to go as fast as the peer takes messages, but it does
   * not tell that the message has arrived: {@link end} does.
   *
   * A long message in memory of {@link alloc} goes without a copy and without being registered; elsewhere it is registered meanwhile, and
   * its ArrayBuffer can then not be transferred to another thread, for good.
   *
   * @throws TypeError; NetError `EPIPE` after {@link end}, `EMSGSIZE`, or why the connection has failed
   */
  send(data: MessageData): Promise<void> {
    let source: { bytes: Uint8Array; region?: MemoryRegion };
    try {
      source = this.#sourceOf(data);
      this.#checkSend(source.bytes.length);
    } catch (error) {
      return quiet(Promise.reject(error as Error));
    }
    this.#bytesWritten += source.bytes.length;
    this.#idle.touch();
    return this.#outbox.send(source.bytes, source.region);
  }

  /**
   * The next message; undefined when the peer has ended.
   *
   * @throws RdmaError `ERR_RDMA_TIMEOUT`; NetError, why the connection has failed; AbortError
   */
  async receive(options: CmWaitOptions = {}): Promise<Buffer | undefined> {
    checkWait(options);
    const here = this.#inbox.takeNow();
    if (here !== undefined) return here;
    const { signal, timeoutMs } = options;
    ++this.#waiting;
    let taker: Taker | undefined;
    try {
      return await waitFor<Buffer | undefined>(
        {
          signal,
          timeoutMs,
          late: () => new RdmaError('ERR_RDMA_TIMEOUT', `no message came in ${timeoutMs} ms`),
          givenUp: () => (taker!.gone = true),
          hold: () => () => undefined,
        },
        (settle) => {
          taker = { settle, gone: false };
          this.#inbox.take(taker);
        },
      );
    } finally {
      --this.#waiting;
    }
  }

  /** The messages as they come, until the peer has ended. Leaving the loop leaves what has not been taken. @throws as {@link receive} */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    ++this.#iterations;
    try {
      for (;;) {
        const message = this.#inbox.takeNow() ?? (await this.receive());
        if (message === undefined) return;
        yield message;
      }
    } finally {
      --this.#iterations;
    }
  }

  /**
   * Ends this half: no more messages follow, while the peer's may still come. When both have ended, the connection closes.
   *
   * @param data a last message
   * @returns when all messages, and the end, have arrived at the peer
   * @throws as {@link send}
   */
  async end(data?: MessageData): Promise<void> {
    if (data !== undefined) {
      const sent = this.send(data);
      await Promise.all([sent, this.#outbox.end()]);
      return;
    }
    if (this.#closing !== undefined && !this.#outbox.finished) throw this.#error ?? afterEnd();
    await this.#outbox.end();
  }

  /** Closes at once. The peer hears of it; what was not read is lost. With an error, it is what all who wait are told. */
  destroy(error?: Error): this {
    this.#close(error, true);
    return this;
  }

  /** `'timeout'` is emitted after so many milliseconds without a message in either direction; 0 for never. */
  setTimeout(ms: number, listener?: () => void): this {
    this.#idle.set(integer('ms', ms, 0, 2 ** 31 - 1));
    if (listener !== undefined) this.once('timeout', listener);
    return this;
  }

  /** It keeps the process alive while it is open: so it is at first. */
  ref(): this {
    this.#link.ref();
    return this;
  }

  unref(): this {
    this.#link.unref();
    return this;
  }

  /**
   * Registered memory of zeros, closed with the connection: messages in it go without a copy, and peers can use it once it is exported.
   *
   * @throws RangeError; RdmaError `ENOMEM` with the memlock limit
   */
  async alloc(bytes: number, options: AllocateOptions = {}): Promise<MemoryRegion> {
    this.#checkOpen();
    const mr = await this.#link.track(this.#memory.allocate(bytes, options));
    return this.#link.own(mr);
  }

  /**
   * Lets the peer use memory of this end, without this program having a part in it: send the result to the peer in any message.
   *
   * @param region of {@link alloc} or {@link Server.alloc}, or registered on {@link pd}
   * @param options `rights`: by default all that the region was registered for. They are what the peer is told; what holds is what the
   * region was registered for, as a whole
   * @throws RangeError; RdmaError `ERR_RDMA_INVALID_ATTRIBUTES` where the region was registered without one of the rights,
   * `ERR_RDMA_FOREIGN_OBJECT` for a region of another protection domain
   */
  export(
    region: MemoryRegion | MemorySlice,
    options: { rights?: readonly Right[]; offset?: number; length?: number } = {},
  ): RemoteMemory {
    if (!(region instanceof MemoryRegion) && !(region instanceof MemorySlice))
      throw invalidArgType('region', 'a memory region or a part of one', region);
    const slice = region.slice(options.offset, options.length);
    if (slice.mr.pd !== this.pd)
      throw new RdmaError(
        'ERR_RDMA_FOREIGN_OBJECT',
        `${slice.mr.label} is of another protection domain than this connection: alloc() it here, or register it on connection.pd`,
      );
    return RemoteMemory.of(slice, options.rights);
  }

  /**
   * Reads from the peer's memory. What is asked for in one turn of the event loop is posted with one call, so a batch is
   * `Promise.all()`.
   *
   * @throws TypeError, RangeError for a range outside it; NetError `EACCES` where it was not exported for that: locally where the token says
   * so, and otherwise by the peer's device, which ends the connection
   */
  read(token: Token, options: ReadOptions = {}): Promise<Buffer> {
    return this.#oneSidedly(() => this.#oneSided.read(token, options));
  }

  /**
   * Writes to the peer's memory. Resolves when it is there. Bytes in memory of {@link alloc} are not copied.
   *
   * @throws as {@link read}
   */
  write(token: Token, data: MessageData, { offset = 0 }: { offset?: number } = {}): Promise<void> {
    return this.#oneSidedly(() => {
      const { bytes, region } = this.#sourceOf(data);
      return this.#oneSided.write(token, bytes, region, offset);
    });
  }

  /**
   * Adds to 64 bits of the peer's memory, at an offset that is a multiple of 8; atomically for all that go through the peer's device.
   *
   * @returns the value before
   * @throws as {@link read}
   */
  fetchAdd(token: Token, offset: number, add: bigint | number): Promise<bigint> {
    return this.#oneSidedly(() => this.#oneSided.fetchAdd(token, offset, add));
  }

  /**
   * Replaces 64 bits of the peer's memory by `swap` where they equal `compare`, as {@link fetchAdd} adds to them.
   *
   * @returns the value before
   * @throws as {@link read}
   */
  compareSwap(
    token: Token,
    offset: number,
    compare: bigint | number,
    swap: bigint | number,
  ): Promise<bigint> {
    return this.#oneSidedly(() => this.#oneSided.compareSwap(token, offset, compare, swap));
  }

  /**
   * The connection as a stream of bytes, the same each time. From then on the stream sends and receives, and ends what the peer has ended:
   * leave {@link send} and {@link receive} alone.
   */
  toDuplex(options: DuplexOptions = {}): ConnectionStream {
    return (this.#stream ??= new ConnectionStream(this, {
      ...options,
      allowHalfOpen: options.allowHalfOpen ?? this.#settings.allowHalfOpen,
    }));
  }

  /** Ends, with all that was sent arrived, and closes without waiting for the peer's end. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing === undefined) await this.end().catch(() => undefined);
    this.destroy();
    await this.#closing;
  }

  #sourceOf(data: MessageData): { bytes: Uint8Array; region?: MemoryRegion } {
    if (typeof data === 'string') return { bytes: Buffer.from(data) };
    if (data instanceof Uint8Array) {
      const region = this.#memory.find(data);
      return region === undefined ? { bytes: data } : { bytes: data, region };
    }
    const slice = data instanceof MemoryRegion ? data.slice() : data;
    if (!(slice instanceof MemorySlice))
      throw invalidArgType('data', 'a string, a Uint8Array, or a memory region or a part of one', data);
    if (slice.mr.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${slice.mr.label} is closed`);
    return slice.mr.pd === this.pd ? { bytes: slice.buffer, region: slice.mr } : { bytes: slice.buffer };
  }

  #oneSidedly<T>(work: () => Promise<T>): Promise<T> {
    try {
      this.#checkOpen();
      return quiet(work());
    } catch (error) {
      return quiet(Promise.reject(error as Error));
    }
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw this.#error ?? closedError();
  }

  #checkSend(length: number): void {
    if (this.#closing !== undefined) throw this.#error ?? afterEnd();
    if (this.#outbox.ending) throw afterEnd();
    if (length <= this.#peer.maxMessage) return;
    throw new NetError(
      'EMSGSIZE',
      `a message of ${length} bytes is longer than the ${this.#peer.maxMessage} that the peer takes (its maxMessage)`,
      { syscall: 'send' },
    );
  }

  #frame(slot: number, bytes: number): void {
    if (this.#closing !== undefined) return;
    const { slabs } = this.#link;
    const at = slabs.slotAt(slot);
    const header = readFrameHeader(slabs.view, at, bytes);
    if ('wrong' in header) return this.#protocolFailed(header.wrong);
    if (!this.#credits.returned(header))
      return this.#protocolFailed('back more slots than it was sent frames');
    if (!this.#outbox.fetched(header.fetched))
      return this.#protocolFailed('that it has read more than was announced');
    if ((header.flags & FrameFlag.END_CAME) !== 0) this.#outbox.endArrived();
    switch (header.type) {
      case FrameType.UPDATE:
        return this.#giveBack(slot, false);
      case FrameType.RESET: {
        const start = at + FRAME_HEADER;
        const text = slabs.bytes.toString('utf8', start, start + header.length);
        return this.#fail(new NetError('ECONNRESET', `the peer has given up the connection: ${text}`));
      }
      default:
        this.#idle.touch();
        this.#inbox.push(slot, header.type, header.length);
    }
  }

  #giveBack(slot: number, hadData: boolean): void {
    this.#link.giveBack(slot);
    this.#returns.giveBack(hadData);
  }

  /** Something has come, or was taken: works on what lies here, and tells the peer. */
  #progress(): void {
    if (this.#closing !== undefined) return;
    this.#inbox.work();
    this.#outbox.flush();
    this.#maybeFinished();
  }

  #progressSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#progress();
    });
  }

  #peerEnded(): void {
    this.emit('end');
    const follows = !this.#settings.allowHalfOpen && this.#stream === undefined;
    if (follows && !this.#outbox.ending && this.#closing === undefined)
      this.#outbox.end().catch(() => undefined); // told by 'error'
    this.#maybeFinished();
  }

  #maybeFinished(): void {
    if (this.#outbox.finished && this.#inbox.complete && this.#outbox.quiet) this.#close(undefined, false);
  }

  #watch(id: CmId): void {
    id.events.once('disconnected', () => this.#disconnected());
    const failed = ({ error }: CmEvent) => this.#fail(error!);
    id.events.on('deviceRemoval', failed);
    id.events.on('unreachable', failed);
  }

  #disconnected(): void {
    if (this.#closing !== undefined) return;
    const { remoteAddress, remotePort } = this;
    this.#lost(
      new NetError(
        'ECONNRESET',
        `${remoteAddress}:${remotePort} has closed the connection without ending it`,
        {
          syscall: 'read',
          remoteAddress,
          remotePort,
        },
      ),
    );
  }

  /** The connection is no more. Where all had arrived before, in both directions, that is no failure. */
  #lost(error: Error): void {
    if (this.#closing !== undefined) return;
    this.#link.end();
    if (this.#closing !== undefined) return;
    this.#inbox.work(true);
    const whole = this.#inbox.endCame && !this.#inbox.lost && this.#outbox.delivered;
    this.#close(whole ? undefined : error, false);
  }

  #protocolFailed(what: string): void {
    this.#fail(protocolError(what));
  }

  #fail(error: Error): void {
    if (this.#closing !== undefined) return;
    if (error instanceof RdmaError && error.code === 'ERR_RDMA_PROTOCOL') this.#outbox.reset(error.message);
    this.#close(error, false);
  }

  #close(error: Error | undefined, forget: boolean): void {
    if (this.#closing !== undefined) return;
    this.#error = error;
    const told = this.#iterations + this.#waiting > 0;
    const reason = error ?? closedError();
    this.#keepAlive.stop();
    this.#idle.set(0);
    this.#closing = this.#link.close(reason).then(
      () => this.#freed(told),
      (failure: unknown) => {
        this.#error ??= failure as Error;
        this.#freed(told);
      },
    );
    this.#outbox.fail(reason);
    this.#reads.fail(reason);
    this.#writes.fail(reason);
    if (error !== undefined || forget) this.#inbox.fail(error, forget);
  }

  #freed(told: boolean): void {
    this.#closed = true;
    this.#onClosed();
    const error = this.#error;
    // Not in a promise: an error that nobody takes ends the process as it does with node:net.
    process.nextTick(() => {
      if (error !== undefined && (!told || this.listenerCount('error') > 0)) this.emit('error', error);
    });
    process.nextTick(() => this.emit('close', error !== undefined));
  }
}

function closedError(): NetError {
  return new NetError('ERR_RDMA_CLOSED', 'the connection is closed');
}
