import type { Endpoint } from '../endpoint.js';
import type { PerfProgress, Settings } from '../options.js';
import type { Exchange } from '../wire/exchange.js';
import type { Agreement } from '../wire/opening.js';

/** What all sizes of a session have in common. */
export interface Scene {
  settings: Settings;
  endpoint: Endpoint;
  agreement: Agreement;
  exchange: Exchange;
  signal: AbortSignal | undefined;
  onProgress: ((progress: PerfProgress) => void) | undefined;
}

/** The part of a time that counts; all of it where messages are counted instead. In milliseconds. */
export class SampleTime {
  readonly #duration: number;
  readonly #margin: number;
  #start = Infinity;

  constructor({ duration, margin }: Settings) {
    this.#duration = duration;
    this.#margin = margin;
  }

  get limited(): boolean {
    return this.#duration < Infinity;
  }

  /** Begins it, unless it has begun. */
  begin(now: number): void {
    if (this.#start === Infinity) this.#start = now;
  }

  /** Infinity before it has begun. */
  get end(): number {
    return this.#start + this.#duration;
  }

  over(now: number): boolean {
    return now >= this.end;
  }

  counts(now: number): boolean {
    return !this.limited || (now >= this.#start + this.#margin && now <= this.end - this.#margin);
  }

  /** Seconds that count, of those until now. */
  seconds(now: number): number {
    const until = Math.min(now, this.end - this.#margin);
    return Math.max(until - this.#start - this.#margin, 0) / 1000;
  }
}

/** Tells how far it is, with the rate since it last did. */
export class ProgressReporter {
  readonly #scene: Scene;
  readonly #size: number;
  readonly #of: number;
  #at = performance.now();
  #messages = 0;

  constructor(scene: Scene, size: number, of: number) {
    this.#scene = scene;
    this.#size = size;
    this.#of = of;
  }

  report(messages: number, now: number): void {
    const seconds = (now - this.#at) / 1000;
    this.#scene.onProgress?.({
      size: this.#size,
      messages,
      ...(this.#of < Infinity && { of: this.#of }),
      messagesPerSecond: messages === 0 || seconds <= 0 ? null : (messages - this.#messages) / seconds,
    });
    this.#at = now;
    this.#messages = messages;
  }
}
