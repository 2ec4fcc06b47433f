import { CompletionRing } from '../../ring/completion-ring.js';
import { ReceiveRing } from '../../ring/receive-ring.js';
import { SendRing } from '../../ring/send-ring.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import { integer } from '../../verbs/validate.js';
import type { Endpoint, EndpointPair } from './endpoint-pair.js';
import { PingPongEnd } from '../loops/ping-pong-end.js';
import { summarize, type Summary } from '../statistics.js';
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
  const [a, b] = [pair.a, pair.b].map((end, i) => playerOf(end, regions[i]!, size)) as [
    PingPongEnd,
    PingPongEnd,
  ];

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
function pingPong(a: PingPongEnd, b: PingPongEnd, { duration, least, stallTimeout }: Play): number[] {
  const samples: number[] = [];
  const start = performance.now();
  let posted = start;
  for (let last = false; !last;) {
    last = posted - start >= duration && samples.length + 1 >= least;
    b.receive(1);
    a.receive(1);
    a.send();
    pollUntil(() => isReady(b), b, a, stallTimeout);
    b.send();
    pollUntil(() => isReady(a), a, b, stallTimeout);
    const now = performance.now();
    samples.push(((now - posted) * 1000) / 2);
    posted = now;
  }
  pollUntil(() => isReady(b), b, a, stallTimeout);
  return samples;
}

/** Polls both, since the failure of a message shows at its sender. */
function pollUntil(done: () => boolean, first: PingPongEnd, second: PingPongEnd, stallTimeout: number): void {
  const watchdog = new Watchdog(stallTimeout, () => `${first.outstanding}; ${second.outstanding}`);
  while (!done()) {
    if (first.poll() + second.poll() === 0) watchdog.check(performance.now());
  }
}

/** @param region room for two messages: the one that is sent and the one that is received */
function playerOf({ qp, cq, context }: Endpoint, region: MemoryRegion, size: number): PingPongEnd {
  const sends = new SendRing(qp);
  return new PingPongEnd({
    sends,
    write: (flags) => sends.send(0, region, 0, size, flags),
    receives: new ReceiveRing(qp),
    completions: new CompletionRing(cq),
    mr: region,
    receiveAt: size,
    receiveLength: size,
    size,
    name: `${qp.label} of ${context.device.name}`,
  });
}

/** As in ib_send_lat: its message has come, and its own last one is acknowledged. */
function isReady({ receiving, sending }: PingPongEnd): boolean {
  return receiving === 0 && sending === 0;
}
