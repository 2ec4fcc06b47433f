import { DescriptorQueue } from './descriptor-queue.js';
import { explaining } from './errors.js';
import type { NativeSharedReceiveQueue } from './native.js';
import { postRequests, type Posting } from './posting.js';
import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';
import { integer } from './validate.js';
import { DescriptorWriter, type ReceiveRequest } from './work-request.js';

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
    this.receiveQueue = new DescriptorQueue(native.memory, native.receiveQueue, native.postReceive);
    const writer = new DescriptorWriter(native.memory, native.receiveQueue, 0);
    this.#receives = {
      owner: this,
      subject: { device: pd.context.device.name },
      syscall: 'ibv_post_srq_recv',
      queue: this.receiveQueue,
      write: (place, request) => writer.writeReceive(place, request),
    };
  }

  get label(): string {
    return `shared receive queue ${this.native.handle}`;
  }

  /** @internal */
  override isSubject(kind: string, number: number): boolean {
    return kind === 'sharedReceiveQueue' && number === this.native.handle;
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
    integer('srqLimit', srqLimit, 0, this.receiveQueue.layout.capacity);
    explaining(
      { device: this.pd.context.device.name },
      () => '',
      () => this.native.modify(srqLimit),
    );
  }

  /** What the device has granted, and the limit that is armed (0 once it was reached). `ibv_query_srq` */
  query(): { maxWr: number; maxSge: number; srqLimit: number } {
    return explaining(
      { device: this.pd.context.device.name },
      () => '',
      () => this.native.query(),
    );
  }
}
