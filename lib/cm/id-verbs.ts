// What an identifier has of verbs once it is bound to a device: <rdma/rdma_verbs.h> and the queue pair of the connection.
import type { CompletionQueue, CompletionWaitOptions } from '../verbs/completion-queue.js';
import { Access, QpTypeNumber } from '../verbs/constants.js';
import type { Context } from '../verbs/context.js';
import { explaining, invalidArgType, RdmaError } from '../verbs/errors.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { NativeCmId } from '../verbs/native.js';
import { ProtectionDomain, type MemorySource } from '../verbs/protection-domain.js';
import { checkQueuePairOptions, QueuePair, type QueuePairOptions } from '../verbs/queue-pair.js';
import { Resource } from '../verbs/resource.js';
import type { SharedReceiveQueue, SharedReceiveQueueOptions } from '../verbs/shared-receive-queue.js';
import { options as checkOptions } from '../verbs/validate.js';
import type { WorkCompletion } from '../verbs/work-completion.js';
import type { ReceiveRequest, SendRequest } from '../verbs/work-request.js';
import { contextOf } from './devices.js';

/** What {@link CmId.createQp} makes; what is not given has defaults. The type follows from the port space. */
export interface CmQueuePairOptions extends Partial<Omit<QueuePairOptions, 'type'>> {
  /** By default {@link CmId.pd}. */
  pd?: ProtectionDomain;
}

/** The verbs of an identifier. */
export abstract class CmVerbs extends Resource {
  /** @internal */
  protected readonly native: NativeCmId;
  #context: Context | undefined;
  #pd: ProtectionDomain | undefined;
  #qp: QueuePair | undefined;
  #srq: SharedReceiveQueue | undefined;

  /** @internal */
  protected constructor(native: NativeCmId, channel: Resource) {
    super(native, [channel]);
    this.native = native;
  }

  /** Whether it is for datagrams (UD) and not for a connection (RC). */
  get datagrams(): boolean {
    return this.native.qpType === QpTypeNumber.ud;
  }

  /**
   * The device that its address has led to. What is made on it works with all identifiers of the device.
   *
   * @throws RdmaError `ERR_RDMA_INVALID_STATE` before it is bound to an address of a device, or has resolved one
   */
  get context(): Context {
    if (this.#context === undefined || this.#context.closed) {
      const native = this.native.context();
      if (native === undefined) {
        throw new RdmaError(
          'ERR_RDMA_INVALID_STATE',
          `${this.label} is bound to no device: bindAddr() to an address of one, or resolveAddr() first`,
        );
      }
      this.#context = contextOf(native);
    }
    return this.#context;
  }

  /** A protection domain of its own, made when it is first asked for and closed with the identifier. */
  get pd(): ProtectionDomain {
    if (this.#pd === undefined || this.#pd.closed) this.#pd = this.context.allocPdFor(this);
    return this.#pd;
  }

  /** The queue pair that {@link createQp} has made. */
  get qp(): QueuePair | undefined {
    return this.#qp?.closed === true ? undefined : this.#qp;
  }

  /** The shared receive queue that {@link createSrq} has made. */
  get srq(): SharedReceiveQueue | undefined {
    return this.#srq?.closed === true ? undefined : this.#srq;
  }

  /**
   * Makes the queue pair of the connection: RC in INIT, so that receives can be posted before it is connected; UD in RTS.
   * The connection manager brings it to RTS, and to ERR at the end. `rdma_create_qp`; `rdma_destroy_qp` is its close().
   *
   * Without `pd` it is made on {@link pd}; without completion queues it gets one for sends and one for receives, closed with
   * the identifier.
   *
   * @throws TypeError, RangeError; RdmaError `ERR_RDMA_INVALID_STATE` before it is bound to a device, or where it has a queue
   * pair; `ERR_RDMA_LIMIT`; `ERR_RDMA_FOREIGN_OBJECT` for objects of another context than {@link context}
   */
  createQp(options: CmQueuePairOptions = {}): QueuePair {
    checkOptions('options', options);
    const { context } = this;
    if (this.qp !== undefined) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${this.label} has ${this.qp.label} already: close that first`,
      );
    }
    const { pd = this.pd, ...rest } = options;
    if (!(pd instanceof ProtectionDomain)) throw invalidArgType('pd', 'a ProtectionDomain', pd);
    if (pd.context !== context) {
      throw new RdmaError(
        'ERR_RDMA_FOREIGN_OBJECT',
        `${pd.label} was made on another context: make it on the identifier's own (id.context.allocPd()), or connect with a ` +
          'queue pair of your own (connect({ qp }))',
        { device: context.device.name },
      );
    }
    const full = { srq: this.srq, ...rest, type: this.datagrams ? 'ud' : 'rc' } as QueuePairOptions;
    if (full.srq === undefined) delete full.srq;
    const made: CompletionQueue[] = [];
    const newCq = (cqe: number) => {
      const cq = context.createCqFor(this, { cqe });
      made.push(cq);
      return cq;
    };
    full.sendCq ??= full.cq ?? newCq(full.maxSendWr ?? 128);
    full.recvCq ??= full.cq ?? newCq(full.maxRecvWr || 128);
    try {
      const request = checkQueuePairOptions(full, context);
      const native = explaining(
        { device: context.device.name },
        (errno) => (errno === 22 ? this.invalidAdvice() : ''),
        () => this.native.createQp(pd.native, ...request.forNative),
      );
      return (this.#qp = new QueuePair(native, pd, request, this));
    } catch (error) {
      for (const cq of made) cq.close();
      throw error;
    }
  }

  /** Makes a shared receive queue on {@link pd}, which {@link createQp} then takes. `rdma_create_srq` */
  createSrq(options: SharedReceiveQueueOptions = {}): SharedReceiveQueue {
    return (this.#srq = this.pd.createSrq(options));
  }

  /** Registers memory on {@link pd} for messages. `rdma_reg_msgs` */
  regMsgs(source: MemorySource): Promise<MemoryRegion> {
    return this.pd.regMr(source, { access: Access.LOCAL_WRITE });
  }

  /** Registers memory on {@link pd} that the peer may read. `rdma_reg_read` */
  regRead(source: MemorySource): Promise<MemoryRegion> {
    return this.pd.regMr(source, { access: Access.LOCAL_WRITE | Access.REMOTE_READ });
  }

  /** Registers memory on {@link pd} that the peer may write. `rdma_reg_write` */
  regWrite(source: MemorySource): Promise<MemoryRegion> {
    return this.pd.regMr(source, { access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });
  }

  /** Posts receives. `rdma_post_recv`, `rdma_post_recvv` */
  postRecv(requests: ReceiveRequest | readonly ReceiveRequest[]): void {
    this.#requireQp().postRecv(requests);
  }

  /**
   * Posts requests of any opcode. `rdma_post_send`, `rdma_post_read`, `rdma_post_write`, `rdma_post_ud_send`, and their forms with
   * element lists
   */
  postSend(requests: SendRequest | readonly SendRequest[]): void {
    this.#requireQp().postSend(requests);
  }

  /** The next completion of a send request, failed or not. `rdma_get_send_comp`, without blocking. @throws as {@link CompletionQueue.wait} */
  getSendComp(options: CompletionWaitOptions = {}): Promise<WorkCompletion> {
    return nextOf(this.#requireQp().sendCq, options);
  }

  /** The next completion of a receive, failed or not. `rdma_get_recv_comp`, without blocking. @throws as {@link CompletionQueue.wait} */
  getRecvComp(options: CompletionWaitOptions = {}): Promise<WorkCompletion> {
    return nextOf(this.#requireQp().recvCq, options);
  }

  /** What may be wrong where the system says no more than EINVAL. */
  protected abstract invalidAdvice(): string;

  #requireQp(): QueuePair {
    const { qp } = this;
    if (qp !== undefined) return qp;
    throw new RdmaError('ERR_RDMA_INVALID_STATE', `${this.label} has no queue pair: createQp() first`);
  }
}

async function nextOf(cq: CompletionQueue, options: CompletionWaitOptions): Promise<WorkCompletion> {
  for (;;) {
    const [completion] = cq.poll(1);
    if (completion !== undefined) return completion;
    await cq.wait(options);
  }
}
