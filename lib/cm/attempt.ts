import { abortError, RdmaError } from '../verbs/errors.js';
import type { Resource } from '../verbs/resource.js';
import { abortSignal, integer, options as checkOptions } from '../verbs/validate.js';
import type { CmEventType } from './constants.js';
import type { EventChannel } from './event-channel.js';
import type { DecodedCmEvent } from './events.js';
import { waitFor, type WaitPlan } from './wait.js';

/** How long to wait for the peer or the network. */
export interface CmWaitOptions {
  /** Ends the wait with an AbortError whose cause is the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds after which it gives up. */
  timeoutMs?: number;
}

const MOST_MS = 2 ** 31 - 1;

/** @internal @throws TypeError, RangeError; AbortError where the signal has been given already */
export function checkWait(options: CmWaitOptions): void {
  checkOptions('options', options);
  const { signal, timeoutMs } = options;
  if (timeoutMs !== undefined) integer('timeoutMs', timeoutMs, 1, MOST_MS);
  if (signal === undefined) return;
  abortSignal('signal', signal);
  if (signal.aborted) throw abortError(signal);
}

export interface AttemptPlan extends CmWaitOptions {
  /** What it is, for the texts. */
  what: string;
  /** Starts it. Its failure is that of the attempt. */
  start(this: void): void | Promise<void>;
  /** Any of these events is success. */
  wanted: readonly CmEventType[];
  /** Any of these is failure, with the error that goes with the event. */
  unwanted: readonly CmEventType[];
  /** Runs when no event is waited for any more, although none came: the time is over, or it was aborted. */
  givenUp(this: void): void;
  /** Milliseconds that the caller gave for the whole, where some of it is over. */
  asked?: number;
}

interface Pending {
  plan: AttemptPlan;
  /** An event that was waited for. */
  happened(outcome: DecodedCmEvent | Error): void;
  /** The end, whatever is still to come. */
  finish(outcome: Error): void;
}

/** The one operation of an identifier that is under way: it ends with an event, a failure, or the end of the time for it. */
export class Attempt {
  readonly #owner: Resource;
  readonly #channel: () => EventChannel;
  #pending: Pending | undefined;
  #starting: Promise<void> = Promise.resolve();

  constructor(owner: Resource, channel: () => EventChannel) {
    this.#owner = owner;
    this.#channel = channel;
  }

  /** Resolves when the call that has started the last one uses the identifier no more: after a deadline it may still. */
  get idle(): Promise<void> {
    return this.#starting;
  }

  get busy(): boolean {
    return this.#pending !== undefined;
  }

  /** @throws RdmaError `ERR_RDMA_BUSY` while another one is under way, `ERR_RDMA_TIMEOUT`; AbortError */
  run(plan: AttemptPlan): Promise<DecodedCmEvent> {
    const busy = this.#pending?.plan.what;
    if (busy !== undefined) {
      throw new RdmaError(
        'ERR_RDMA_BUSY',
        `${this.#owner.label}: ${busy} is under way: await it before ${plan.what}`,
      );
    }
    const wait: WaitPlan = {
      signal: plan.signal,
      timeoutMs: plan.timeoutMs,
      late: () =>
        new RdmaError(
          'ERR_RDMA_TIMEOUT',
          `${this.#owner.label}: ${plan.what} took longer than ${plan.asked ?? plan.timeoutMs} ms`,
        ),
      givenUp: () => {
        plan.givenUp();
        this.#pending = undefined;
      },
      hold: () => this.#channel().hold(this.#owner),
    };
    return waitFor(wait, (settle) => {
      const finish = (outcome: DecodedCmEvent | Error) => {
        if (this.#pending !== pending) return;
        this.#pending = undefined;
        settle(outcome);
      };
      // The event may come before the call on the other thread has ended, which still uses the identifier.
      let started = false;
      let early: DecodedCmEvent | Error | undefined;
      const pending: Pending = {
        plan,
        finish,
        happened: (outcome) => {
          if (started) finish(outcome);
          else early ??= outcome;
        },
      };
      this.#pending = pending;
      this.#starting = (async () => {
        try {
          await plan.start();
          started = true;
          if (early !== undefined) finish(early);
        } catch (error) {
          finish(early instanceof Error ? early : (error as Error));
        }
      })();
    });
  }

  /** Whether the event was waited for. */
  settle(event: DecodedCmEvent): boolean {
    const pending = this.#pending;
    if (pending === undefined) return false;
    if (event.error !== undefined && pending.plan.unwanted.includes(event.type))
      pending.happened(event.error);
    else if (pending.plan.wanted.includes(event.type)) pending.happened(event);
    else return false;
    return true;
  }

  /** Ends what is under way: no event can come any more. */
  fail(error: Error): void {
    this.#pending?.finish(error);
  }
}
