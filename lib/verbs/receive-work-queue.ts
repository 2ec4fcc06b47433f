import { CompletionQueue } from './completion-queue.js';
import type { Context } from './context.js';
import { DescriptorQueue, QueueMemory } from './descriptor-queue.js';
import { explaining, invalidArgType, outOfRange } from './errors.js';
import { Flow, type FlowOptions } from './flow.js';
import { native, type NativeResource } from './native.js';
import type { NativeReceiveWorkQueue, NativeRssQueuePair } from './native-more.js';
import { postRequests, type Posting } from './posting.js';
import type { ProtectionDomain } from './protection-domain.js';
import { packAttributes, type QueuePairAttributes } from './queue-pair-attributes.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions, unsigned64, wordIndex, wordNumber } from './validate.js';
import { ReceiveWriter, type ReceiveRequest } from './work-request.js';

/** `enum ibv_wq_flags`. Combine with `|`. */
export const WqFlags = {
  CVLAN_STRIPPING: 1,
  SCATTER_FCS: 1 << 1,
  DELAY_DROP: 1 << 2,
  PCI_WRITE_END_PADDING: 1 << 3,
} as const;
const KNOWN_FLAGS = Object.values(WqFlags).reduce((all, flag) => all | flag, 0);

/** `enum ibv_wq_state`, in its order. */
const wqStates = ['reset', 'ready', 'err'] as const;
export type WqState = (typeof wqStates)[number];

export interface ReceiveWorkQueueOptions {
  /** Where its receives complete. */
  cq: CompletionQueue;
  /** Receives outstanding at the most, from 1; 128 by default. */
  maxWr?: number;
  /** Elements of a receive at the most; 1 by default. */
  maxSge?: number;
  /** Flags of {@link WqFlags}, or-ed. */
  flags?: number;
  /** Descriptors in shared memory: what one call can post. 256 at the most by default. */
  descriptors?: number;
}

/** What {@link ReceiveWorkQueue.modify} changes. */
export interface WorkQueueAttributes {
  state?: WqState;
  /** Assumed to be its state now. */
  currentState?: WqState;
  /** Flags of {@link WqFlags} to set, and which of them are meant. */
  flags?: number;
  flagsMask?: number;
}

const STATE = 1;
const CURRENT_STATE = 2;
const FLAGS = 4;

function wqFlags(name: string, value: number): number {
  integer(name, value, 0, 2 ** 32 - 1);
  if ((value & ~KNOWN_FLAGS) !== 0) throw outOfRange(name, 'flags of WqFlags, or-ed', value);
  return value;
}

/**
 * A receive queue without a queue pair (`struct ibv_wq`), one of those that an {@link IndirectionTable} spreads packets over.
 * Made by {@link ProtectionDomain.createWq}. Arguments checked, not run on a NIC: rxe has none.
 */
export class ReceiveWorkQueue extends Resource {
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly wqNum: number;
  /** @internal */
  readonly native: NativeReceiveWorkQueue;
  readonly #receives: Posting<ReceiveRequest>;

  /** @internal */
  constructor(pd: ProtectionDomain, options: ReceiveWorkQueueOptions) {
    if (options === undefined) throw invalidArgType('options', 'an object', options);
    checkOptions('options', options);
    const { cq, maxWr = 128, maxSge = 1, flags = 0, descriptors = 256 } = options;
    if (!(cq instanceof CompletionQueue)) throw invalidArgType('cq', 'a CompletionQueue', cq);
    integer('maxWr', maxWr, 1, 2 ** 31 - 1);
    integer('maxSge', maxSge, 1, 255);
    integer('descriptors', descriptors, 1, 2 ** 20);
    wqFlags('flags', flags);
    const subject = { device: pd.context.device.name };
    const made = explaining(
      subject,
      () => '',
      () => native().createWq(pd.native, cq.native, maxWr, maxSge, flags, descriptors),
    );
    super(made, [pd, cq]);
    this.native = made;
    this.pd = pd;
    this.cq = cq;
    this.wqNum = made.wqNum;
    const memory = new QueueMemory(made.memory);
    this.#receives = {
      owner: this,
      subject,
      syscall: 'ibv_post_wq_recv',
      queue: new DescriptorQueue(memory, made.receiveQueue, made.postReceive),
      cq,
      writer: new ReceiveWriter(memory, made.receiveQueue),
    };
  }

  get label(): string {
    return `work queue ${this.wqNum}`;
  }

  /** @internal */
  override isSubject(kind: string, number: number): boolean {
    return kind === 'workQueue' && number === this.native.handle;
  }

  get state(): WqState {
    return wqStates[this.native.state] ?? 'err';
  }

  /** Changes its state or flags. It takes receives in `ready`. `ibv_modify_wq` */
  modify(attributes: WorkQueueAttributes): void {
    checkOptions('attributes', attributes);
    const { state, currentState, flags = 0, flagsMask } = attributes;
    const mask =
      (state === undefined ? 0 : STATE) |
      (currentState === undefined ? 0 : CURRENT_STATE) |
      (flagsMask === undefined ? 0 : FLAGS);
    if (mask === 0) throw outOfRange('attributes', 'at least a state or a flagsMask', 'none');
    explaining(
      { device: this.pd.context.device.name },
      () => '',
      () =>
        this.native.modify(
          mask,
          state === undefined ? 0 : wordIndex('state', wqStates, state),
          currentState === undefined ? 0 : wordIndex('currentState', wqStates, currentState),
          wqFlags('flags', flags),
          wqFlags('flagsMask', flagsMask ?? 0),
        ),
    );
  }

  /** Posts one receive, or several with one call. `ibv_post_wq_recv` @throws as {@link QueuePair.postRecv} */
  postRecv(requests: ReceiveRequest | readonly ReceiveRequest[]): void {
    postRequests(this.#receives, requests);
  }
}

/**
 * Which of several receive queues each packet goes to, by its hash (`struct ibv_rwq_ind_table`). Made by
 * {@link Context.createRwqIndTable}. Arguments checked, not run on a NIC: rxe has none.
 */
export class IndirectionTable extends Resource {
  readonly queues: readonly ReceiveWorkQueue[];
  /** @internal */
  readonly native: NativeResource;

  /** @internal */
  constructor(context: Context, given: readonly ReceiveWorkQueue[]) {
    if (!Array.isArray(given)) throw invalidArgType('queues', 'an array', given);
    const queues = given as readonly ReceiveWorkQueue[];
    const logSize = Math.log2(queues.length);
    if (!Number.isInteger(logSize) || logSize > 16)
      throw outOfRange('queues.length', 'a power of two, at most 65536', queues.length);
    for (const queue of queues as readonly unknown[]) {
      if (!(queue instanceof ReceiveWorkQueue)) throw invalidArgType('queues', 'ReceiveWorkQueues', queue);
    }
    const made = explaining(
      { device: context.device.name },
      () => '',
      () => native().createRwqIndTable(context.native, logSize, ...queues.map((queue) => queue.native)),
    );
    super(made, [context, ...queues]);
    this.native = made;
    this.queues = [...queues];
  }

  get label(): string {
    return `indirection table of ${this.queues.length} work queues`;
  }
}

/** `enum ibv_rx_hash_fields`: what of a packet decides where it goes. Combine with `|`; all are below 2^32. */
export const RxHashFields = {
  SRC_IPV4: 1,
  DST_IPV4: 1 << 1,
  SRC_IPV6: 1 << 2,
  DST_IPV6: 1 << 3,
  SRC_PORT_TCP: 1 << 4,
  DST_PORT_TCP: 1 << 5,
  SRC_PORT_UDP: 1 << 6,
  DST_PORT_UDP: 1 << 7,
  IPSEC_SPI: 1 << 8,
  /** The headers inside a tunnel, instead of the outer ones. */
  INNER: 2 ** 31,
} as const;

/** `enum ibv_rx_hash_function_flags`. */
const hashFunctions = { toeplitz: 1 } as const;
const rssTypes = { ud: 4, rawPacket: 8 } as const;

export interface RssQueuePairOptions {
  table: IndirectionTable;
  /** `rawPacket` by default. */
  type?: keyof typeof rssTypes;
  /** `toeplitz`, the only one that there is. */
  hashFunction?: keyof typeof hashFunctions;
  /** The key of the hash: 40 bytes for Toeplitz. */
  hashKey: Uint8Array;
  /** Flags of {@link RxHashFields}, or-ed (a sum, where INNER is among them). */
  hashFields: bigint | number;
  /** Flags of {@link QpCreateFlags}, or-ed. */
  createFlags?: number;
}

/**
 * A queue pair that receives into the queues of an indirection table. Flows lead packets to it. Made by
 * {@link ProtectionDomain.createRssQp}. Arguments checked, not run on a NIC: rxe has none.
 */
export class RssQueuePair extends Resource {
  readonly pd: ProtectionDomain;
  readonly qpNum: number;
  /** @internal */
  readonly native: NativeRssQueuePair;

  /** @internal */
  constructor(pd: ProtectionDomain, options: RssQueuePairOptions) {
    if (options === undefined) throw invalidArgType('options', 'an object', options);
    checkOptions('options', options);
    const { table, type = 'rawPacket', hashFunction = 'toeplitz', hashKey, createFlags = 0 } = options;
    if (!(table instanceof IndirectionTable)) throw invalidArgType('table', 'an IndirectionTable', table);
    if (!(hashKey instanceof Uint8Array)) throw invalidArgType('hashKey', 'a Uint8Array', hashKey);
    integer('hashKey.length', hashKey.length, 1, 255);
    integer('createFlags', createFlags, 0, 2 ** 32 - 1);
    const made = explaining(
      { device: pd.context.device.name },
      () => '',
      () =>
        native().createRssQp(
          pd.native,
          table.native,
          wordNumber('type', rssTypes, type),
          wordNumber('hashFunction', hashFunctions, hashFunction),
          hashKey,
          unsigned64('hashFields', options.hashFields),
          createFlags,
        ),
    );
    super(made, [pd, table]);
    this.native = made;
    this.pd = pd;
    this.qpNum = made.qpNum;
  }

  get label(): string {
    return `RSS queue pair ${this.qpNum}`;
  }

  /** Changes attributes, where the device asks for that: to INIT with the port, to RTR. `ibv_modify_qp` */
  modify(attributes: QueuePairAttributes): void {
    const { words, mask } = packAttributes(attributes);
    explaining(
      { device: this.pd.context.device.name, qpn: this.qpNum },
      () => '',
      () => this.native.modify(mask, words),
    );
  }

  /** Leads packets to it. `ibv_create_flow` @throws as {@link QueuePair.createFlow} */
  createFlow(options: FlowOptions): Flow {
    return new Flow(this, this.native, this.pd.context, options);
  }
}
