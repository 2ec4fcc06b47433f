import { CompletionQueue } from './completion-queue.js';
import { DeviceCapFlags } from './constants.js';
import { DescriptorQueue, QueueMemory } from './descriptor-queue.js';
import { XrcDomain } from './domains.js';
import { explain, explaining, invalidArgType, outOfRange, RdmaError } from './errors.js';
import { pinAdvice } from './memlock.js';
import { native, type NativeSharedReceiveQueue, type NativeSrqExtension } from './native.js';
import { postRequests, type Posting } from './posting.js';
import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';
import { tagOperation, type TagOperation } from './tag-matching.js';
import { integer, withinDevice, wordNumber } from './validate.js';
import { ReceiveWriter, type ReceiveRequest } from './work-request.js';

export interface SharedReceiveQueueOptions {
  /** Receives outstanding at the most, from 1; 128 by default. The device may grant more. */
  maxWr?: number;
  /** Elements of a receive at the most; 1 by default. */
  maxSge?: number;
  /** When fewer receives than this are left, the context has a `srqLimitReached` event, once; 0 (the default) is never. */
  srqLimit?: number;
  /** Descriptors in shared memory: what one call can post. 256 at the most by default. */
  descriptors?: number;
  /**
   * `basic` (the default); `xrc`: peers name it by its number, whichever queue pair of its domain they are connected to; `tm`:
   * the device finds the receive for a message by its tag.
   */
  type?: SrqType;
  /** Of the type `xrc`. */
  xrcd?: XrcDomain;
  /** Where its receives complete; of the types `xrc` and `tm`. */
  cq?: CompletionQueue;
  /** Of the type `tm`: tags and operations on them outstanding at the most. */
  maxNumTags?: number;
  maxOps?: number;
}

/** `enum ibv_srq_type`. */
const srqTypes = { basic: 0, xrc: 1, tm: 2 } as const;
export type SrqType = keyof typeof srqTypes;

/** @internal What `ibv_create_srq_ex` takes besides; nothing for a basic queue. */
export function srqExtension(options: SharedReceiveQueueOptions): [] | NativeSrqExtension {
  const { type = 'basic', xrcd, cq, maxNumTags = 0, maxOps = 0 } = options;
  const number = wordNumber('type', srqTypes, type);
  const only = (name: string, given: unknown, wanted: boolean) => {
    if ((given !== undefined) !== wanted)
      throw outOfRange(
        name,
        `${wanted ? 'given' : 'absent'} for the type ${type}`,
        given === undefined ? 'absent' : 'given',
      );
  };
  only('xrcd', xrcd, type === 'xrc');
  only('cq', cq, type !== 'basic');
  only('maxNumTags', options.maxNumTags, type === 'tm');
  if (cq === undefined) return [];
  if (!(cq instanceof CompletionQueue)) throw invalidArgType('cq', 'a CompletionQueue', cq);
  if (xrcd !== undefined && !(xrcd instanceof XrcDomain)) throw invalidArgType('xrcd', 'an XrcDomain', xrcd);
  integer('maxNumTags', maxNumTags, type === 'tm' ? 1 : 0, 2 ** 20);
  integer('maxOps', maxOps, 0, 2 ** 20);
  return [number, xrcd?.native, cq.native, maxNumTags, maxOps];
}

/** Receives that many queue pairs take from (`struct ibv_srq`). Made by {@link ProtectionDomain.createSrq}. */
export class SharedReceiveQueue extends Resource {
  readonly pd: ProtectionDomain;
  /** @internal */
  readonly native: NativeSharedReceiveQueue;
  /** @internal */
  readonly receiveQueue: DescriptorQueue;
  readonly #receives: Posting<ReceiveRequest>;

  /** @internal */
  constructor(
    made: NativeSharedReceiveQueue,
    pd: ProtectionDomain,
    { xrcd, cq }: SharedReceiveQueueOptions = {},
  ) {
    super(made, [pd, ...(xrcd === undefined ? [] : [xrcd]), ...(cq === undefined ? [] : [cq])]);
    this.native = made;
    this.pd = pd;
    const memory = new QueueMemory(made.memory);
    this.receiveQueue = new DescriptorQueue(memory, made.receiveQueue, made.postReceive);
    this.#receives = {
      owner: this,
      subject: this.#subject(),
      syscall: 'ibv_post_srq_recv',
      queue: this.receiveQueue,
      writer: new ReceiveWriter(memory, made.receiveQueue),
    };
  }

  get label(): string {
    return `shared receive queue ${this.native.handle}`;
  }

  /** @internal */
  override isSubject(kind: string, number: number): boolean {
    return kind === 'sharedReceiveQueue' && number === this.native.handle;
  }

  /** Receives outstanding at the most: as many as the device has granted, or as {@link resize} has asked for since. */
  get maxWr(): number {
    return this.receiveQueue.capacity;
  }

  /** Receives that can be posted now. */
  get free(): number {
    return this.receiveQueue.free;
  }

  /**
   * Posts one receive, or several with one call. `ibv_post_srq_recv`
   *
   * Each may be taken by any queue pair of this queue; its completion tells which.
   *
   * @throws as {@link QueuePair.postRecv}
   */
  postRecv(requests: ReceiveRequest | readonly ReceiveRequest[]): void {
    postRequests(this.#receives, requests);
  }

  /**
   * The number by which a peer names it in XRC: see {@link SendRequest.remoteSrqn}. `ibv_get_srq_num`. Arguments checked, not
   * run on a NIC: rxe has no XRC.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED`
   */
  get srqNum(): number {
    return explaining(
      this.#subject(),
      () => '',
      () => native().srqNum(this.native),
    );
  }

  /**
   * Tells a queue of the type `tm` of a tag that is awaited, that it is awaited no more, or how many unexpected messages were
   * seen. `ibv_post_srq_ops`. A receive whose tag is taken away keeps its memory until the queue is closed. Arguments
   * checked, not run on a NIC: rxe has no tag matching.
   *
   * @returns the handle of the tag that was added
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_UNSUPPORTED`, `ENOMEM` where there is no room
   */
  postTagOp(operation: TagOperation): number {
    const { words, elements, tag, mask, wrId, recvWrId } = tagOperation(operation);
    return explaining(
      this.#subject(),
      () => '',
      () => native().postSrqOps(this.native, words, tag, mask, wrId, recvWrId, ...elements),
    );
  }

  /**
   * Arms the limit: the context has one `srqLimitReached` event when fewer receives than this are left. `ibv_modify_srq`
   *
   * @throws RangeError for more than the queue can hold
   */
  setLimit(srqLimit: number): void {
    integer('srqLimit', srqLimit, 0, this.maxWr);
    explaining(
      this.#subject(),
      () => '',
      () => this.native.modify(srqLimit),
    );
  }

  /**
   * Changes how many receives may be outstanding, from 1 to the device's `maxSrqWr`, on another thread. Receives that were
   * posted stay. `ibv_modify_srq` with `IBV_SRQ_MAX_WR`
   *
   * @throws RangeError; RdmaError `ERR_RDMA_LIMIT` for more than the device offers, or than a completion queue of its queue
   * pairs has room for; `ERR_RDMA_BUSY` for fewer than are outstanding, or while it is being resized; `EINVAL` for fewer than
   * the limit that is armed; `ERR_RDMA_UNSUPPORTED` for a device without `IBV_DEVICE_SRQ_RESIZE`
   */
  async resize(maxWr: number): Promise<void> {
    this.#checkSize(maxWr);
    try {
      await this.native.resize(maxWr);
    } catch (error) {
      throw this.#resizeFailure(error, maxWr);
    }
  }

  /** {@link resize} on this thread. */
  resizeSync(maxWr: number): void {
    this.#checkSize(maxWr);
    try {
      this.native.resizeSync(maxWr);
    } catch (error) {
      throw this.#resizeFailure(error, maxWr);
    }
  }

  /** What the device has granted, and the limit that is armed (0 once it was reached). `ibv_query_srq` */
  query(): { maxWr: number; maxSge: number; srqLimit: number } {
    return explaining(
      this.#subject(),
      () => '',
      () => this.native.query(),
    );
  }

  #checkSize(maxWr: number): void {
    const { context } = this.pd;
    const { maxSrqWr, deviceCapFlags } = context.queryDevice();
    withinDevice('maxWr', maxWr, 1, maxSrqWr, context.device.name);
    if ((deviceCapFlags & DeviceCapFlags.SRQ_RESIZE) === 0) {
      throw new RdmaError(
        'ERR_RDMA_UNSUPPORTED',
        `${context.device.name} cannot resize shared receive queues (no IBV_DEVICE_SRQ_RESIZE): create ${this.label} anew`,
        this.#subject(),
      );
    }
    const { outstanding } = this.receiveQueue;
    if (maxWr < outstanding) {
      throw new RdmaError(
        'ERR_RDMA_BUSY',
        `cannot resize ${this.label} to ${maxWr}: ${outstanding} receives are outstanding`,
        this.#subject(),
      );
    }
  }

  #resizeFailure(error: unknown, maxWr: number): unknown {
    const own = (code: string, message: string) =>
      new RdmaError(code, message, { ...this.#subject(), cause: error });
    switch (error instanceof RdmaError && error.code) {
      case 'EBUSY':
        return own('ERR_RDMA_BUSY', `${this.label} is being resized: await that first`);
      case 'EOVERFLOW':
        return own(
          'ERR_RDMA_LIMIT',
          `a completion queue for the receives of ${this.label} has no room for ${maxWr} of them: resize it first`,
        );
      default:
        return explain(error, this.#subject(), (errno) =>
          errno === 22 ? 'Is a higher srqLimit armed?' : pinAdvice(errno, maxWr * 64),
        );
    }
  }

  #subject() {
    return { device: this.pd.context.device.name };
  }
}
