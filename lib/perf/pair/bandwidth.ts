import { CompletionRing } from '../../ring/completion-ring.js';
import { SendRing } from '../../ring/send-ring.js';
import { Access } from '../../verbs/constants.js';
import { integer } from '../../verbs/validate.js';
import { pairDepth, type EndpointPair } from './endpoint-pair.js';
import { defaultTiming, type Timing } from './timing.js';
import { Sender, type SenderFlow } from '../loops/sender.js';
import { rate } from '../statistics.js';
import { Watchdog } from './watchdog.js';

export interface BandwidthOptions extends Timing {
  /** Bytes of a message, from 1. */
  size: number;
  /** Messages outstanding at the most, 1 to 128. By default as many as make 512 KiB, and 2 at the least. */
  window?: number;
}

export interface Bandwidth {
  size: number;
  window: number;
  messages: number;
  /** From the first post to the last completion. */
  seconds: number;
  mebibytesPerSecond: number | null;
  messagesPerSecond: number | null;
}

const KiB = 2 ** 10;
const MiB = 2 ** 20;

/**
 * 512 KiB are enough to fill 400 Gb/s over a round trip of 10 µs; and what is outstanding at the end, which must be
 * waited for, takes no long time on a slow device.
 */
export function defaultWindow(size: number): number {
  return Math.min(Math.max(Math.floor((512 * KiB) / size), 2), pairDepth);
}

/**
 * Bandwidth of RDMA WRITE from end a to end b: an average, of messages of one size from and to the same memory, as
 * ib_write_bw measures it. Polls without a pause. After a failure the pair can only be closed.
 *
 * @throws RangeError; WorkCompletionError for a message that failed; RdmaError `ERR_RDMA_TIMEOUT`
 */
export async function measureWriteBandwidth(
  { a, b }: EndpointPair,
  options: BandwidthOptions,
): Promise<Bandwidth> {
  const size = integer('size', options.size, 1, a.context.queryPort(a.port).maxMsgSz);
  const window = integer('window', options.window ?? defaultWindow(size), 1, pairDepth);
  const { duration, warmUp, stallTimeout } = { ...defaultTiming, ...options };
  const source = await a.pd.regMr(size);
  const target = await b.pd.regMr(size, { access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });

  const ring = new SendRing(a.qp);
  const remote = target.remote();
  const writes = {
    flow: { ring, write: (flags: number) => ring.rdmaWrite(0, source, 0, size, remote, 0, flags) },
    completions: new CompletionRing(a.cq),
    size,
    window,
    stallTimeout,
  };
  stream(writes, warmUp, 1);
  const { messages, seconds } = stream(writes, duration, window);

  source.close();
  target.close();
  return {
    size,
    window,
    messages,
    seconds,
    mebibytesPerSecond: rate((messages * size) / MiB, seconds),
    messagesPerSecond: rate(messages, seconds),
  };
}

interface Writes {
  flow: SenderFlow;
  completions: CompletionRing;
  size: number;
  window: number;
  stallTimeout: number;
}

/** Writes for so many milliseconds, and so many messages at least; waits for the last completion. */
function stream(
  { flow, completions, size, window, stallTimeout }: Writes,
  duration: number,
  least: number,
): { messages: number; seconds: number } {
  const sender = new Sender([flow], { messages: Infinity, window, signalEvery: Math.ceil(window / 8) });
  const start = performance.now();
  let now = start;
  const watchdog = new Watchdog(stallTimeout, () => `${sender.outstanding} writes of ${size} bytes`);
  for (let stopped = false; !stopped || !sender.done;) {
    if (!stopped && now - start >= duration && sender.posted >= least) {
      sender.stop();
      stopped = true;
    }
    sender.fill();
    const count = completions.poll();
    now = performance.now();
    for (let i = 0; i < count; ++i) {
      if (completions.status(i) !== 0) throw completions.completion(i).error!;
      sender.complete(0, now);
    }
    if (count > 0) watchdog.feed(now);
    else watchdog.check(now);
  }
  return { messages: sender.completed, seconds: (now - start) / 1000 };
}
