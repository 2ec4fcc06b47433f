import { CompletionRing } from '../../ring/completion-ring.js';
import type { Flow } from '../endpoint.js';
import { GRH_BYTES } from '../plan.js';
import { samplesFor, type Samples } from '../samples.js';
import { ProgressReporter, SampleTime, type Scene } from './measurement.js';
import { Pace } from './pace.js';
import { PingPongEnd } from './ping-pong-end.js';
import { requestWriter, spacingOf } from './requests.js';

/**
 * Latency of messages of one size. Sends and writes play ping-pong, of which half a round counts; of reads and atomics, which the
 * client does alone, all of it.
 */
export class LatencyMeasurement {
  readonly samples: Samples;
  readonly #scene: Scene;
  readonly #size: number;
  readonly #flow: Flow;
  readonly #end: PingPongEnd;
  readonly #time: SampleTime;
  readonly #pace: Pace;
  readonly #rounds: number;
  /** The message of the next round has come, and what was sent before is acknowledged. */
  readonly #answered = () => this.#end.received > this.#done && this.#acknowledged();
  readonly #acknowledged = () => this.#end.sending === 0;
  #posted = NaN;
  #done = 0;

  constructor(scene: Scene, size: number) {
    const { settings, endpoint, exchange, signal, agreement } = scene;
    const { iterations, connection, events, stallTimeout } = settings;
    const flow = endpoint.flows[0]!;
    this.#scene = scene;
    this.#size = size;
    this.#flow = flow;
    this.#rounds = iterations;
    this.#time = new SampleTime(settings);
    this.samples = samplesFor(iterations);
    this.#end = new PingPongEnd({
      sends: flow.sends,
      write: requestWriter(flow, 0, settings, size, spacingOf(settings, size, agreement)),
      receives: flow.receives,
      completions: new CompletionRing(endpoint.cq),
      mr: flow.mr,
      receiveAt: flow.receiveAt,
      receiveLength: size + (connection === 'ud' ? GRH_BYTES : 0),
      size,
      name: flow.qp.label,
    });
    const reporter = new ProgressReporter(scene, size, iterations);
    this.#pace = new Pace({
      cq: endpoint.cq,
      events,
      stallTimeout,
      exchange,
      signal,
      outstanding: () => this.#end.outstanding,
      onReport: (now) => reporter.report(this.#done, now),
    });
  }

  /** Rounds that were played to their end. */
  get rounds(): number {
    return this.#done;
  }

  /** What must be there before the peer may begin. */
  prepare(): void {
    const { settings } = this.#scene;
    if (settings.verb === 'send') this.#end.receive(Math.min(settings.rxDepth, this.#rounds));
  }

  /** @throws WorkCompletionError; RdmaError `ERR_RDMA_PEER_LOST`, `ERR_RDMA_TIMEOUT`; AbortError */
  async run(): Promise<void> {
    const { settings, exchange } = this.#scene;
    this.#pace.begin();
    if (settings.verb === 'send') {
      await (exchange.role === 'client' ? this.#serveSends() : this.#returnSends());
    } else if (settings.verb === 'write') {
      await this.#exchangeWrites();
    } else {
      await this.#fetch();
    }
  }

  /** Sends first. */
  async #serveSends(): Promise<void> {
    while (this.#done < this.#rounds) {
      this.#post(0.5);
      const came = this.#until(this.#answered);
      if (!(came === true || (await came))) return;
      ++this.#done;
    }
    this.#sample(performance.now(), 0.5);
  }

  async #returnSends(): Promise<void> {
    while (this.#done < this.#rounds) {
      const came = this.#until(this.#answered);
      if (!(came === true || (await came))) return;
      this.#post(0.5);
      ++this.#done;
    }
    await this.#until(this.#acknowledged);
  }

  /**
   * The last byte of a message is its number, and who waits for it looks at that byte of its memory: nothing else tells that a write
   * has come. The server writes first.
   */
  async #exchangeWrites(): Promise<void> {
    const { mr, sendAt, receiveAt } = this.#flow;
    const lastByte = (at: number) =>
      new Uint8Array(mr.buffer.buffer, mr.buffer.byteOffset + at + this.#size - 1, 1);
    const [own, theirs] = [lastByte(sendAt), lastByte(receiveAt)];
    const written = () => Atomics.load(theirs, 0) === ((this.#done + 1) & 0xff);
    const client = this.#scene.exchange.role === 'client';
    while (this.#done < this.#rounds) {
      if (client) {
        const came = this.#until(written, false);
        if (!(came === true || (await came))) return;
      }
      own[0] = this.#done + 1;
      this.#post(0.5);
      const sent = this.#until(this.#acknowledged);
      if (!(sent === true || (await sent))) return;
      if (!client) {
        const came = this.#until(written, false);
        if (!(came === true || (await came))) return;
      }
      ++this.#done;
    }
    if (!client) this.#sample(performance.now(), 0.5);
  }

  async #fetch(): Promise<void> {
    while (this.#done < this.#rounds) {
      this.#posted = performance.now();
      this.#time.begin(this.#posted);
      this.#end.send();
      const came = this.#until(this.#acknowledged);
      if (!(came === true || (await came))) return;
      this.#sample(performance.now(), 1);
      ++this.#done;
    }
  }

  /** Sends the next message; the time since the last one is a sample. */
  #post(share: number): void {
    const now = performance.now();
    this.#time.begin(now);
    this.#sample(now, share);
    this.#posted = now;
    this.#end.send();
    const { settings } = this.#scene;
    const expected = this.#rounds - this.#end.received - this.#end.receiving;
    if (settings.verb === 'send' && this.#end.receiving < settings.rxDepth && expected > 0)
      this.#end.receive(1);
  }

  #sample(now: number, share: number): void {
    if (!Number.isNaN(this.#posted) && this.#time.counts(now)) {
      this.samples.add((now - this.#posted) * 1000 * share);
    }
  }

  /**
   * Waits until it is so, with what the completions say taken in; without awaiting anything as long as it comes soon. False when the
   * time is over, or the peer's time.
   *
   * @param completed whether a completion comes when it is so
   */
  #until(isSo: () => boolean, completed = true): true | Promise<boolean> {
    const pause = this.#lookFor(isSo, completed);
    return pause === true ? true : this.#wait(pause, isSo, completed);
  }

  async #wait(first: Promise<void> | false, isSo: () => boolean, completed: boolean): Promise<boolean> {
    for (let pause: Promise<void> | boolean = first; ; pause = this.#lookFor(isSo, completed)) {
      if (typeof pause === 'boolean') return pause;
      await pause;
    }
  }

  /** True when it is so, false when time is over; else what is to be awaited before the next look. */
  #lookFor(isSo: () => boolean, completed: boolean): boolean | Promise<void> {
    const limited = this.#time.limited;
    for (let looks = 0; ; ++looks) {
      // Where it is memory that tells, completions only say when something has failed.
      const count = completed || (looks & 63) === 63 ? this.#end.poll() : 0;
      if (isSo()) {
        const now = performance.now();
        if (limited && this.#time.over(now)) return false;
        const pause = this.#pace.found(now);
        return pause ?? true;
      }
      if (limited && this.#isOver(performance.now())) return false;
      const pause = count > 0 ? this.#pace.found(performance.now()) : this.#pace.nothing(completed);
      if (pause) return pause;
    }
  }

  #isOver(now: number): boolean {
    this.#pace.wakeAt = this.#time.end;
    return this.#scene.exchange.heard || this.#time.over(now);
  }
}
