import { CompletionRing } from '../ring/completion-ring.js';
import { ReceiveRing } from '../ring/receive-ring.js';
import { SendRing } from '../ring/send-ring.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import { integer } from '../verbs/validate.js';
import type { Endpoint, EndpointPair } from './endpoint-pair.js';
import { summarize, type Summary } from './statistics.js';
import { defaultTiming, type Timing } from './timing.js';
import { Watchdog } from './watchdog.js';

export interface LatencyOptions extends Timing {
  /** Bytes of a message, from 1. */
  size: number;
}

export interface Latency {
  size: number;
  rounds: number;
  /** One way, in microseconds: half of each round trip. */
  microseconds: Summary;
}

/** `enum ibv_wc_opcode`: receives have this bit. */
const RECEIVE = 128;
/** Rounds that are counted however long they take. */
const leastRounds = 3;

/**
 * Latency of SEND: ping-pong between the ends, half of the time from one post to the next, as ib_send_lat measures it;
 * but of all rounds, the slowest too. Polls both ends without a pause. After a failure the pair can only be closed.
 *
 * @throws RangeError; WorkCompletionError for a message that failed; RdmaError `ERR_RDMA_TIMEOUT`
 */
export async function measureSendLatency(pair: EndpointPair, options: LatencyOptions): Promise<Latency> {
  const { context, port } = pair.a;
  const size = integer('size', options.size, 1, context.queryPort(port).maxMsgSz);
  const { duration, warmUp, stallTimeout } = { ...defaultTiming, ...options };
  const regions = await Promise.all([pair.a, pair.b].map((end) => end.pd.regMr(2 * size)));
  const [a, b] = [pair.a, pair.b].map((end, i) => new Player(end, regions[i]!, size)) as [Player, Player];

  pingPong(a, b, { duration: warmUp, least: 1, stallTimeout });
  const samples = pingPong(a, b, { duration, least: leastRounds, stallTimeout });

  for (const region of regions) region.close();
  return { size, rounds: samples.length, microseconds: summarize(samples) };
}

interface Play {
  /** In milliseconds. */
  duration: number;
  /** Rounds at the least. */
  least: number;
  /** In milliseconds. */
  stallTimeout: number;
}

/** Plays, and returns half of each round trip in microseconds. Nothing is left outstanding. */
function pingPong(a: Player, b: Player, { duration, least, stallTimeout }: Play): number[] {
  const samples: number[] = [];
  const start = performance.now();
  let posted = start;
  for (let last = false; !last;) {
    last = posted - start >= duration && samples.length + 1 >= least;
    b.receive();
    a.receive();
    a.send();
    pollUntil(() => b.ready, b, a, stallTimeout);
    b.send();
    pollUntil(() => a.ready, a, b, stallTimeout);
    const now = performance.now();
    samples.push(((now - posted) * 1000) / 2);
    posted = now;
  }
  pollUntil(() => b.ready, b, a, stallTimeout);
  return samples;
}

/** Polls both, since the failure of a message shows at its sender. */
function pollUntil(done: () => boolean, first: Player, second: Player, stallTimeout: number): void {
  const watchdog = new Watchdog(stallTimeout, () => `${first.outstanding}; ${second.outstanding}`);
  while (!done()) {
    if (first.poll() + second.poll() === 0) watchdog.check(performance.now());
  }
}

/** One end of the game. */
class Player {
  readonly #sends: SendRing;
  readonly #receives: ReceiveRing;
  readonly #completions: CompletionRing;
  readonly #region: MemoryRegion;
  readonly #size: number;
  readonly #name: string;
  #sending = 0;
  #receiving = 0;

  /** @param region room for two messages: the one that is sent and the one that is received */
  constructor({ qp, cq, context }: Endpoint, region: MemoryRegion, size: number) {
    this.#sends = new SendRing(qp);
    this.#receives = new ReceiveRing(qp);
    this.#completions = new CompletionRing(cq);
    this.#region = region;
    this.#size = size;
    this.#name = `${qp.label} of ${context.device.name}`;
  }

  /** As in ib_send_lat: its message has come, and its own last one is acknowledged. */
  get ready(): boolean {
    return this.#receiving === 0 && this.#sending === 0;
  }

  get outstanding(): string {
    return `${this.#sending} sends and ${this.#receiving} receives of ${this.#size} bytes at ${this.#name}`;
  }

  receive(): void {
    this.#receives.receive(0, this.#region, this.#size, this.#size);
    this.#receiving += this.#receives.post();
  }

  send(): void {
    this.#sends.send(0, this.#region, 0, this.#size);
    this.#sending += this.#sends.post();
  }

  /** @returns how many completions there were */
  poll(): number {
    const completions = this.#completions;
    const count = completions.poll();
    for (let i = 0; i < count; ++i) {
      if (completions.status(i) !== 0) throw completions.completion(i).error!;
      if ((completions.opcode(i) & RECEIVE) === 0) --this.#sending;
      else --this.#receiving;
    }
    return count;
  }
}
