// The queue pair of a connection with its memory and its completions: what lies between the protocol and verbs.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CmId } from '../cm/id.js';
import { CompletionRing } from '../ring/completion-ring.js';
import { ReceiveRing } from '../ring/receive-ring.js';
import { SendRing } from '../ring/send-ring.js';
import type { CompletionQueue } from '../verbs/completion-queue.js';
import type { RdmaError, WorkCompletionError } from '../verbs/errors.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { NetError, requestFailure } from './errors.js';
import { RESERVE, type Settings } from './options.js';
import { Slabs } from './slabs.js';

/** Requests for the peer's memory that may be outstanding. */
export const MOST_OPERATIONS = 64;
/** Completions that are taken before what they mean is acted on. */
const BATCH = 32;
/** Completions after which the event loop goes round: two megabytes in frames of the usual size. */
const TURN = 128;
/** Turns of the event loop in which it looks once more before it asks for an event and sleeps, which costs more. */
const LOOKS = 2;

/** What a request is, in the upper bits of its identifier. */
const KIND_BITS = 28;
const Kind = { receive: 0, frame: 1, operation: 2 } as const;
const PLACE = 2 ** KIND_BITS - 1;

/** What a link tells. */
export interface LinkListener {
  /** A frame lies in that slot. */
  frame(slot: number, bytes: number): void;
  /** The frame from that slab has arrived. */
  arrived(slab: number): void;
  /** All completions that there were have been told of. */
  batchEnd(): void;
  failed(error: Error): void;
}

/** One end of a connection, without a protocol: slots where frames come to, slabs where they leave from, and operations. */
export class Link {
  readonly id: CmId;
  readonly pd: ProtectionDomain;
  readonly slabs: Slabs;
  readonly sends: SendRing;
  readonly #qp: QueuePair;
  readonly #cq: CompletionQueue;
  readonly #receives: ReceiveRing;
  readonly #completions: CompletionRing;
  readonly #operations: (((error?: Error) => void) | undefined)[] = [];
  readonly #freeOperations: number[] = [];
  readonly #owned = new Set<MemoryRegion>();
  readonly #underWay = new Set<Promise<unknown>>();
  #listener: LinkListener | undefined;
  #failure: Error | undefined;
  #ended = false;
  #scheduled = false;
  #closing: Promise<void> | undefined;
  /** Completions so far: each is a sign of the peer. */
  signs = 0;

  private constructor(id: CmId, pd: ProtectionDomain, cq: CompletionQueue, qp: QueuePair, slabs: Slabs) {
    this.id = id;
    this.pd = pd;
    this.slabs = slabs;
    this.#cq = cq;
    this.#qp = qp;
    this.sends = new SendRing(qp);
    this.#receives = new ReceiveRing(qp);
    this.#completions = new CompletionRing(cq);
    for (let slot = 0; slot < slabs.slots; ++slot) this.#receive(slot);
    this.postReceives();
  }

  /** Makes all that a connection needs, on an identifier that has a device. Closes nothing where it fails: the identifier's owner does. */
  static async open(id: CmId, pd: ProtectionDomain, settings: Settings): Promise<Link> {
    const slots = settings.slots + RESERVE;
    const maxSendWr = slots + MOST_OPERATIONS;
    const slabs = await Slabs.allocate(pd, settings);
    try {
      const cq = id.context.createCqFor(id, { cqe: maxSendWr + slots });
      const qp = id.createQp({
        pd,
        cq,
        maxSendWr,
        maxRecvWr: slots,
        descriptors: Math.max(maxSendWr, slots),
      });
      return new Link(id, pd, cq, qp, slabs);
    } catch (error) {
      slabs.mr.close();
      throw error;
    }
  }

  /** Begins to tell what happens, once whoever has made the connection had time to listen to it. */
  start(listener: LinkListener): void {
    this.#listener = listener;
    setImmediate(() => void this.#run(listener));
  }

  ref(): void {
    this.#cq.ref();
  }

  unref(): void {
    this.#cq.unref();
  }

  /** Whether requests can be posted. */
  get usable(): boolean {
    return this.#failure === undefined && !this.#ended && this.#closing === undefined;
  }

  /** A slot may take a frame again, once {@link postReceives} is called. */
  giveBack(slot: number): void {
    if (this.usable) this.#receive(slot);
  }

  postReceives(): void {
    this.#posting(() => this.#receives.post());
  }

  /** Writes the request for a frame; {@link post} posts it. */
  send(slab: number, bytes: number): void {
    if (!this.usable) return;
    const { mr } = this.slabs;
    this.sends.send(slab | (Kind.frame << KIND_BITS), mr, this.slabs.slabAt(slab), bytes);
  }

  /** The identifier of an operation, for {@link sends}; `done` is called when it has ended. */
  begin(done: (error?: Error) => void): number {
    const place = this.#freeOperations.pop() ?? this.#operations.length;
    this.#operations[place] = done;
    return place | (Kind.operation << KIND_BITS);
  }

  post(): void {
    this.#scheduled = false;
    this.#posting(() => this.sends.post());
  }

  /** Posts what is written in this turn with one call. */
  postSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.post());
  }

  /** Work on the protection domain that must have ended before it is closed. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const forget = () => this.#underWay.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Memory that is closed with the connection. */
  own(mr: MemoryRegion): MemoryRegion {
    for (const other of this.#owned) if (other.closed) this.#owned.delete(other);
    this.#owned.add(mr);
    return mr;
  }

  /** The connection is no more: tells of all that has come before, and then of nothing. */
  end(): void {
    if (this.#ended || this.#listener === undefined) return;
    this.#ended = true;
    while (this.#take(this.#listener) > 0);
  }

  /** Ends all: requests, then memory, then the identifier. The peer hears of it. */
  close(reason: Error): Promise<void> {
    return (this.#closing ??= this.#close(reason));
  }

  async #close(reason: Error): Promise<void> {
    await this.#qp.closeAsync();
    for (const done of this.#operations.splice(0)) done?.(reason);
    this.#cq.close();
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    for (const mr of [this.slabs.mr, ...this.#owned]) mr.close();
    await this.id.closeAsync({ cascade: true });
  }

  async #run(listener: LinkListener): Promise<void> {
    try {
      let [taken, fruitless] = [0, 0];
      while (!this.#ended && !this.#cq.closed) {
        const count = this.#take(listener);
        if (count > 0) listener.batchEnd();
        if (this.#failure !== undefined) return this.#tell(listener);
        taken += count;
        fruitless = count > 0 ? 0 : fruitless + 1;
        if (fruitless > LOOKS) {
          await this.#cq.wait();
          fruitless = 0;
        } else if (fruitless > 0 || taken >= TURN) {
          taken = 0;
          await nextTurn();
        } else {
          await Promise.resolve(); // those who wait for what has come go on first
        }
      }
    } catch (error) {
      if ((error as RdmaError).code === 'ERR_RDMA_CLOSED') return;
      this.#failure ??= error as Error;
      this.#tell(listener);
    }
  }

  /** What came before the failure counts. */
  #tell(listener: LinkListener): void {
    if (this.#ended) return;
    this.end();
    listener.failed(this.#failure!);
  }

  #take(listener: LinkListener): number {
    if (this.#cq.closed) return 0;
    const completions = this.#completions;
    const count = completions.poll(BATCH);
    for (let i = 0; i < count; ++i) {
      const id = completions.id(i);
      const place = id & PLACE;
      const kind = id >>> KIND_BITS;
      if (completions.status(i) !== 0) {
        this.#requestFailed(completions.completion(i).error!, kind === Kind.operation ? place : undefined);
        continue;
      }
      ++this.signs;
      if (kind === Kind.receive) listener.frame(place, completions.byteLength(i));
      else if (kind === Kind.frame) listener.arrived(place);
      else this.#finish(place);
    }
    return count;
  }

  #finish(place: number, error?: Error): void {
    const done = this.#operations[place];
    this.#operations[place] = undefined;
    this.#freeOperations.push(place);
    done?.(error);
  }

  #requestFailed(error: WorkCompletionError, operation: number | undefined): void {
    const failure = requestFailure(error);
    // What was flushed ends when the queue pair is closed, with the reason of the whole.
    if (operation !== undefined && error.status !== 'wrFlushErr') this.#finish(operation, failure);
    this.#failure ??= failure;
  }

  #receive(slot: number): void {
    const { mr, slabBytes } = this.slabs;
    this.#receives.receive(slot, mr, slot * slabBytes, slabBytes);
  }

  #posting(post: () => number): void {
    if (!this.usable) return;
    try {
      post();
    } catch (error) {
      const text = `the connection has failed: ${(error as Error).message}`;
      this.#failure = new NetError('ECONNRESET', text, { cause: error });
      queueMicrotask(() => this.#listener && this.#tell(this.#listener));
    }
  }
}
