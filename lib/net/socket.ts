import { EventEmitter } from 'node:events';
import { isIP } from 'node:net';
import { getAddressInfo, ipAddress, type CmAddress } from '../cm/address-info.js';
import type { CmId } from '../cm/id.js';
import type { MulticastGroup } from '../cm/multicast.js';
import { SendRing } from '../ring/send-ring.js';
import type { AddressHandle } from '../verbs/address-handle.js';
import type { CompletionQueue } from '../verbs/completion-queue.js';
import { invalidArgType, RdmaError } from '../verbs/errors.js';
import { parseGrh, GRH_BYTES } from '../verbs/grh.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { WorkCompletion } from '../verbs/work-completion.js';
import { integer, options as checkOptions } from '../verbs/validate.js';
import { acquireChannel, releaseChannel } from './cm-channel.js';
import { DATAGRAM_HEADER, readDatagramHeader, writeDatagramHeader } from './datagram.js';
import { Destinations, type Destination } from './destinations.js';
import { NetError } from './errors.js';
import { Fifo } from './fifo.js';

/** How a socket works. */
export interface SocketOptions {
  /** Datagrams that may wait to be received, and to be sent, from 1; 128 by default. What finds no room is lost, as datagrams are. */
  slots?: number;
  /** Milliseconds to find out where a destination is; 5000 by default. */
  lookupTimeout?: number;
}

/** Where a datagram came from. */
export interface RemoteInfo {
  address: string;
  family: 'IPv4' | 'IPv6';
  port: number;
  /** Bytes of the datagram. */
  size: number;
}

/** The events of a {@link Socket}. */
export interface SocketEvents {
  listening: [];
  message: [data: Buffer, from: RemoteInfo];
  error: [error: Error];
  close: [];
}

/** What stands once a socket is bound. */
interface Bound {
  data: CmId;
  listener: CmId;
  address: CmAddress;
  qp: QueuePair;
  cq: CompletionQueue;
  sends: SendRing;
  mr: MemoryRegion;
  view: DataView;
  destinations: Destinations;
  /** Bytes of a datagram at the most, with its header. */
  mtu: number;
}

const LOOKUP_MS = 5000;
const QKEY = 0x01234567;
const SEND_BIT = 1 << 24;

/** A socket for datagrams: each arrives whole or not at all, in any order. Made by {@link createSocket}. */
export class Socket extends EventEmitter<SocketEvents> implements AsyncDisposable {
  readonly #slots: number;
  readonly #lookupMs: number;
  readonly #groups = new Map<
    string,
    Promise<{ group: MulticastGroup; destination: Destination; member: boolean }>
  >();
  readonly #freeSlots: number[];
  readonly #waiting = new Fifo<{ resolve: (slot: number) => void; reject: (error: Error) => void }>();
  readonly #sent = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  #binding: Promise<Bound> | undefined;
  #bound: Bound | undefined;
  #closing: Promise<void> | undefined;
  #referenced = true;

  /** @internal */
  constructor(options: SocketOptions = {}) {
    super();
    checkOptions('options', options);
    this.#slots = integer('slots', options.slots ?? 128, 1, 16384);
    this.#lookupMs = integer('lookupTimeout', options.lookupTimeout ?? LOOKUP_MS, 1, 2 ** 31 - 1);
    this.#freeSlots = Array.from({ length: this.#slots }, (_, i) => i);
  }

  /**
   * Gives it an address of a device and a port, to be reached there. `'listening'` is emitted before the promise resolves.
   *
   * @param options `port`: by default any that is free
   * @throws TypeError, RangeError; NetError as {@link Server.listen}
   */
  async bind({ host, port = 0 }: { host: string; port?: number }): Promise<this> {
    if (typeof host !== 'string') throw invalidArgType('host', 'a string', host);
    integer('port', port, 0, 65535);
    if (this.#binding !== undefined)
      throw new RdmaError('ERR_RDMA_INVALID_STATE', 'the socket is bound already');
    this.#requireOpen();
    await (this.#binding = this.#bind(host, port));
    this.emit('listening');
    return this;
  }

  /** Where it is bound. @throws RdmaError `ERR_RDMA_INVALID_STATE` before it is */
  address(): CmAddress {
    return { ...this.#requireBound().address };
  }

  /** Bytes of a datagram at the most: what a packet carries. @throws RdmaError `ERR_RDMA_INVALID_STATE` before it is bound */
  get maxBytes(): number {
    return this.#requireBound().mtu - DATAGRAM_HEADER;
  }

  /**
   * Sends a datagram to another socket, or to all members of a group. The first one to a destination waits until that is found; later ones
   * go at once.
   *
   * Resolves when it has left. A socket that is not bound is bound to the address that leads there.
   *
   * @throws TypeError, RangeError; NetError `EMSGSIZE` for more than {@link maxBytes}; `ECONNREFUSED` where no socket has that address and
   * port, and others as {@link connect} has them
   */
  async send(data: Uint8Array | string, { host, port }: { host: string; port: number }): Promise<void> {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    if (!(bytes instanceof Uint8Array)) throw invalidArgType('data', 'a string or a Uint8Array', data);
    if (typeof host !== 'string') throw invalidArgType('host', 'a string', host);
    integer('port', port, 1, 65535);
    this.#requireOpen();
    const bound = await (this.#binding ??= this.#bindTowards(host, port));
    const most = bound.mtu - DATAGRAM_HEADER;
    if (bytes.length > most)
      throw new NetError(
        'EMSGSIZE',
        `a datagram of ${bytes.length} bytes is longer than the ${most} that a packet carries here: raise the MTU of the network, or ` +
          'use a connection',
        { syscall: 'send' },
      );
    const destination = isMulticast(host)
      ? (await this.#group(bound, host, false)).destination
      : await bound.destinations.find(host, port, this.#lookupMs);
    const slot =
      this.#freeSlots.pop() ??
      (await new Promise<number>((resolve, reject) => this.#waiting.push({ resolve, reject })));
    let ah: AddressHandle;
    try {
      do ah = await destination.way();
      while (ah.closed && this.#closing === undefined);
      this.#requireOpen();
    } catch (error) {
      this.#release(slot);
      throw error;
    }
    await this.#post(bound, slot, bytes, ah, destination, port);
  }

  /**
   * Joins a group: datagrams that are sent to its address and to the port of this socket come here.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_INVALID_STATE` before it is bound; ConnectionError
   */
  async addMembership(group: string): Promise<void> {
    ipAddress('group', group);
    const bound = this.#requireBound();
    const known = await this.#groups.get(group);
    if (known !== undefined && !known.member) {
      this.#groups.delete(group);
      known.group.leave();
    }
    await this.#group(bound, group, true);
  }

  /** Leaves a group. @throws RdmaError `EADDRNOTAVAIL` for one that it is no member of */
  async dropMembership(group: string): Promise<void> {
    const known = await this.#groups.get(group);
    if (known === undefined || !known.member)
      throw new NetError('EADDRNOTAVAIL', `the socket is no member of ${group}`, {
        syscall: 'dropMembership',
      });
    this.#groups.delete(group);
    known.group.leave();
  }

  ref(): this {
    this.#referenced = true;
    this.#bound?.cq.ref();
    this.#bound?.listener.ref();
    return this;
  }

  unref(): this {
    this.#referenced = false;
    this.#bound?.cq.unref();
    this.#bound?.listener.unref();
    return this;
  }

  /** Frees all. Datagrams that have not left are given up. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #bind(host: string, port: number): Promise<Bound> {
    const channel = acquireChannel();
    let [listener, data]: (CmId | undefined)[] = [];
    try {
      const found = await getAddressInfo(host, port, { portSpace: 'udp', noRoute: true, passive: true });
      const own = found.find(({ source }) => source !== undefined)?.source?.address ?? host;
      listener = channel.createId('udp');
      listener.bindAddr(own, port);
      // A group is joined by an identifier that does not listen, and reaches the queue pair of that one.
      data = channel.createId('udp');
      data.bindAddr(own);
      const { context } = data;
      const { activeMtu } = context.queryPort(data.route.port);
      const cq = context.createCqFor(data, { cqe: 2 * this.#slots });
      const qp = data.createQp({ cq, maxSendWr: this.#slots, maxRecvWr: this.#slots });
      const mr = await data.regMsgs(this.#slots * (GRH_BYTES + 2 * activeMtu));
      listener.listen();
      if (this.#closing !== undefined) throw new NetError('ERR_RDMA_CLOSED', 'the socket is closed');
      const bound: Bound = {
        data,
        listener,
        address: listener.localAddress!,
        qp,
        cq,
        sends: new SendRing(qp),
        mr,
        view: new DataView(mr.buffer.buffer, mr.buffer.byteOffset, mr.buffer.byteLength),
        destinations: new Destinations({ channel, qp, local: own, qkey: QKEY }),
        mtu: activeMtu,
      };
      this.#bound = bound;
      if (!this.#referenced) this.unref();
      for (let slot = 0; slot < this.#slots; ++slot) this.#receiveAt(bound, slot);
      void this.#answer(bound);
      void this.#run(bound);
      return bound;
    } catch (error) {
      await listener?.closeAsync();
      await data?.closeAsync({ cascade: true });
      releaseChannel();
      this.#binding = undefined;
      if (!(error instanceof RdmaError) || error instanceof NetError) throw error;
      throw new NetError(error.code, `bind ${error.code} ${host}:${port}: ${error.message}`, {
        syscall: 'bind',
        cause: error,
      });
    }
  }

  /** Binds to the own address that leads to a destination. */
  async #bindTowards(host: string, port: number): Promise<Bound> {
    const channel = acquireChannel();
    const id = channel.createId('udp');
    try {
      await id.resolve(host, port, { timeoutMs: this.#lookupMs });
      return await this.#bind(id.localAddress!.address, 0);
    } catch (error) {
      this.#binding = undefined;
      throw error;
    } finally {
      await id.closeAsync();
      releaseChannel();
    }
  }

  /** Tells those who ask where this socket is. */
  async #answer({ listener, qp }: Bound): Promise<void> {
    try {
      for await (const request of listener.requests()) {
        request
          .accept({ qp })
          .catch(() => undefined) // who has asked has given up
          .finally(() => void request.closeAsync().catch(() => undefined));
      }
    } catch (error) {
      this.#failed(error as Error);
    }
  }

  async #run(bound: Bound): Promise<void> {
    try {
      for await (const batch of bound.cq.completions({ limit: 32 })) {
        for (const completion of batch) this.#completed(bound, completion);
      }
    } catch (error) {
      this.#failed(error as Error);
    }
  }

  #completed(bound: Bound, completion: WorkCompletion): void {
    const id = Number(completion.wrId);
    if (id < SEND_BIT) {
      if (completion.error === undefined) this.#received(bound, id, completion);
      if (this.#closing === undefined && completion.status !== 'wrFlushErr') this.#receiveAt(bound, id);
      return;
    }
    const slot = id - SEND_BIT;
    const waiting = this.#sent.get(slot);
    this.#sent.delete(slot);
    this.#release(slot);
    if (completion.error === undefined) waiting?.resolve();
    else waiting?.reject(completion.error);
  }

  #received({ mr, mtu, view, address, destinations }: Bound, slot: number, completion: WorkCompletion): void {
    const at = slot * (GRH_BYTES + mtu);
    const bytes = completion.byteLen! - GRH_BYTES;
    const header = readDatagramHeader(view, at + GRH_BYTES, bytes);
    if (header === undefined || header.port !== address.port) return;
    const { sgid } = parseGrh(mr.buffer.subarray(at, at + GRH_BYTES));
    const from = sgid.replace(/^::ffff:(?=\d+\.)/, '');
    destinations.learn(from, header.sourcePort, completion.srcQp!);
    const start = at + GRH_BYTES + DATAGRAM_HEADER;
    const data = Buffer.from(mr.buffer.subarray(start, start + bytes - DATAGRAM_HEADER));
    const family = isIP(from) === 4 ? 'IPv4' : 'IPv6';
    const remote: RemoteInfo = { address: from, family, port: header.sourcePort, size: data.length };
    // A listener that throws ends the process, as with dgram, and not only this socket.
    process.nextTick(() => this.emit('message', data, remote));
  }

  #receiveAt({ qp, mr, mtu }: Bound, slot: number): void {
    const length = GRH_BYTES + mtu;
    qp.postRecv({ wrId: slot, sge: { mr, offset: slot * length, length } });
  }

  #post(
    bound: Bound,
    slot: number,
    data: Uint8Array,
    ah: AddressHandle,
    { qpn, qkey }: Destination,
    port: number,
  ): Promise<void> {
    const { sends, mr, mtu, view, address } = bound;
    const at = this.#slots * (GRH_BYTES + mtu) + slot * mtu;
    writeDatagramHeader(view, at, address.port, port);
    mr.buffer.set(data, at + DATAGRAM_HEADER);
    return new Promise((resolve, reject) => {
      this.#sent.set(slot, { resolve, reject });
      try {
        sends.sendTo(slot + SEND_BIT, mr, at, DATAGRAM_HEADER + data.length, ah, qpn, qkey);
        sends.post();
      } catch (error) {
        this.#sent.delete(slot);
        this.#release(slot);
        throw error;
      }
    });
  }

  #release(slot: number): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#freeSlots.push(slot);
    else next.resolve(slot);
  }

  /** A group that this socket may send to, and is a member of where so wished. */
  #group({ data, qp }: Bound, address: string, member: boolean) {
    let known = this.#groups.get(address);
    if (known !== undefined) return known;
    known = (async () => {
      const group = await data.joinMulticast(address, { sendOnly: !member });
      const ah = group.createAh(qp.pd);
      await ah;
      return { group, member, destination: { way: () => ah, qpn: group.remoteQpn, qkey: group.remoteQkey } };
    })();
    this.#groups.set(address, known);
    known.catch(() => this.#groups.delete(address));
    return known;
  }

  async #close(): Promise<void> {
    await this.#binding?.catch(() => undefined);
    const bound = this.#bound;
    const closed = new NetError('ERR_RDMA_CLOSED', 'the socket is closed');
    if (bound !== undefined) {
      await bound.listener.closeAsync();
      await bound.destinations.close();
      await bound.qp.closeAsync();
      await bound.data.closeAsync({ cascade: true });
      releaseChannel();
    }
    for (const { reject } of [...this.#sent.values(), ...this.#waiting.drain()]) reject(closed);
    this.#sent.clear();
    this.emit('close');
  }

  #failed(error: Error): void {
    if (this.#closing !== undefined) return;
    process.nextTick(() => this.emit('error', error));
    void this.close();
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new NetError('ERR_RDMA_CLOSED', 'the socket is closed');
  }

  #requireBound(): Bound {
    this.#requireOpen();
    if (this.#bound !== undefined) return this.#bound;
    throw new RdmaError('ERR_RDMA_INVALID_STATE', 'the socket is not bound: bind() first');
  }
}

/**
 * Makes a socket for datagrams.
 *
 * @throws TypeError, RangeError
 */
export function createSocket(
  options: SocketOptions = {},
  onMessage?: (data: Buffer, from: RemoteInfo) => void,
): Socket {
  const socket = new Socket(options);
  if (onMessage !== undefined) socket.on('message', onMessage);
  return socket;
}

function isMulticast(address: string): boolean {
  return /^ff/i.test(address) && isIP(address) === 6
    ? true
    : isIP(address) === 4 && (Number(address.split('.')[0]) & 0xf0) === 0xe0;
}
