import { CompletionRing } from '../../ring/completion-ring.js';
import { cqModerationFor } from '../options.js';
import { Timeline } from '../peak.js';
import { GRH_BYTES } from '../plan.js';
import { bandwidthOf, type Bandwidth } from '../results.js';
import { ProgressReporter, SampleTime, type Scene } from './measurement.js';
import { Pace } from './pace.js';
import { RECEIVE } from './ping-pong-end.js';
import { Receiver } from './receiver.js';
import { requestWriter, spacingOf } from './requests.js';
import { Sender } from './sender.js';

/** So many messages have their times kept, for the peak. */
const mostForPeak = 20_000;
/** Milliseconds in which what is on its way may still come when an unreliable sender says that it has finished. */
const lateArrival = 300;

/** Bandwidth with messages of one size: sends, receives, or both. */
export class BandwidthMeasurement {
  readonly #scene: Scene;
  readonly #size: number;
  readonly #completions: CompletionRing;
  readonly #sender: Sender | undefined;
  readonly #receiver: Receiver | undefined;
  readonly #timeline: Timeline | undefined;
  readonly #header: number;
  readonly #sent: Counted;
  readonly #came: Counted;
  #stopped = false;

  constructor(scene: Scene, size: number) {
    const { settings, endpoint, exchange, agreement } = scene;
    const { iterations, bidirectional, verb, queuePairs, txDepth, connection } = settings;
    this.#scene = scene;
    this.#size = size;
    this.#completions = new CompletionRing(endpoint.cq);
    this.#header = connection === 'ud' ? GRH_BYTES : 0;
    this.#sent = new Counted(new SampleTime(settings));
    this.#came = new Counted(new SampleTime(settings));
    const client = exchange.role === 'client';
    if (client || bidirectional) {
      const spacing = spacingOf(settings, size, agreement);
      const kept = iterations * queuePairs;
      if (settings.peak && kept <= mostForPeak) this.#timeline = new Timeline(kept);
      this.#sender = new Sender(
        endpoint.flows.map((flow, i) => ({
          ring: flow.sends,
          write: requestWriter(flow, i, settings, size, spacing),
        })),
        {
          messages: iterations,
          window: txDepth,
          signalEvery: cqModerationFor(settings, size),
          timeline: this.#timeline,
        },
      );
    }
    if (verb === 'send' && (!client || bidirectional)) {
      this.#receiver = new Receiver(endpoint.flows, {
        messages: iterations,
        depth: settings.rxDepth,
        length: size + this.#header,
      });
    }
  }

  /** What must be there before the peer may begin. */
  prepare(): void {
    this.#receiver?.fill();
  }

  /** @throws WorkCompletionError; RdmaError `ERR_RDMA_PEER_LOST`, `ERR_RDMA_TIMEOUT`; AbortError */
  async run(): Promise<void> {
    const { settings, endpoint, exchange, signal } = this.#scene;
    const reporter = new ProgressReporter(this.#scene, this.#size, this.#expected());
    const pace = new Pace({
      cq: endpoint.cq,
      events: settings.events,
      stallTimeout: settings.stallTimeout,
      exchange,
      signal,
      outstanding: () => this.#outstanding(),
      onReport: (now) => reporter.report(this.#messages(), now),
    });
    let progress = performance.now();
    for (;;) {
      let posted = 0;
      if (this.#maySend()) {
        posted = this.#sender!.fill();
        this.#sent.time.begin(this.#sender!.firstPost);
      }
      this.#receiver?.fill();
      const count = this.#completions.poll();
      const now = performance.now();
      if (count > 0) this.#take(count, (progress = now));
      if (this.#finished(now, now - progress)) return;
      if (this.#sent.time.limited) pace.wakeAt = this.#stopped ? Infinity : this.#sent.time.end;
      // While there is room for more, nothing may be on its way that makes a completion.
      const pause = count + posted > 0 ? pace.found(now) : pace.nothing();
      if (pause) await pause;
    }
  }

  /** What went out of this end; undefined where it sends nothing. */
  sent(): Bandwidth | undefined {
    const sender = this.#sender;
    if (sender === undefined) return undefined;
    if (this.#sent.time.limited) return this.#sent.bandwidth(this.#size, performance.now());
    const seconds = (sender.lastCompletion - sender.firstPost) / 1000;
    return bandwidthOf(this.#size, sender.completed, seconds, this.#timeline?.peak() ?? null);
  }

  /** What came to this end; undefined where it receives nothing. */
  received(): Bandwidth | undefined {
    const receiver = this.#receiver;
    if (receiver === undefined) return undefined;
    if (this.#came.time.limited) return this.#came.bandwidth(this.#size, performance.now());
    // When the first one was sent is not known here: the time is that of all others.
    const seconds = (receiver.last - receiver.first) / 1000;
    return {
      ...bandwidthOf(this.#size, Math.max(receiver.received - 1, 0), seconds, null),
      messages: receiver.received,
    };
  }

  /** Messages that an unreliable connection has lost; undefined where nobody can tell. */
  lost(): number | undefined {
    const receiver = this.#receiver;
    return receiver === undefined || receiver.expected === Infinity
      ? undefined
      : receiver.expected - receiver.received;
  }

  /** In a game of sends both ways the server begins when the client has: its receives are there then. */
  #maySend(): boolean {
    if (this.#sender === undefined) return false;
    const { exchange, settings } = this.#scene;
    return exchange.role === 'client' || settings.verb !== 'send' || this.#receiver!.received > 0;
  }

  #take(count: number, now: number): void {
    const completions = this.#completions;
    for (let i = 0; i < count; ++i) {
      if (completions.status(i) !== 0) throw completions.completion(i).error!;
      const place = completions.id(i);
      if ((completions.opcode(i) & RECEIVE) === 0) {
        this.#sent.add(this.#sender!.complete(place, now), now);
      } else {
        this.#receiver!.receive(place, completions.byteLength(i) - this.#header, now);
        this.#came.time.begin(now);
        this.#came.add(1, now);
      }
    }
  }

  #finished(now: number, idle: number): boolean {
    const { settings } = this.#scene;
    return settings.duration < Infinity ? this.#timeOver(now) : this.#allDone(idle);
  }

  #allDone(idle: number): boolean {
    const { settings, exchange } = this.#scene;
    if (this.#sender?.done === false) return false;
    const receiver = this.#receiver;
    if (receiver === undefined || receiver.done) return true;
    // What was lost will not come.
    const patience = exchange.heard ? lateArrival : settings.stallTimeout;
    return settings.connection !== 'rc' && receiver.received > 0 && idle >= patience;
  }

  #timeOver(now: number): boolean {
    const { settings, exchange } = this.#scene;
    const sender = this.#sender;
    if (sender !== undefined && !this.#stopped && this.#sent.time.over(now)) {
      sender.stop();
      this.#stopped = true;
    }
    // A receiver of the peer's may have gone by its own clock: what it has not taken then, it never will.
    const sent = sender === undefined || (this.#stopped && (sender.done || settings.verb === 'send'));
    const came = this.#receiver === undefined || exchange.role === 'client' || exchange.heard;
    return sent && came;
  }

  #messages(): number {
    return (this.#sender?.completed ?? 0) + (this.#receiver?.received ?? 0);
  }

  #expected(): number {
    const { iterations, queuePairs } = this.#scene.settings;
    return iterations * queuePairs * (this.#sender !== undefined && this.#receiver !== undefined ? 2 : 1);
  }

  #outstanding(): string {
    const { verb } = this.#scene.settings;
    const parts = [];
    if (this.#sender) parts.push(`${this.#sender.outstanding} ${verb}s of ${this.#size} bytes`);
    if (this.#receiver) {
      const { expected, received } = this.#receiver;
      parts.push(
        `${expected === Infinity ? 'messages' : expected - received} of ${this.#size} bytes to come`,
      );
    }
    return parts.join(' and ');
  }
}

/** Messages in the part of the time that counts. */
class Counted {
  #messages = 0;

  constructor(readonly time: SampleTime) {}

  add(messages: number, now: number): void {
    if (this.time.counts(now)) this.#messages += messages;
  }

  bandwidth(size: number, now: number): Bandwidth {
    return bandwidthOf(size, this.#messages, this.time.seconds(now), null);
  }
}
