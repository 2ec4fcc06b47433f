import { randomInt } from 'node:crypto';
import { CompletionQueue } from './completion-queue.js';
import {
  Access,
  mtuBytes,
  QpAttributeMask,
  qpStates,
  QpTypeNumber,
  type Mtu,
  type QpState,
  type QpType,
  type SendOpcode,
} from './constants.js';
import type { Context } from './context.js';
import { DescriptorQueue, QueueMemory } from './descriptor-queue.js';
import {
  explaining,
  explainingAsync,
  invalidArgType,
  outOfRange,
  RdmaError,
  type ErrorSubject,
} from './errors.js';
import { ExtendedWriter } from './extended-writer.js';
import type { ExtendedSendRequest } from './extended-posting.js';
import { Flow, type FlowOptions } from './flow.js';
import { parseGid, type GidChoice, type GidSelection } from './gid.js';
import { MemoryWindow, type BindRequest, type WindowRequest } from './memory-window.js';
import type { NativeQueuePair, NativeQueuePairOptions } from './native.js';
import { addressAdvice, randomFlowLabel, requireGid } from './path.js';
import { postRequests, type Posting } from './posting.js';
import { PreparedSend } from './prepared-send.js';
import type { ProtectionDomain } from './protection-domain.js';
import {
  packAttributes,
  unpackAttributes,
  type AddressVector,
  type QueuePairAttributes,
  type QueuePairState,
} from './queue-pair-attributes.js';
import { extensionOf, type QueuePairExtensionOptions } from './queue-pair-extension.js';
import * as settings from './queue-pair-settings.js';
import { checkTransition } from './queue-pair-transitions.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions, withinDevice, wordNumber } from './validate.js';
import { SharedReceiveQueue } from './shared-receive-queue.js';
import { ReceiveWriter, SendWriter, type ReceiveRequest, type SendRequest } from './work-request.js';

/** What a queue pair is created with (`struct ibv_qp_init_attr`, `struct ibv_qp_init_attr_ex`). */
export interface QueuePairOptions extends QueuePairExtensionOptions {
  /**
   * `'rc'`: reliable connected; `'uc'`: unreliable connected; `'ud'`: unreliable datagrams. Of the others the arguments are
   * checked, and they were not run on a NIC, since rxe has none of them: `'xrcSend'` and `'xrcRecv'`, the two ends of a
   * reliable connection to shared receive queues (the latter completes nothing itself, so any `cq` will do);
   * `'rawPacket'`, packets of Ethernet.
   */
  type: QpType;
  /** For both queues, unless `sendCq` or `recvCq` says otherwise. */
  cq?: CompletionQueue;
  sendCq?: CompletionQueue;
  recvCq?: CompletionQueue;
  /** Takes receives from there instead of a receive queue of its own. */
  srq?: SharedReceiveQueue;
  /** Send requests outstanding at the most, from 1; 128 by default. The device may grant more. */
  maxSendWr?: number;
  /** Receive requests outstanding at the most, from 0; 128 by default. */
  maxRecvWr?: number;
  /** Elements of a send request at the most; 1 by default. */
  maxSendSge?: number;
  /** Elements of a receive request at the most; 1 by default. */
  maxRecvSge?: number;
  /** Bytes that a request may carry itself; 0 by default. No attribute of the device tells its limit. */
  maxInlineData?: number;
  /** Every send request makes a completion, whatever it says of itself; false by default. */
  sqSigAll?: boolean;
  /** Descriptors in shared memory for each queue: what one call can post. Rounded up to a power of two; 256 at the most by default. */
  descriptors?: number;
}

/** What one end of a connection tells the other. Plain data; send it as JSON. */
export interface QueuePairEndpoint {
  type: QpType;
  qpNum: number;
  /** First packet sequence number that this end sends. */
  psn: number;
  gid: string;
  /** 0 on RoCE. */
  lid: number;
  /** Active MTU of the port in bytes: the connection uses the smaller of both ends'. */
  mtu: Mtu;
  /** READs and atomics that this end serves at a time. */
  maxDestRdAtomic: number;
  /** Of a queue pair for datagrams: what a sender must give. */
  qkey?: number;
}

/** How {@link QueuePair.connect} brings a queue pair to RTS. */
export interface ConnectOptions {
  /** 1 by default. */
  port?: number;
  /** Which GID to use; by default the best (see {@link Context.chooseGid}). Looked up anew at each connect. */
  gid?: GidSelection;
  /**
   * Bytes; by default the smaller of both ends' active MTUs. The connection keeps it: of a link that is made smaller afterwards rxe
   * (Linux 6.1) sends longer messages again and again without an end, until the queue pair is closed.
   */
  pathMtu?: Mtu;
  /** What the peer may do: flags of {@link Access}; by default READ, WRITE and, where the device has them, atomics. */
  qpAccessFlags?: number;
  pkeyIndex?: number;
  /** READs and atomics outstanding at the peer; by default as many as both ends allow, 16 at the most. */
  maxRdAtomic?: number;
  /** READs and atomics of the peer served at a time; by default what the device allows, 16 at the most. */
  maxDestRdAtomic?: number;
  /**
   * Code of the acknowledge timeout, 0 to 31: 4.096 µs × 2^timeout. 14 (67 ms) by default. 0 is no timeout at all: one packet that
   * is lost, or a peer that is gone, and the request never ends.
   */
  timeout?: number;
  /** 6 by default: the peer's silence becomes an error after 7 timeouts. 7 would be for ever on rxe. */
  retryCnt?: number;
  /**
   * How often a message is sent again that found no receive; 6 by default, 7 does not count. The acknowledge timer runs on
   * meanwhile, so for ever is only 7 together with `retryCnt` 7 or `timeout` 0.
   */
  rnrRetry?: number;
  /**
   * Code of how long a sender waits before it tries again where this end has no receive for it, 0 to 31: 12 (640 µs) by default; from
   * 1 (10 µs) to 31 (491.52 ms) each is longer than the one before, but 0 is the longest of all, 655.36 ms.
   */
  minRnrTimer?: number;
  /** 20 bits; by default random, so that connections spread over the paths of the fabric: see `udpSourcePort`. */
  flowLabel?: number;
  /**
   * 0 to 255; 0 by default. DSCP in the upper six bits: DSCP 26 is `26 << 2`. Of what this end sends, acknowledgements too; the
   * peer's packets carry the peer's.
   */
  trafficClass?: number;
  /**
   * 64 by default. On RoCE the kernel replaces it by the hop limit of the route to the peer: that of `ip route … hoplimit N`,
   * else `net.ipv4.ip_default_ttl` or the interface's `hop_limit` for IPv6. {@link QueuePair.query} tells which it has taken.
   */
  hopLimit?: number;
  /** Service level, 0 to 15; 0 by default. Not on the wire with RoCE v2; a NIC may map it to a priority. */
  sl?: number;
}

const PSN = 2 ** 24;
/** What ConnectX devices allow; rxe would take 128. */
const USUAL_RD_ATOMIC = 16;
const DEFAULT_DESCRIPTORS = 256;
/** The Q_Key that librdmacm uses too (RDMA_UDP_QKEY). The high bit would make it privileged. */
const DEFAULT_QKEY = 0x01234567;

/** @internal The options of {@link ProtectionDomain.createQp}, checked against what the device can do. */
export function checkQueuePairOptions(options: QueuePairOptions, context: Context) {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  const type = wordNumber('type', QpTypeNumber, options.type);
  const sendCq = options.sendCq ?? options.cq;
  const recvCq = options.recvCq ?? options.cq;
  if (!(sendCq instanceof CompletionQueue)) throw invalidArgType('sendCq', 'a CompletionQueue', sendCq);
  if (!(recvCq instanceof CompletionQueue)) throw invalidArgType('recvCq', 'a CompletionQueue', recvCq);
  const { srq } = options;
  if (srq !== undefined && !(srq instanceof SharedReceiveQueue))
    throw invalidArgType('srq', 'a SharedReceiveQueue', srq);
  if (srq !== undefined && options.maxRecvWr !== undefined) {
    throw outOfRange('maxRecvWr', 'absent with an srq, which has the receives', options.maxRecvWr);
  }
  const { maxQpWr, maxSge } = context.queryDevice();
  const device = context.device.name;
  const {
    maxSendWr = 128,
    maxRecvWr = srq === undefined ? 128 : 0,
    maxSendSge = 1,
    maxRecvSge = 1,
    maxInlineData = 0,
  } = options;
  const cap = Uint32Array.of(
    withinDevice('maxSendWr', maxSendWr, 1, maxQpWr, device),
    withinDevice('maxRecvWr', maxRecvWr, 0, maxQpWr, device),
    withinDevice('maxSendSge', maxSendSge, 1, maxSge, device),
    withinDevice('maxRecvSge', maxRecvSge, 1, maxSge, device),
    integer('maxInlineData', maxInlineData, 0, 2 ** 16),
  );
  const descriptors = integer('descriptors', options.descriptors ?? DEFAULT_DESCRIPTORS, 1, 2 ** 20);
  const forNative: NativeQueuePairOptions = [
    type,
    sendCq.native,
    recvCq.native,
    srq?.native,
    cap,
    options.sqSigAll === true,
    descriptors,
    ...extensionOf(options, options.type),
  ];
  return { type: options.type, sendCq, recvCq, srq, xrcd: options.xrcd, cap, forNative };
}

/** A queue pair (`struct ibv_qp`). Made by {@link ProtectionDomain.createQp}. */
export class QueuePair extends Resource {
  readonly pd: ProtectionDomain;
  readonly type: QpType;
  /** 24 bits. */
  readonly qpNum: number;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  /** Where it takes its receives from, unless it has a receive queue of its own. */
  readonly srq: SharedReceiveQueue | undefined;
  /** As the device has granted it. */
  readonly maxInlineData: number;
  /** @internal Descriptors for the send queue. */
  readonly sendQueue: DescriptorQueue;
  /** @internal Descriptors for the receive queue. */
  readonly receiveQueue: DescriptorQueue;
  readonly #native: NativeQueuePair;
  readonly #sends: Posting<SendRequest>;
  readonly #receives: Posting<ReceiveRequest>;
  readonly #extendedSends: Posting<ExtendedSendRequest>;
  #psn = randomInt(PSN);
  #port = 1;
  #gid: string | undefined;
  #qkey = 0;

  /** @internal */
  constructor(
    native: NativeQueuePair,
    pd: ProtectionDomain,
    { sendCq, recvCq, srq, xrcd, type }: ReturnType<typeof checkQueuePairOptions>,
    owner?: Resource,
  ) {
    super(native, [
      pd,
      sendCq,
      recvCq,
      ...(srq === undefined ? [] : [srq]),
      ...(xrcd === undefined ? [] : [xrcd]),
      ...(owner === undefined ? [] : [owner]),
    ]);
    this.#native = native;
    this.pd = pd;
    this.type = type;
    this.qpNum = native.qpNum;
    this.sendCq = sendCq;
    this.recvCq = recvCq;
    this.srq = srq;
    this.maxInlineData = native.maxInlineData;
    const memory = new QueueMemory(native.memory);
    this.sendQueue = new DescriptorQueue(memory, native.sendQueue, native.postSend);
    this.receiveQueue = new DescriptorQueue(memory, native.receiveQueue, native.postReceive);
    this.#sends = {
      owner: this,
      subject: this.#subject(),
      syscall: 'ibv_post_send',
      queue: this.sendQueue,
      cq: sendCq,
      writer: new SendWriter(memory, native.sendQueue, native.maxInlineData),
    };
    this.#extendedSends = {
      owner: this,
      subject: this.#subject(),
      syscall: 'ibv_wr_complete',
      queue: new DescriptorQueue(memory, native.sendQueue, native.postExtended),
      cq: sendCq,
      writer: new ExtendedWriter(memory, native.sendQueue, native.maxInlineData),
    };
    this.#receives = {
      owner: this,
      subject: this.#subject(),
      syscall: 'ibv_post_recv',
      queue: this.receiveQueue,
      cq: recvCq,
      writer: new ReceiveWriter(memory, native.receiveQueue),
    };
    // The number may have served before, with a failure that is no cause of what happens now.
    this.#forgetFailures();
  }

  get label(): string {
    return `queue pair ${this.qpNum}`;
  }

  /** @internal */
  get native(): NativeQueuePair {
    return this.#native;
  }

  /** @internal What errors are about. */
  get subject(): ErrorSubject {
    return this.#subject();
  }

  /** @internal */
  override isSubject(kind: string, number: number): boolean {
    return kind === 'queuePair' && number === this.qpNum;
  }

  /** As far as this library knows: it follows {@link modify}, {@link query} and failed completions. */
  get state(): QpState {
    return qpStates[this.#native.state] ?? 'err';
  }

  /**
   * Changes attributes and state, on another thread: on the way to RTR the kernel asks for the peer's address, which may
   * take a second. `ibv_modify_qp`
   *
   * @throws RdmaError `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_INVALID_ATTRIBUTES` (with the attributes that lack or are too
   * many), `ERR_RDMA_LIMIT` for a path MTU above the port's; `ETIMEDOUT`, `EHOSTUNREACH`, `ENETUNREACH` where the peer's
   * address was not found
   */
  async modify(attributes: QueuePairAttributes): Promise<void> {
    const { words, mask } = this.#prepare(attributes);
    await explainingAsync(
      this.#subject(attributes),
      (errno) => this.#modifyAdvice(errno, attributes),
      () => this.#native.modify(mask, words),
    );
    this.#modified(attributes);
  }

  /** {@link modify} on this thread. To RTR it may block for a second. */
  modifySync(attributes: QueuePairAttributes): void {
    const { words, mask } = this.#prepare(attributes);
    explaining(
      this.#subject(attributes),
      (errno) => this.#modifyAdvice(errno, attributes),
      () => this.#native.modifySync(mask, words),
    );
    this.#modified(attributes);
  }

  /** All attributes as the device has them. `ibv_query_qp` */
  query(): QueuePairState {
    return unpackAttributes(
      explaining(
        this.#subject(),
        () => '',
        () => this.#native.query(),
      ),
    );
  }

  /** RESET to INIT. From here on receives can be posted. */
  async init(
    options: Pick<ConnectOptions, 'port' | 'qpAccessFlags' | 'pkeyIndex'> & { qkey?: number } = {},
  ): Promise<void> {
    checkOptions('options', options);
    const { port = 1, pkeyIndex = 0 } = options;
    await this.modify({
      qpState: 'init',
      portNum: port,
      pkeyIndex,
      ...(this.type === 'ud'
        ? { qkey: options.qkey ?? DEFAULT_QKEY }
        : { qpAccessFlags: options.qpAccessFlags ?? this.#usualAccess() }),
    });
  }

  /**
   * Makes a queue pair for datagrams ready: INIT (unless it is there already), RTR, RTS. From here on it sends and receives.
   *
   * @throws RdmaError `ERR_RDMA_INVALID_STATE` for a connected queue pair, which needs {@link connect}
   */
  async start(options: { port?: number; qkey?: number; pkeyIndex?: number } = {}): Promise<void> {
    checkOptions('options', options);
    if (this.type !== 'ud') {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} is ${this.type.toUpperCase()}: use connect()`,
        {
          qpn: this.qpNum,
        },
      );
    }
    if (this.state === 'reset') await this.init(options);
    await this.modify({ qpState: 'rtr' });
    await this.modify({ qpState: 'rts', sqPsn: this.#psn });
  }

  /** What the peer needs for its {@link connect}. The GID is chosen now, and kept by its value. */
  endpoint(options: Pick<ConnectOptions, 'port' | 'gid' | 'maxDestRdAtomic'> = {}): QueuePairEndpoint {
    checkOptions('options', options);
    const { port = this.#port, gid } = options;
    const { context } = this.pd;
    const attributes = context.queryPort(port);
    const choice = context.chooseGid(gid, port);
    this.#port = port;
    this.#gid = choice.gid;
    return {
      type: this.type,
      qpNum: this.qpNum,
      psn: this.#psn,
      gid: choice.gid,
      lid: attributes.lid,
      mtu: attributes.activeMtu,
      maxDestRdAtomic: options.maxDestRdAtomic ?? this.#usualDestRdAtomic(),
      ...(this.type === 'ud' && { qkey: this.#qkey }),
    };
  }

  /**
   * Connects to a peer: INIT (unless it is there already), RTR, RTS.
   *
   * The GID is the one that {@link endpoint} has told the peer, looked up again by its value; the path MTU is the smaller
   * of both ends'.
   *
   * @returns the GID with the reason for it, and the path MTU
   * @throws as {@link modify}; RdmaError `ERR_RDMA_NO_GID`
   */
  async connect(
    remote: QueuePairEndpoint,
    options: ConnectOptions = {},
  ): Promise<{ gid: GidChoice; pathMtu: Mtu }> {
    checkOptions('options', options);
    if (this.type === 'ud') {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} is for datagrams and connects to nobody: use start(), and an address handle for each peer`,
        { qpn: this.qpNum },
      );
    }
    this.#checkEndpoint(remote);
    const { context } = this.pd;
    const port = options.port ?? this.#port;
    const selection =
      options.gid ?? (this.#gid === undefined ? { peer: remote.gid } : { address: this.#gid });
    const gid = context.chooseGid(selection, port);
    const { activeMtu } = context.queryPort(port);
    const pathMtu = options.pathMtu ?? (Math.min(activeMtu, remote.mtu) as Mtu);
    if (pathMtu > remote.mtu) {
      throw new RdmaError(
        'ERR_RDMA_LIMIT',
        `pathMtu ${pathMtu} is above the active MTU ${remote.mtu} of the peer (${activeMtu} here): it would drop longer packets. ` +
          'Use the smaller of both, or raise the MTU of the peer’s network interface.',
        this.#subject(),
      );
    }
    if (this.state === 'reset') await this.init({ ...options, port });
    const ahAttr: AddressVector = {
      dgid: remote.gid,
      sgidIndex: gid.index,
      flowLabel: options.flowLabel ?? randomFlowLabel(),
      trafficClass: options.trafficClass ?? 0,
      hopLimit: options.hopLimit ?? 64,
      sl: options.sl ?? 0,
      dlid: remote.lid,
      portNum: port,
    };
    const reliable = this.type === 'rc';
    await this.modify({
      qpState: 'rtr',
      ahAttr,
      pathMtu,
      destQpNum: remote.qpNum,
      rqPsn: remote.psn,
      ...(reliable && {
        maxDestRdAtomic: options.maxDestRdAtomic ?? this.#usualDestRdAtomic(),
        minRnrTimer: options.minRnrTimer ?? 12,
      }),
    });
    const { maxQpInitRdAtom } = context.queryDevice();
    await this.modify({
      qpState: 'rts',
      sqPsn: this.#psn,
      ...(reliable && {
        timeout: options.timeout ?? 14,
        retryCnt: options.retryCnt ?? 6,
        rnrRetry: options.rnrRetry ?? 6,
        maxRdAtomic:
          options.maxRdAtomic ?? Math.min(maxQpInitRdAtom, remote.maxDestRdAtomic, USUAL_RD_ATOMIC),
      }),
    });
    return { gid, pathMtu };
  }

  /**
   * Posts one request, or several with one call. `ibv_post_send`
   *
   * As many as there are `descriptors` (256 by default) are checked before any of them is posted; a longer list goes out in
   * parts of that length. A request that is posted holds its memory regions until it ends. One that is posted
   * in SQD waits for RTS; rxe (Linux 6.1) goes on with it there only when something more is posted.
   *
   * @throws TypeError, RangeError for a wrong request; RdmaError `ERR_RDMA_QUEUE_FULL` when not all fit (then none is
   * posted), `ERR_RDMA_INVALID_STATE` before RTS, `ERR_RDMA_INVALID_DESCRIPTOR`; `posted` tells how many went out
   */
  postSend(requests: SendRequest | readonly SendRequest[]): void {
    postRequests(this.#sends, requests);
  }

  /**
   * Makes a request that can be posted again and again, for what is sent often and changes in its bytes only: it is checked and
   * written once. Bytes of `inline` are copied now, those of a memory region are read by the device at each post.
   *
   * @throws TypeError, RangeError, RdmaError for a wrong request, as {@link postSend}
   */
  prepareSend(request: SendRequest): PreparedSend {
    return new PreparedSend(this.#sends, this.maxInlineData, request);
  }

  /**
   * Posts one receive, or several with one call. `ibv_post_recv`. For datagrams it needs 40 bytes more than the message, for
   * the GRH that lies before it.
   *
   * @throws as {@link postSend}; RdmaError `ERR_RDMA_INVALID_STATE` in RESET and ERR, where a receive may never end. A queue pair
   * that only its peer has brought to ERR, with no request that failed here, is not known to be there until {@link query}
   */
  postRecv(requests: ReceiveRequest | readonly ReceiveRequest[]): void {
    if (this.srq !== undefined) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} takes its receives from ${this.srq.label}: post them there`,
        this.#subject(),
      );
    }
    postRequests(this.#receives, requests);
  }

  /**
   * Posts one request, or several with one call, by the newer functions (`ibv_wr_start`, `ibv_wr_*`, `ibv_wr_complete`). The
   * queue pair was created with the opcodes among its `sendOps`. All are posted, or none.
   *
   * They alone have `atomicWrite` and `flush`, which need Linux 6.2 on rxe (on 6.1 an atomic write fails with `locQpOpErr`),
   * and `flush` an rdma-core newer than 44.
   *
   * @throws as {@link postSend}
   */
  postSendEx(requests: ExtendedSendRequest | readonly ExtendedSendRequest[]): void {
    postRequests(this.#extendedSends, requests);
  }

  /**
   * Sends a long message as segments, each with the header in front. `ibv_wr_send_tso`; created with `sendOps: ['tso']` and
   * `maxTsoHeader`. Arguments checked, not run on a NIC: rxe has no segmentation.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_QUEUE_FULL`
   */
  sendTso(request: settings.TsoRequest): void {
    settings.sendTso(this, request);
  }

  /**
   * Opens a range of a memory region by a window, in its turn among what is sent. `ibv_bind_mw`; of type 2 `IBV_WR_BIND_MW`
   *
   * A window of type 2 must be closed, or bound elsewhere, before the queue pair on which it was bound last: close() says so,
   * and `cascade` does it.
   *
   * @returns the key by which a peer names it from now on; {@link MemoryWindow.remote} has all that the peer needs
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_INVALID_STATE` before RTS, and for a window of type 2 that is bound;
   * `ERR_RDMA_INVALID_ATTRIBUTES` for a region without `MW_BIND`; `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_QUEUE_FULL`
   */
  bindMw(mw: MemoryWindow, request: BindRequest): number {
    if (!(mw instanceof MemoryWindow)) throw invalidArgType('mw', 'a MemoryWindow', mw);
    return mw.bindOn(this, request);
  }

  /**
   * Closes a window of type 2 that is bound here, in its turn among what is sent. `IBV_WR_LOCAL_INV`. A peer does the same by
   * the opcode `sendWithInv`; let one of the two do it: on rxe (Linux 6.1), the kernel does not survive both.
   *
   * @throws as {@link bindMw}; RdmaError `ERR_RDMA_INVALID_STATE` for a window that is not bound on this queue pair
   */
  invalidateMw(mw: MemoryWindow, request: WindowRequest = {}): void {
    if (!(mw instanceof MemoryWindow)) throw invalidArgType('mw', 'a MemoryWindow', mw);
    mw.invalidateOn(this, request);
  }

  /**
   * Makes the queue pair, one for datagrams, a member of a multicast group: what is sent to the group and to the queue pair
   * number 0xffffff comes here, too. Closing it ends that. `ibv_attach_mcast`. It does not tell the network (IGMP, or the
   * subnet manager): {@link CmId.joinMulticast} does that too.
   *
   * @param gid of the group, as text; an address of IP will do
   * @param lid of the group, on InfiniBand
   * @throws RangeError; RdmaError `ERR_RDMA_INVALID_STATE` for a connected queue pair, `ENOMEM`
   */
  attachMcast(gid: string, lid = 0): void {
    settings.attachMcast(this, gid, lid);
  }

  /** Ends the membership. `ibv_detach_mcast` @throws as {@link attachMcast}; RdmaError `EINVAL` where it is no member */
  detachMcast(gid: string, lid = 0): void {
    settings.detachMcast(this, gid, lid);
  }

  /**
   * Options of an enhanced connection that the peer has told, before RTR. `ibv_set_ece`. Arguments checked, not run on a NIC:
   * rxe has none.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  setEce(ece: settings.Ece): void {
    settings.setEce(this, ece);
  }

  /**
   * Options of an enhanced connection that this end has. `ibv_query_ece`. Arguments checked, not run on a NIC: rxe has none.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  queryEce(): settings.Ece {
    return settings.queryEce(this);
  }

  /**
   * Limits how fast it sends, in RTS. `ibv_modify_qp_rate_limit`. Arguments checked, not run on a NIC: rxe has no pacing.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  modifyRateLimit(limit: settings.RateLimit): void {
    settings.modifyRateLimit(this, limit);
  }

  /**
   * Whether the bytes of a message are seen in the order in which they lie, by those who look while it arrives.
   * `ibv_query_qp_data_in_order`. rxe says no.
   */
  queryDataInOrder(opcode: SendOpcode): boolean {
    return settings.queryDataInOrder(this, opcode);
  }

  /**
   * Leads packets here that match. `ibv_create_flow`. Arguments checked, not run on a NIC: rxe has no flow steering.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_UNSUPPORTED`
   */
  createFlow(options: FlowOptions): Flow {
    return new Flow(this, this.#native, this.pd.context, options);
  }

  #prepare(attributes: QueuePairAttributes) {
    const packed = packAttributes(attributes);
    const to = attributes.qpState ?? this.state;
    checkTransition(
      this.type,
      attributes.curQpState ?? this.state,
      to,
      packed.mask & ~QpAttributeMask.STATE,
      this.qpNum,
    );
    this.#checkPath(attributes);
    return packed;
  }

  /** What verbs takes without a word and then never works. */
  #checkPath(attributes: QueuePairAttributes): void {
    const { pkeyIndex, pathMtu, ahAttr } = attributes;
    if (pkeyIndex === undefined && pathMtu === undefined && ahAttr === undefined) return;
    const port = ahAttr?.portNum || attributes.portNum || this.#port;
    const { activeMtu, linkLayer, pkeyTblLen } = this.pd.context.queryPort(port);
    if (pkeyIndex !== undefined) integer('pkeyIndex', pkeyIndex, 0, pkeyTblLen - 1);
    const subject = { device: this.pd.context.device.name, port, qpn: this.qpNum };
    if (pathMtu !== undefined && pathMtu > activeMtu) {
      throw new RdmaError(
        'ERR_RDMA_LIMIT',
        `pathMtu ${pathMtu} is above the active MTU ${activeMtu} of port ${port}: messages longer than that would never ` +
          'arrive. Use the smaller of both ends’ active MTUs, or raise the MTU of the network interface (4200 carries 4096).',
        subject,
      );
    }
    if (ahAttr !== undefined) requireGid('ahAttr', ahAttr, linkLayer, port, subject);
  }

  #modified(attributes: QueuePairAttributes): void {
    if (attributes.portNum !== undefined) this.#port = attributes.portNum;
    if (attributes.qkey !== undefined) this.#qkey = attributes.qkey;
    if (attributes.qpState !== 'reset') return;
    this.#psn = randomInt(PSN);
    this.#forgetFailures();
  }

  #forgetFailures(): void {
    this.sendCq.forgetFailure(this.qpNum);
    this.recvCq.forgetFailure(this.qpNum);
  }

  #subject(attributes: QueuePairAttributes = {}): ErrorSubject {
    const subject: ErrorSubject = { device: this.pd.context.device.name, qpn: this.qpNum };
    if (attributes.ahAttr?.sgidIndex !== undefined) {
      subject.port = attributes.ahAttr.portNum ?? this.#port;
      subject.gidIndex = attributes.ahAttr.sgidIndex;
    }
    return subject;
  }

  #modifyAdvice(errno: number, attributes: QueuePairAttributes): string {
    const step =
      attributes.qpState === undefined
        ? ''
        : `Going from ${this.state.toUpperCase()} to ${attributes.qpState.toUpperCase()}`;
    const vector = attributes.ahAttr;
    if (vector === undefined) return step;
    return `${step}. ${addressAdvice(errno, this.pd.context, { ...vector, portNum: vector.portNum ?? this.#port })}`;
  }

  #usualAccess(): number {
    const atomics = this.type === 'rc' && this.pd.context.queryDevice().atomicCap !== 'none';
    const read = this.type === 'rc' ? Access.REMOTE_READ : 0;
    return Access.REMOTE_WRITE | read | (atomics ? Access.REMOTE_ATOMIC : 0);
  }

  #usualDestRdAtomic(): number {
    return this.type === 'rc' ? Math.min(this.pd.context.queryDevice().maxQpRdAtom, USUAL_RD_ATOMIC) : 0;
  }

  #checkEndpoint(remote: QueuePairEndpoint): void {
    if (typeof remote !== 'object' || remote === null)
      throw invalidArgType('remote', "the peer's endpoint()", remote);
    if (remote.type !== this.type) {
      throw outOfRange('remote.type', `${this.type}, as this queue pair is`, remote.type);
    }
    integer('remote.qpNum', remote.qpNum, 0, PSN - 1);
    integer('remote.psn', remote.psn, 0, PSN - 1);
    integer('remote.lid', remote.lid, 0, 2 ** 16 - 1);
    integer('remote.maxDestRdAtomic', remote.maxDestRdAtomic, 0, 255);
    const mtus: Mtu[] = Object.values(mtuBytes);
    if (!mtus.includes(remote.mtu)) {
      throw outOfRange('remote.mtu', `one of ${mtus.join(', ')}`, remote.mtu);
    }
    parseGid(remote.gid);
  }
}
