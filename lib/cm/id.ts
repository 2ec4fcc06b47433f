import { asyncEventTypes, qpStates } from '../verbs/constants.js';
import { explain, invalidArgType, outOfRange, RdmaError } from '../verbs/errors.js';
import { formatGid } from '../verbs/gid.js';
import type { NativeCmEvent, NativeCmId } from '../verbs/native.js';
import { maskedAttributes, type QueuePairAttributes } from '../verbs/queue-pair-attributes.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { CloseOptions } from '../verbs/resource.js';
import { cmIdRoutes } from '../verbs/routes.js';
import { integer, options as checkOptions, wordNumber } from '../verbs/validate.js';
import { getAddressInfo, ipAddress, type AddressInfoHints, type CmAddress } from './address-info.js';
import { Attempt, checkWait, type AttemptPlan, type CmWaitOptions } from './attempt.js';
import { packConnectionParameters, type CmConnectOptions } from './connection-parameters.js';
import { CmOption, IB_PATH_OPTION, PortSpaceNumber, type CmOptionName, type PortSpace } from './constants.js';
import { ConnectionError, failureOf, noDeviceFor } from './errors.js';
import { rdmaAddresses } from './devices.js';
import { EventChannel } from './event-channel.js';
import { decodeCmEvent, type CmEvent, type DecodedCmEvent } from './events.js';
import { CmIdEvents } from './id-events.js';
import { CmVerbs } from './id-verbs.js';
import { MulticastGroup } from './multicast.js';
import { waitFor } from './wait.js';
import { packPrivateData, type PrivateDataOptions } from './private-data.js';
import { listenerClosed, RequestQueue } from './requests.js';

/** How far an identifier has come. */
export type CmIdState =
  | 'idle'
  | 'bound'
  | 'addrResolved'
  | 'routeResolved'
  | 'listening'
  | 'requested'
  | 'connecting'
  | 'connected'
  | 'disconnected'
  | 'failed';

/** How {@link CmId.resolveAddr} finds the way. */
export interface ResolveOptions extends CmWaitOptions {
  /** Own address to use; by default the route's. */
  source?: string;
  sourcePort?: number;
}

/** A first ARP or neighbour discovery that is lost is tried again after a second. */
const RESOLVE_MS = 5000;
/**
 * The kernel is asked for a short while at first, and again for longer: an answer that comes while it begins to wait, as on a
 * wire within one machine, it finds only when its time is over (Linux 6.1).
 */
const FIRST_SLICE_MS = 100;
const ETIMEDOUT = 110;
const CONNECT_MS = 10_000;
const DISCONNECT_MS = 10_000;
const MULTICAST_MS = 10_000;
/** The kernel gives up by itself; this is for when it does not. */
const KERNEL_GRACE_MS = 1000;

/** The kernel takes no more than net.rdma_ucm.max_backlog of it. */
const MOST_BACKLOG = 65535;

const FAILURES = new Set<string>([
  'addrError',
  'routeError',
  'connectError',
  'unreachable',
  'rejected',
  'multicastError',
  'deviceRemoval',
]);

/**
 * An identifier of the connection manager (`struct rdma_cm_id`): one end of a connection, or a listener. Made by
 * {@link EventChannel.createId}; a listener makes one for each request.
 *
 * Its queue pair and what it made for itself hang on it: `close({ cascade: true })` closes all.
 */
export class CmId extends CmVerbs {
  /** What happens to it. */
  readonly events = new CmIdEvents();
  readonly portSpace: PortSpace;
  /** Of an identifier that a listener has made: the request, with the peer's private data and what it asks for. */
  readonly request: CmEvent | undefined;
  #channel: EventChannel;
  #state: CmIdState = 'idle';
  readonly #attempt = new Attempt(this, () => this.#channel);
  readonly #requests = new RequestQueue();
  readonly #joins = new Map<
    number,
    { address: string; settle(this: void, outcome: DecodedCmEvent | Error): void }
  >();
  #release: (() => void) | undefined;
  #ownQp: QueuePair | undefined;
  #mayResolveAgain = false;
  /** What fails now fails because of that, and nothing is begun anew. */
  #closing = false;

  /** @internal */
  constructor(native: NativeCmId, channel: EventChannel, request?: CmEvent) {
    super(native, channel);
    this.#channel = channel;
    this.portSpace = portSpaceOf(native.portSpace);
    this.request = request;
    if (request !== undefined) this.#state = 'requested';
    cmIdRoutes.add(native.serial, this);
  }

  get label(): string {
    if (this.closed) return `${this.portSpace} identifier`;
    const { localAddress: own, peerAddress: peer } = this;
    const where = [own && `of ${own.address}:${own.port}`, peer && `to ${peer.address}:${peer.port}`];
    return [`${this.portSpace} identifier`, ...where.filter(Boolean)].join(' ');
  }

  get state(): CmIdState {
    return this.#state;
  }

  get channel(): EventChannel {
    return this.#channel;
  }

  /** Own address and port, once it has them. `rdma_get_local_addr`, `rdma_get_src_port` */
  get localAddress(): CmAddress | undefined {
    const local = this.#openRoute()?.local;
    return local !== undefined && (local.port !== 0 || !isWildcard(local.address)) ? local : undefined;
  }

  /** The peer's address and port, once it has one. `rdma_get_peer_addr`, `rdma_get_dst_port` */
  get peerAddress(): CmAddress | undefined {
    const peer = this.#openRoute()?.peer;
    return peer !== undefined && !isWildcard(peer.address) ? peer : undefined;
  }

  /** Port of the device, and the GIDs of both ends where they are known. */
  get route(): { port: number; pkey: number; sgid: string; dgid: string } {
    const { portNum, pkey, sgid, dgid } = this.native.route();
    return { port: portNum, pkey, sgid: formatGid(sgid), dgid: formatGid(dgid) };
  }

  /**
   * Binds it to an own address, and so to a device; with a wildcard address (`0.0.0.0`, `::`) to all of them. Port 0 is any free
   * one: {@link localAddress} tells which. `rdma_bind_addr`
   *
   * @throws RangeError for what is no address; RdmaError `ENODEV` for one that no RDMA device has (with those that there are),
   * `EADDRINUSE`, `EADDRNOTAVAIL`; `ERR_RDMA_INVALID_STATE`
   */
  bindAddr(address: string, port = 0): void {
    ipAddress('address', address);
    integer('port', port, 0, 65535);
    this.#require('bindAddr', 'idle');
    this.#explaining(address, () => this.native.bindAddr(address, port));
    this.#state = 'bound';
  }

  /**
   * Finds the way to an address: which device and which own address lead there, and the link address of the next hop.
   * `rdma_resolve_addr`
   *
   * @param options `timeoutMs`: 5000 by default
   * @throws ConnectionError `ENODEV` for an address that no RDMA device leads to (with those that there are), `ETIMEDOUT`,
   * `EHOSTUNREACH`, `ENETUNREACH`; RdmaError `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_TIMEOUT`; AbortError. After a failure that is not
   * about the arguments it can only be closed
   */
  async resolveAddr(address: string, port: number, options: ResolveOptions = {}): Promise<void> {
    ipAddress('address', address);
    integer('port', port, 0, 65535);
    checkWait(options);
    const { source, sourcePort = 0, timeoutMs = RESOLVE_MS, signal } = options;
    if (source !== undefined) ipAddress('source', source);
    integer('sourcePort', sourcePort, 0, 65535);
    this.#require('resolveAddr', 'idle', 'bound');
    const deadline = performance.now() + timeoutMs;
    for (let slice = FIRST_SLICE_MS; ; slice *= 2) {
      const left = Math.max(Math.ceil(deadline - performance.now()), 1);
      const kernelMs = Math.min(slice, left);
      this.#mayResolveAgain = kernelMs < left;
      try {
        await this.#attempt.run({
          what: `resolving ${address}`,
          start: () =>
            this.#explaining(source ?? address, () =>
              this.native.resolveAddr(kernelMs, address, port, source, sourcePort),
            ),
          wanted: ['addrResolved'],
          unwanted: ['addrError', 'deviceRemoval'],
          ...this.#limits({ signal, timeoutMs: left + KERNEL_GRACE_MS }),
        });
        break;
      } catch (error) {
        if (this.#closing) throw closedMeanwhile(error);
        if (error instanceof ConnectionError && error.status === -ETIMEDOUT && this.#mayResolveAgain)
          continue;
        if (error instanceof ConnectionError) this.#state = 'failed';
        throw error;
      }
    }
    this.#state = 'addrResolved';
  }

  /**
   * Finds the route to the address that is resolved. On RoCE there is little to it. `rdma_resolve_route`
   *
   * @param options `timeoutMs`: 5000 by default
   * @throws ConnectionError; RdmaError `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_TIMEOUT`; AbortError
   */
  async resolveRoute(options: CmWaitOptions = {}): Promise<void> {
    checkWait(options);
    const { timeoutMs = RESOLVE_MS, signal } = options;
    this.#require('resolveRoute', 'addrResolved');
    await this.#failing({
      what: 'resolving the route',
      start: () => this.native.resolveRoute(timeoutMs),
      wanted: ['routeResolved'],
      unwanted: ['routeError', 'deviceRemoval'],
      ...this.#limits({ signal, timeoutMs: timeoutMs + KERNEL_GRACE_MS }),
    });
    this.#state = 'routeResolved';
  }

  /**
   * Finds address and route of a name or an address and a service or port, by {@link getAddressInfo}, {@link resolveAddr} and
   * {@link resolveRoute}. Of several addresses it takes the first.
   *
   * @throws as these
   */
  async resolve(
    node: string,
    service: string | number,
    options: ResolveOptions & Pick<AddressInfoHints, 'family' | 'numericHost'> = {},
  ): Promise<void> {
    const { family, numericHost = false, ...rest } = options;
    checkWait(rest);
    const found = await getAddressInfo(node, service, {
      portSpace: this.portSpace,
      numericHost,
      ...(family !== undefined && { family }),
      // Names are what it is asked for; the way is found below, with errors that say what is wrong.
      noRoute: true,
    });
    const destination = found.find((info) => info.destination !== undefined)?.destination;
    if (destination === undefined) throw new RdmaError('ENOTFOUND', `${node} has no address of that kind`);
    await this.resolveAddr(destination.address, destination.port, rest);
    await this.resolveRoute(rest);
  }

  /**
   * Gives it a route instead of resolving one: `struct ibv_path_data`, as {@link AddressInfo.route} has them.
   * `rdma_set_option(RDMA_OPTION_IB_PATH)`
   *
   * @throws ConnectionError; RdmaError as the system has it
   */
  async setPath(path: Uint8Array, options: CmWaitOptions = {}): Promise<void> {
    if (!(path instanceof Uint8Array)) throw invalidArgType('path', 'a Uint8Array', path);
    checkWait(options);
    this.#require('setPath', 'addrResolved');
    await this.#failing({
      what: 'setting the route',
      start: () =>
        this.#explaining(undefined, () =>
          this.native.setOption(IB_PATH_OPTION.level, IB_PATH_OPTION.name, path),
        ),
      wanted: ['routeResolved'],
      unwanted: ['routeError', 'deviceRemoval'],
      ...this.#limits({ ...options, timeoutMs: options.timeoutMs ?? RESOLVE_MS }),
    });
    this.#state = 'routeResolved';
  }

  /**
   * Connects: asks the peer, waits for its answer, and brings the queue pair to RTS. For datagrams it asks where they must go.
   * `rdma_connect`; with a queue pair of one's own `rdma_init_qp_attr` and `rdma_establish` as well
   *
   * @param options `timeoutMs`: 10 000 by default, of the whole; the kernel alone would take more than a minute
   * @returns the event: what the peer accepted with
   * @throws ConnectionError `ECONNREFUSED` with the reason, `ETIMEDOUT`, …; RdmaError `ERR_RDMA_LIMIT` for more private data than the
   * message carries, `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_TIMEOUT`; AbortError. After a failure it can only be closed
   */
  async connect(options: CmConnectOptions = {}): Promise<CmEvent> {
    checkWait(options);
    this.#require('connect', 'routeResolved');
    const privateData = packPrivateData(options, 'connect', this.datagrams);
    const parameters = packConnectionParameters(options, this.context);
    const { qp, signal, timeoutMs = CONNECT_MS } = options;
    this.#requireQueuePair('connect', qp);
    const deadline = performance.now() + timeoutMs;
    if (qp !== undefined) await this.#init(qp);
    this.#state = 'connecting';
    let event: CmEvent;
    try {
      event = await this.#attempt.run({
        what: 'connecting',
        start: () => this.native.connect(parameters, privateData),
        wanted: qp === undefined || this.datagrams ? ['established'] : ['connectResponse'],
        unwanted: ['rejected', 'unreachable', 'connectError', 'disconnected', 'deviceRemoval'],
        ...this.#limits({ signal, timeoutMs: Math.max(Math.ceil(deadline - performance.now()), 1) }),
        asked: timeoutMs,
      });
      if (qp !== undefined && !this.datagrams) {
        await this.#bringUp(qp, options);
        await this.native.establish();
      }
    } catch (error) {
      this.#state = 'failed';
      throw explain(error, this.#subject());
    }
    this.#connected();
    return event;
  }

  /**
   * Listens for requests. `rdma_listen`. It keeps the process alive, unless {@link unref}.
   *
   * @param backlog requests that may wait; more are rejected
   * @throws RdmaError `ERR_RDMA_INVALID_STATE` before it is bound; `EADDRINUSE`
   */
  listen(backlog = 128): void {
    integer('backlog', backlog, 1, MOST_BACKLOG);
    this.#require('listen', 'bound');
    // What the kernel's own backlog is too short for it drops without a word, and the peer tries again after seconds.
    this.#explaining(undefined, () => this.native.listen(MOST_BACKLOG));
    this.#requests.limit = backlog;
    this.#state = 'listening';
    this.ref();
  }

  /** A listener keeps the process alive: so it is at first. */
  ref(): this {
    if (this.#state === 'listening' && !this.closed) this.#release ??= this.#channel.hold(this);
    return this;
  }

  /** Lets the process end although requests may come. */
  unref(): this {
    this.#release?.();
    this.#release = undefined;
    return this;
  }

  /**
   * The next request of a listener: an identifier to {@link accept} or {@link reject}. `rdma_get_request`, without blocking
   *
   * @throws RdmaError `ERR_RDMA_TIMEOUT`; `ERR_RDMA_CLOSED` when the listener is closed meanwhile; AbortError
   */
  async getRequest(options: CmWaitOptions = {}): Promise<CmId> {
    checkWait(options);
    this.#require('getRequest', 'listening');
    const request = await this.#nextRequest(options);
    if (request === undefined) throw listenerClosed('the listener');
    return request;
  }

  /** The requests of a listener as they come, until it is closed. @throws as {@link getRequest}, apart from `ERR_RDMA_CLOSED` */
  async *requests(options: Pick<CmWaitOptions, 'signal'> = {}): AsyncGenerator<CmId, void, undefined> {
    checkWait(options);
    this.#require('requests', 'listening');
    for (;;) {
      const request = await this.#nextRequest(options);
      if (request === undefined) return;
      yield request;
    }
  }

  /**
   * Accepts the request and waits until the connection stands; for datagrams it only answers. `rdma_accept`
   *
   * @param options `timeoutMs`: 10 000 by default
   * @throws ConnectionError where the peer has given up; RdmaError as {@link connect}. After a failure it can only be closed
   */
  async accept(options: CmConnectOptions = {}): Promise<void> {
    checkWait(options);
    this.#require('accept', 'requested');
    const privateData = packPrivateData(options, 'accept', this.datagrams);
    const parameters = packConnectionParameters(options, this.context, this.request?.connection);
    const { qp, signal, timeoutMs = CONNECT_MS } = options;
    this.#requireQueuePair('accept', qp);
    this.#state = 'connecting';
    try {
      if (qp !== undefined) {
        await this.#init(qp);
        if (!this.datagrams) await this.#bringUp(qp, options);
      }
      if (this.datagrams) {
        await this.native.accept(parameters, privateData);
      } else {
        await this.#attempt.run({
          what: 'accepting',
          start: () => this.native.accept(parameters, privateData),
          wanted: ['established'],
          unwanted: ['rejected', 'unreachable', 'connectError', 'disconnected', 'deviceRemoval'],
          ...this.#limits({ signal, timeoutMs }),
        });
      }
    } catch (error) {
      this.#state = 'failed';
      throw explain(error, this.#subject(), (errno) => (errno === 22 ? this.invalidAdvice() : ''));
    }
    this.#connected();
  }

  /**
   * Refuses the request; the peer learns it with reason 28, and with what goes with it. `rdma_reject`, `rdma_reject_ece`
   *
   * @param options `ece`: because of the peer's ECE options
   * @throws RdmaError `ERR_RDMA_LIMIT` for more private data than the message carries; `ERR_RDMA_INVALID_STATE`
   */
  reject(options: PrivateDataOptions & { ece?: boolean } = {}): void {
    checkOptions('options', options);
    this.#require('reject', 'requested');
    const privateData = packPrivateData(options, 'reject', this.datagrams);
    this.#explaining(undefined, () => this.native.reject(privateData, options.ece === true));
    this.#state = 'failed';
  }

  /**
   * Ends the connection: the queue pair goes to ERR, its requests are flushed, the peer hears of it. Resolves when the peer has
   * answered, or the kernel has given up waiting for that. `rdma_disconnect`
   *
   * Where the peer disconnects first this end answers by itself: its queue pair goes to ERR too, since it has nobody to talk to
   * any more, and there is nothing left to do but to close.
   *
   * @param options `timeoutMs`: 10 000 by default
   * @throws RdmaError `ERR_RDMA_INVALID_STATE` where there is no connection; `ERR_RDMA_TIMEOUT`; AbortError
   */
  async disconnect(options: CmWaitOptions = {}): Promise<void> {
    checkWait(options);
    this.#require('disconnect', 'connected', 'disconnected');
    if (this.datagrams) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} is for datagrams: there is no connection to end. Close it.`,
      );
    }
    if (this.#state === 'disconnected') return;
    await this.#attempt.run({
      what: 'disconnecting',
      start: () => this.#shutDown(),
      wanted: ['disconnected'],
      unwanted: ['deviceRemoval'],
      ...this.#limits({ ...options, timeoutMs: options.timeoutMs ?? DISCONNECT_MS }),
    });
  }

  /**
   * Resolves when the connection has ended: at once, where it has already.
   *
   * @returns the event
   * @throws ConnectionError `ERR_RDMA_PATH_CHANGED` where the peer is to be found elsewhere, `ENODEV` where the device was removed;
   * RdmaError `ERR_RDMA_TIMEOUT`; AbortError
   */
  async disconnected(options: CmWaitOptions = {}): Promise<void> {
    checkWait(options);
    if (this.#state === 'disconnected') return;
    this.#require('disconnected', 'connected');
    const { signal, timeoutMs } = options;
    await this.#attempt.run({
      what: 'waiting for the end',
      start: () => undefined,
      wanted: ['disconnected'],
      unwanted: ['deviceRemoval', 'unreachable'],
      givenUp: () => undefined,
      ...(signal !== undefined && { signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  }

  /**
   * Tells the connection manager of an asynchronous event: `'commEst'` where data has come before the peer's last message.
   * `rdma_notify`. rxe makes no such event.
   */
  notify(event: 'commEst'): void {
    const number = asyncEventTypes.indexOf(event);
    if (number < 0 || event !== 'commEst') throw outOfRange('event', "'commEst'", event);
    this.#explaining(undefined, () => this.native.notify(number));
  }

  /**
   * The attributes by which a queue pair of one's own goes to a state, as the connection manager has agreed on them with the peer.
   * `rdma_init_qp_attr`. {@link connect} and {@link accept} do all of it where they are given the queue pair.
   */
  initQpAttr(state: 'init' | 'rtr' | 'rts'): QueuePairAttributes {
    if (!['init', 'rtr', 'rts'].includes(state)) throw outOfRange('state', "'init', 'rtr' or 'rts'", state);
    const words = this.#explaining(undefined, () => this.native.initQpAttr(qpStates.indexOf(state)));
    return { ...maskedAttributes(words.subarray(1), words[0]!), qpState: state };
  }

  /**
   * Ends a connect with a queue pair of one's own that was brought to RTS by hand: tells the peer. `rdma_establish`.
   * {@link connect} does it where it is given the queue pair.
   *
   * @throws RdmaError `EINVAL` where the identifier has a queue pair of its own
   */
  async establish(): Promise<void> {
    try {
      await this.native.establish();
    } catch (error) {
      throw explain(error, this.#subject());
    }
  }

  /**
   * Sets an option: see {@link CmOption} for what each is and when it can be set. `rdma_set_option`
   *
   * @throws RangeError; RdmaError as the system has it
   */
  setOption(name: CmOptionName, value: number | boolean): void {
    wordNumber('name', Object.fromEntries(Object.keys(CmOption).map((key, i) => [key, i])), name);
    const option = CmOption[name];
    const number = integer('value', typeof value === 'boolean' ? Number(value) : value, 0, option.max);
    const bytes = option.bytes === 1 ? Uint8Array.of(number) : new Uint8Array(Int32Array.of(number).buffer);
    this.#explaining(undefined, () => this.native.setOption(option.level, option.name, bytes));
  }

  /**
   * Options of an enhanced connection (ECE) to offer to the peer; before the queue pair is made. `rdma_set_local_ece`. rxe has
   * none.
   */
  setLocalEce(ece: { vendorId: number; options: number }): void {
    checkOptions('ece', ece);
    integer('vendorId', ece.vendorId, 0, 2 ** 32 - 1);
    integer('options', ece.options, 0, 2 ** 32 - 1);
    this.#explaining(undefined, () => this.native.setLocalEce(ece.vendorId, ece.options));
  }

  /** The options of an enhanced connection that the peer has offered; zeros where there are none. `rdma_get_remote_ece` */
  getRemoteEce(): { vendorId: number; options: number } {
    return this.#explaining(undefined, () => this.native.getRemoteEce());
  }

  /**
   * Moves it to another channel; events that were not read yet come there. `rdma_migrate_id`
   *
   * @throws RdmaError `ERR_RDMA_BUSY` while something is awaited on it
   */
  migrate(channel: EventChannel): void {
    if (!(channel instanceof EventChannel)) throw invalidArgType('channel', 'an EventChannel', channel);
    if (this.#attempt.busy) {
      throw new RdmaError(
        'ERR_RDMA_BUSY',
        `${this.label}: something is awaited on it: await that before it moves`,
      );
    }
    this.#explaining(undefined, () => this.native.migrate(channel.native));
    const listening = this.#release !== undefined;
    this.unref();
    this.replaceParent(this.#channel, channel);
    this.#channel = channel;
    if (listening) this.ref();
  }

  /**
   * Joins a multicast group; datagrams to it then come to the queue pair that {@link createQp} has made. The identifier must be
   * bound to an address of the device, or have resolved one. `rdma_join_multicast_ex`
   *
   * @param options `sendOnly`: to send to it alone, without receiving
   * @throws ConnectionError; RdmaError `ERR_RDMA_INVALID_STATE` before it is bound to a device; `ERR_RDMA_TIMEOUT`; AbortError
   */
  async joinMulticast(
    address: string,
    options: CmWaitOptions & { sendOnly?: boolean } = {},
  ): Promise<MulticastGroup> {
    ipAddress('address', address);
    checkWait(options);
    const { signal, timeoutMs = MULTICAST_MS, sendOnly = false } = options;
    if (!this.datagrams) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} is for connections: multicast needs port space 'udp'`,
      );
    }
    const serial = this.#explaining(undefined, () => this.native.joinMulticast(address, 0, sendOnly));
    const event = await this.#joined(serial, address, signal, timeoutMs);
    return new MulticastGroup(
      this,
      address,
      event.datagram!.address,
      event.remoteQpn,
      event.datagram!.remoteQkey,
    );
  }

  /**
   * Leaves a group. `rdma_leave_multicast`
   *
   * @throws RdmaError `EADDRNOTAVAIL` for one that it has not joined
   */
  leaveMulticast(address: string): void {
    ipAddress('address', address);
    this.#explaining(undefined, () => this.native.leaveMulticast(address, 0));
  }

  /** @internal */
  receive(native: NativeCmEvent): void {
    const event = decodeCmEvent(native);
    if (event === undefined) return;
    if (event.request !== undefined) {
      this.#requested(event);
      return;
    }
    if (FAILURES.has(event.type) || event.type === 'disconnected')
      event.error = failureOf(event, this.#attemptSubject(event));
    const joined = event.multicast === undefined ? undefined : this.#joins.get(event.multicast);
    // At once: the next event may be there already, and find it connected.
    if (event.type === 'established' && this.#state === 'connecting') this.#state = 'connected';
    if (event.type === 'disconnected' && ['connecting', 'connected'].includes(this.#state))
      this.#disconnected();
    if (joined !== undefined) joined.settle(event);
    else if (!this.#attempt.settle(event)) this.#late(event);
    if (event.type === 'addrError' && event.status === -ETIMEDOUT && this.#mayResolveAgain) return;
    this.events.tell(event);
  }

  /** @internal No more events come. */
  fail(error: Error): void {
    this.#state = 'failed';
    this.#attempt.fail(error);
    this.#requests.end(error);
    this.unref();
  }

  /** {@link close} on another thread, after a call on it that is still under way. */
  override async closeAsync(options: CloseOptions = {}): Promise<void> {
    this.#closing = true;
    try {
      await this.#attempt.idle;
      await super.closeAsync(options);
    } finally {
      this.#closing = false;
    }
  }

  protected override onClosed(): void {
    const closed = closedMeanwhile();
    this.#attempt.fail(closed);
    for (const { settle } of this.#joins.values()) settle(closed);
    this.#requests.end();
    this.unref();
    this.events.emit('close');
  }

  protected override invalidAdvice(): string {
    return this.#state === 'requested' || this.#state === 'failed'
      ? 'The peer may have given up meanwhile'
      : '';
  }

  /** A connection that stands only after its connect was given up: the peer must not go on believing in it. */
  #late(event: CmEvent): void {
    if (event.type !== 'established' || this.#state !== 'failed' || this.datagrams) return;
    this.#disconnected();
    this.#state = 'failed';
  }

  #connected(): void {
    if (this.#state === 'connecting') this.#state = 'connected';
  }

  /** The peer has disconnected, or has answered. */
  #disconnected(): void {
    this.#state = 'disconnected';
    try {
      this.#shutDown();
    } catch {
      // The kernel has ended it already.
    }
  }

  #shutDown(): void {
    const own = this.#ownQp;
    if (own !== undefined && !own.closed && own.state !== 'err') own.modifySync({ qpState: 'err' });
    this.#explaining(undefined, () => this.native.disconnect());
  }

  #requested(event: DecodedCmEvent): void {
    const { request, ...rest } = event;
    const id = new CmId(request!, this.#channel, rest);
    if (this.#state === 'listening' && this.#requests.push(id)) return;
    try {
      id.reject();
    } catch {
      // The peer has given up meanwhile.
    }
    id.close();
  }

  #nextRequest({ signal, timeoutMs }: CmWaitOptions): Promise<CmId | undefined> {
    let takeBack = () => undefined as void;
    return waitFor<CmId | undefined>(
      {
        signal,
        timeoutMs,
        late: () => new RdmaError('ERR_RDMA_TIMEOUT', `${this.label}: no request came in ${timeoutMs} ms`),
        givenUp: () => takeBack(),
        hold: () => () => undefined, // the listener itself keeps the process alive, unless it was told not to
      },
      (settle) => {
        takeBack = this.#requests.take(settle);
      },
    );
  }

  #joined(
    serial: number,
    address: string,
    signal: AbortSignal | undefined,
    timeoutMs: number,
  ): Promise<DecodedCmEvent> {
    const giveUp = () => {
      if (!this.closed) this.leaveMulticast(address);
      this.#joins.delete(serial);
    };
    return waitFor<DecodedCmEvent>(
      {
        signal,
        timeoutMs,
        late: () =>
          new RdmaError(
            'ERR_RDMA_TIMEOUT',
            `${this.label}: joining ${address} took longer than ${timeoutMs} ms`,
          ),
        givenUp: giveUp,
        hold: () => this.#channel.hold(this),
      },
      (settle) => {
        this.#joins.set(serial, {
          address,
          settle: (outcome) => {
            const failure = outcome instanceof Error ? outcome : outcome.error;
            if (failure !== undefined) giveUp();
            else this.#joins.delete(serial);
            settle(failure ?? outcome);
          },
        });
      },
    );
  }

  /** Brings a queue pair of the program's own to INIT, unless it is there. */
  async #init(qp: QueuePair): Promise<void> {
    this.#ownQp = qp;
    if (qp.type === 'ud') {
      if (qp.state === 'reset') await qp.start({ qkey: this.initQpAttr('init').qkey! });
    } else if (qp.state === 'reset') {
      await qp.modify(this.initQpAttr('init'));
    }
  }

  async #bringUp(qp: QueuePair, { minRnrTimer = 12 }: CmConnectOptions): Promise<void> {
    // Once more: what the peer may do here is known only now.
    await qp.modify(this.initQpAttr('init'));
    await qp.modify({ ...this.initQpAttr('rtr'), minRnrTimer });
    await qp.modify(this.initQpAttr('rts'));
  }

  #requireQueuePair(method: string, own: QueuePair | undefined): void {
    if (own !== undefined && this.qp !== undefined) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} has ${this.qp.label}: it cannot take another one`,
      );
    }
    if (own === undefined && this.qp === undefined) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} has no queue pair for ${method}(): createQp() first, or give one of your own as qp`,
      );
    }
    if (own !== undefined && own.type !== (this.datagrams ? 'ud' : 'rc'))
      throw outOfRange('qp', this.datagrams ? 'a UD queue pair' : 'an RC queue pair', own.type.toUpperCase());
  }

  #require(method: string, ...states: CmIdState[]): void {
    if (this.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${this.label} is closed`);
    if (states.includes(this.#state)) return;
    throw new RdmaError(
      'ERR_RDMA_INVALID_STATE',
      `${this.label} is ${stateNames[this.#state]}: ${method}() needs one that is ${states.map((state) => stateNames[state]).join(' or ')}`,
    );
  }

  /** An attempt after whose failure the kernel does not let another one follow. */
  async #failing(plan: AttemptPlan): Promise<void> {
    try {
      await this.#attempt.run(plan);
    } catch (error) {
      if (error instanceof ConnectionError) this.#state = 'failed';
      throw error;
    }
  }

  /** After a wait that was given up nobody knows what the kernel still does with it. */
  #limits({ signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs: number }) {
    return {
      timeoutMs,
      ...(signal !== undefined && { signal }),
      givenUp: () => {
        this.#state = 'failed';
      },
    };
  }

  #explaining<T>(address: string | undefined, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw explain(error, this.#subject(), (errno) => {
        if (errno === 19) return noDeviceFor(address, rdmaAddresses());
        if (errno === 98)
          return 'Another listener has that address and port: choose another port, or 0 for any';
        if (errno === 99) return 'No interface of this machine has that address';
        return '';
      });
    }
  }

  #subject() {
    const context = unlessClosed(() => this.native.context());
    return context === undefined ? {} : { device: context.device.name };
  }

  /** Events come until it is closed, also while another thread is closing it. */
  #openRoute() {
    return unlessClosed(() => this.native.route());
  }

  #attemptSubject(event: DecodedCmEvent) {
    const { local, peer } = this.#openRoute() ?? {};
    const group = event.multicast === undefined ? undefined : this.#joins.get(event.multicast)?.address;
    return {
      datagrams: this.datagrams,
      established:
        this.#state === 'connected' || (event.type === 'disconnected' && this.#state === 'disconnected'),
      ...(local !== undefined && !isWildcard(local.address) && { local: local.address }),
      ...(peer !== undefined && {
        peer: peer.family === 'IPv6' ? `[${peer.address}]:${peer.port}` : `${peer.address}:${peer.port}`,
      }),
      ...(group !== undefined && { peer: group }),
    };
  }
}

const stateNames: Record<CmIdState, string> = {
  idle: 'new',
  bound: 'bound to an address',
  addrResolved: 'resolved to an address',
  routeResolved: 'resolved with its route',
  listening: 'listening',
  requested: 'a request',
  connecting: 'connecting',
  connected: 'connected',
  disconnected: 'disconnected',
  failed: 'at its end (a failure, or a rejection)',
};

function closedMeanwhile(cause?: unknown): RdmaError {
  return new RdmaError(
    'ERR_RDMA_CLOSED',
    'the identifier was closed meanwhile',
    cause === undefined ? {} : { cause },
  );
}

function portSpaceOf(number: number): PortSpace {
  const found = Object.entries(PortSpaceNumber).find(([, value]) => value === number);
  return (found?.[0] ?? 'tcp') as PortSpace;
}

function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

function unlessClosed<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof RdmaError && error.code === 'ERR_RDMA_CLOSED') return undefined;
    throw error;
  }
}
