import { DeviceCapFlags } from './constants.js';
import { DescriptorQueue, QueueMemory } from './descriptor-queue.js';
import { explain, explaining, RdmaError } from './errors.js';
import { pinAdvice } from './memlock.js';
import type { NativeSharedReceiveQueue } from './native.js';
import { postRequests, type Posting } from './posting.js';
import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';
import { integer, withinDevice } from './validate.js';
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
  constructor(native: NativeSharedReceiveQueue, pd: ProtectionDomain) {
    super(native, [pd]);
    this.native = native;
    this.pd = pd;
    const memory = new QueueMemory(native.memory);
    this.receiveQueue = new DescriptorQueue(memory, native.receiveQueue, native.postReceive);
    this.#receives = {
      owner: this,
      subject: this.#subject(),
      syscall: 'ibv_post_srq_recv',
      queue: this.receiveQueue,
      writer: new ReceiveWriter(memory, native.receiveQueue),
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
