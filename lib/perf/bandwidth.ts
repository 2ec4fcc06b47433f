import { CompletionRing } from '../ring/completion-ring.js';
import { SendRing } from '../ring/send-ring.js';
import { Access } from '../verbs/constants.js';
import type { MemoryRegion, RemoteRegion } from '../verbs/memory-region.js';
import { integer } from '../verbs/validate.js';
import { pairDepth, type EndpointPair } from './endpoint-pair.js';
import { defaultTiming, type Timing } from './timing.js';
import { rate } from './statistics.js';
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

  const writer = new WindowedWriter(new SendRing(a.qp), new CompletionRing(a.cq), {
    source,
    target: target.remote(),
    size,
    window,
    stallTimeout,
  });
  writer.run(warmUp, 1);
  const { messages, seconds } = writer.run(duration, window);

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
  source: MemoryRegion;
  target: RemoteRegion;
  size: number;
  window: number;
  stallTimeout: number;
}

/** Keeps a window of writes outstanding. They are posted in batches, of which the last message makes a completion. */
class WindowedWriter {
  readonly #requests: SendRing;
  readonly #completions: CompletionRing;
  readonly #writes: Writes;
  readonly #batch: number;

  constructor(requests: SendRing, completions: CompletionRing, writes: Writes) {
    this.#requests = requests;
    this.#completions = completions;
    this.#writes = writes;
    this.#batch = Math.ceil(writes.window / 8);
  }

  /** Writes for so many milliseconds, and so many messages at least; waits for the last completion. */
  run(duration: number, least: number): { messages: number; seconds: number } {
    const { size, window, stallTimeout } = this.#writes;
    let posted = 0;
    let completed = 0;
    const start = performance.now();
    let now = start;
    const watchdog = new Watchdog(stallTimeout, () => `${posted - completed} writes of ${size} bytes`);
    const more = () => now - start < duration || posted < least;
    while (more() || completed < posted) {
      while (more() && posted - completed + this.#batch <= window) posted += this.#post();
      const ended = this.#poll() * this.#batch;
      completed += ended;
      now = performance.now();
      if (ended > 0) watchdog.feed(now);
      else watchdog.check(now);
    }
    return { messages: completed, seconds: (now - start) / 1000 };
  }

  #post(): number {
    const { source, target, size } = this.#writes;
    for (let i = 1; i < this.#batch; ++i) this.#requests.rdmaWrite(0, source, 0, size, target, 0, 0);
    this.#requests.rdmaWrite(0, source, 0, size, target, 0);
    return this.#requests.post();
  }

  #poll(): number {
    const count = this.#completions.poll();
    for (let i = 0; i < count; ++i) {
      if (this.#completions.status(i) !== 0) throw this.#completions.completion(i).error!;
    }
    return count;
  }
}
