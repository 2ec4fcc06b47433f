import { CompletionQueue, type CompletionQueueOptions } from './completion-queue.js';
import type { CompletionChannel } from './completion-channel.js';
import { WcFlags } from './constants.js';
import type { Context } from './context.js';
import { explaining } from './errors.js';
import { native, type NativeCompletionQueue } from './native.js';
import type { ProtectionDomain } from './protection-domain.js';
import { integer } from './validate.js';
import type { WorkCompletion } from './work-completion.js';

export interface ExtendedCompletionQueueOptions extends CompletionQueueOptions {
  /** What each completion is to tell: flags of {@link WcFlags}, or-ed; `WcFlags.STANDARD` by default. `QP_NUM` is added. */
  wcFlags?: number;
  /** The promise that one thread at a time polls it; false by default. */
  singleThreaded?: boolean;
  /** Overruns go unnoticed; false by default. This library never overruns a queue. */
  ignoreOverrun?: boolean;
  /** A parent domain whose thread the queue belongs to. */
  parentDomain?: ProtectionDomain;
}

/**
 * A completion with what only an extended queue tells; each is there where the queue was asked for it. rxe has none of these:
 * how they are read is checked, and they were not run on a NIC.
 */
export interface ExtendedWorkCompletion extends WorkCompletion {
  /** Ticks of the device's clock (`hcaCoreClock` kHz) at which it completed. `ibv_wc_read_completion_ts` */
  completionTs?: bigint;
  /** Nanoseconds since 1970. `ibv_wc_read_completion_wallclock_ns` */
  completionWallclockNs?: bigint;
  /** The VLAN tag that was taken off. `ibv_wc_read_cvlan` */
  cvlan?: number;
  /** The tag of the flow rule that matched. `ibv_wc_read_flow_tag` */
  flowTag?: number;
  /** The tag of the message and its private data. `ibv_wc_read_tm_info` */
  tmInfo?: { tag: bigint; priv: number };
}

/** `enum ibv_create_cq_attr_flags`. */
const SINGLE_THREADED = 1;
const IGNORE_OVERRUN = 2;
const FIELD_WORDS = 6;

/**
 * A completion queue that tells more of each completion (`struct ibv_cq_ex`). Made by {@link Context.createCqEx}. It is one
 * for everything else too: wait for it, iterate over it, use it in rings.
 */
export class ExtendedCompletionQueue extends CompletionQueue {
  /** Flags of {@link WcFlags}. */
  readonly wcFlags: number;

  /** @internal */
  constructor(
    made: NativeCompletionQueue,
    context: Context,
    channel: CompletionChannel | null | undefined,
    wcFlags: number,
    parentDomain?: ProtectionDomain,
  ) {
    super(made, context, channel, parentDomain);
    this.wcFlags = wcFlags;
  }

  override get label(): string {
    return `extended ${super.label}`;
  }

  /**
   * Takes up to `limit` completions with all that the queue was created for. `ibv_start_poll`, `ibv_wc_read_*`,
   * `ibv_end_poll`; one completion at a time, since the provider of rxe in rdma-core 44 loses some otherwise.
   */
  pollEx(limit = 16): ExtendedWorkCompletion[] {
    integer('limit', limit, 1, 2 ** 31 - 1);
    const words = explaining(
      { device: this.context.device.name },
      () => '',
      () => native().extendedPoll(this.native, limit),
    );
    const completions: ExtendedWorkCompletion[] = [];
    for (let i = 0; i * FIELD_WORDS < words.length; ++i) {
      completions.push(this.#read(i, words.subarray(i * FIELD_WORDS)));
    }
    return completions;
  }

  #read(index: number, words: BigUint64Array): ExtendedWorkCompletion {
    const completion: ExtendedWorkCompletion = this.completionAt(index);
    if (completion.error !== undefined) return completion;
    const has = (flag: number) => (this.wcFlags & flag) !== 0;
    const [timestamp, wallclock, tag, priv, flowTag, cvlan] = words;
    if (has(WcFlags.COMPLETION_TIMESTAMP)) completion.completionTs = timestamp!;
    if (has(WcFlags.COMPLETION_TIMESTAMP_WALLCLOCK)) completion.completionWallclockNs = wallclock!;
    if (has(WcFlags.CVLAN)) completion.cvlan = Number(cvlan);
    if (has(WcFlags.FLOW_TAG)) completion.flowTag = Number(flowTag);
    if (has(WcFlags.TM_INFO)) completion.tmInfo = { tag: tag!, priv: Number(priv) };
    return completion;
  }
}

/** @internal `ibv_create_cq_ex` flags of the options. */
export function createFlags({ singleThreaded, ignoreOverrun }: ExtendedCompletionQueueOptions): number {
  return (singleThreaded === true ? SINGLE_THREADED : 0) | (ignoreOverrun === true ? IGNORE_OVERRUN : 0);
}
