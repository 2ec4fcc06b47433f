// What is to be sent: messages that are copied into frames, announcements of long ones, and the end. Frames wait here for a credit.
import type { MemoryRegion } from '../verbs/memory-region.js';
import { Fifo } from './fifo.js';
import type { Link } from './link.js';
import type { SendCredits, Returns } from './credits.js';
import { NetError } from './errors.js';
import {
  ANNOUNCE_BYTES,
  FRAME_HEADER,
  FrameFlag,
  FrameType,
  RECORD_HEADER,
  writeAnnouncement,
  writeFrameHeader,
} from './protocol.js';
import type { OutgoingMemory } from './rendezvous.js';

/** While so many frames with messages are on their way, the next one waits until it is full: many small messages share it. */
const FRAMES_AT_ONCE = 4;
/** Long messages whose memory is made ready ahead. */
const PREPARED_AHEAD = 4;

const sentAlready = Promise.resolve();

interface Settled {
  resolve(this: void): void;
  reject(this: void, error: Error): void;
}

/** A message that waits. */
class Message {
  readonly data: Uint8Array;
  /** Registered memory that it is known to lie in. */
  readonly region: MemoryRegion | undefined;
  readonly sent: Promise<void>;
  /** Bytes of it that are in frames; -1 before the first. */
  copied = -1;
  /** Of one that is announced: where it lies, once it is ready. */
  memory: OutgoingMemory | undefined;
  preparing = false;
  #resolve!: () => void;
  #reject!: (error: Error) => void;

  constructor(data: Uint8Array, region: MemoryRegion | undefined) {
    this.data = data;
    this.region = region;
    this.sent = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(): void {
    this.#resolve();
  }

  reject(error: Error): void {
    void quiet(this.sent);
    this.#reject(error);
  }
}

/** A frame that is written, but for the counters of its header. */
interface Frame {
  slab: number;
  type: number;
  /** Bytes behind the header. */
  length: number;
}

export interface OutboxParts {
  link: Link;
  credits: SendCredits;
  returns: Returns;
  /** Bytes of a frame at the most, with its header. */
  frameBytes: number;
  eagerLimit: number;
  highWaterMark: number;
  /** How many announced messages of the peer were read, and whether its end has come: what the peer is to be told. */
  fetched(this: void): number;
  endCame(this: void): boolean;
  /** Makes the memory of a long message readable by the peer. */
  prepare(this: void, data: Uint8Array, region: MemoryRegion | undefined): Promise<OutgoingMemory>;
  /** What waited no longer does. */
  onDrain(this: void): void;
  /** All that was sent has arrived, and so has the end. */
  onFinished(this: void): void;
  onFailed(this: void, error: Error): void;
}

/** The sending half of a connection. */
export class Outbox {
  readonly #parts: OutboxParts;
  readonly #messages = new Fifo<Message>();
  readonly #frames = new Fifo<Frame>();
  readonly #announced = new Fifo<Message>();
  readonly #slabs: number[];
  readonly #small: number[];
  readonly #room: number;
  /** The frame that messages are being copied into. */
  #open: { slab: number; at: number; start: number } | undefined;
  #waiting = 0;
  #needDrain = false;
  #onTheirWay = 0;
  #scheduled = false;
  #ending: 'no' | 'asked' | 'written' | 'arrived' = 'no';
  #endSlab = -1;
  #toldFetched = 0;
  #toldEnd = false;
  #endThere = false;
  #controlOnTheirWay = 0;
  #fetchedByPeer = 0;
  #failure: Error | undefined;
  readonly #finished: Settled[] = [];

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    const { large, small } = parts.link.slabs;
    this.#slabs = Array.from({ length: large }, (_, i) => large - 1 - i);
    this.#small = small;
    this.#room = parts.frameBytes - FRAME_HEADER;
  }

  /** Bytes of messages that nothing was done with yet. */
  get waiting(): number {
    return this.#waiting;
  }

  get needDrain(): boolean {
    return this.#needDrain;
  }

  /** Whether the end was sent, or is to be. */
  get ending(): boolean {
    return this.#ending !== 'no';
  }

  /** Whether the peer has every message, for all that is known. */
  get delivered(): boolean {
    const inUse = this.#parts.link.slabs.large - this.#slabs.length - (this.#endSlab < 0 ? 0 : 1);
    return this.#messages.length === 0 && this.#announced.length === 0 && (inUse === 0 || this.#endThere);
  }

  /** Whether the peer knows all that it must, and nothing is on its way to it. */
  get quiet(): boolean {
    const told = this.#toldFetched === this.#parts.fetched() && this.#toldEnd === this.#parts.endCame();
    return told && this.#onTheirWay + this.#controlOnTheirWay + this.#frames.length === 0;
  }

  /** Whether the end has arrived, and every message was read. */
  get finished(): boolean {
    return this.#ending === 'arrived' && this.#announced.length === 0;
  }

  /** Resolves when `data` may be used again. */
  send(data: Uint8Array, region?: MemoryRegion): Promise<void> {
    if (this.#messages.length === 0 && data.length <= this.#parts.eagerLimit && this.#copyWhole(data)) {
      this.#schedule();
      return sentAlready;
    }
    const message = new Message(data, region);
    this.#messages.push(message);
    this.#waiting += data.length;
    if (this.#waiting >= this.#parts.highWaterMark) this.#needDrain = true;
    this.#fill();
    this.#schedule();
    return message.sent;
  }

  /** No more messages follow. Resolves when all have arrived. */
  end(): Promise<void> {
    if (this.#ending === 'no') this.#ending = 'asked';
    this.#fill();
    this.#schedule();
    if (this.finished) return sentAlready;
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => this.#finished.push({ resolve, reject }));
  }

  /** The frame from a slab has arrived at the peer. */
  arrived(slab: number): void {
    const { large } = this.#parts.link.slabs;
    if (slab >= large) {
      this.#small.push(slab);
      --this.#controlOnTheirWay;
    } else {
      --this.#onTheirWay;
      this.#slabs.push(slab);
      if (slab === this.#endSlab && this.#ending === 'written') {
        this.#ending = 'arrived';
        this.#endSlab = -1;
      }
    }
  }

  /** The peer says that it has the end. */
  endArrived(): void {
    this.#endThere = true;
  }

  /** What the peer says of the announced messages that it has read. False where it says more than there were. */
  fetched(counter: number): boolean {
    const count = (counter - this.#fetchedByPeer) >>> 0;
    if (count > this.#announced.length) return false;
    this.#fetchedByPeer = counter;
    for (let i = 0; i < count; ++i) {
      const message = this.#announced.shift()!;
      message.memory!.release();
      message.resolve();
    }
    return true;
  }

  /** Copies and posts what can be, and tells the peer what it must know. */
  flush(): void {
    this.#scheduled = false;
    if (this.#failure !== undefined) return;
    this.#fill();
    const { link } = this.#parts;
    link.postReceives();
    this.#postFrames();
    this.#tell();
    link.post();
    this.#settle();
  }

  /** Gives up the connection: tells the peer why, if that is possible still. */
  reset(text: string): void {
    const slab = this.#small.pop();
    if (
      slab === undefined ||
      this.#failure !== undefined ||
      !this.#parts.credits.mayTell(this.#parts.returns.givesControlBack)
    )
      return;
    const { link } = this.#parts;
    const { bytes } = link.slabs;
    const at = link.slabs.slabAt(slab) + FRAME_HEADER;
    this.#post({ slab, type: FrameType.RESET, length: bytes.write(text, at, 200, 'utf8') });
    link.post();
  }

  /** Nothing can be sent any more. */
  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    const left = [...this.#announced.drain(), ...this.#messages.drain()];
    for (const message of left) {
      message.memory?.release();
      message.reject(error);
    }
    const { finished } = this;
    for (const { resolve, reject } of this.#finished.splice(0)) {
      if (finished) resolve();
      else reject(error);
    }
    this.#waiting = 0;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.flush());
  }

  /** Copies a message into frames if it fits whole into what is free. */
  #copyWhole(data: Uint8Array): boolean {
    const inOpen = this.#open === undefined ? 0 : this.#room - this.#open.at;
    const needed = data.length + RECORD_HEADER;
    if (needed > inOpen + this.#slabs.length * this.#room) return false;
    this.#copy(data, -1);
    return true;
  }

  /** Copies as much of a message as there is room for; returns how much of it is copied. */
  #copy(data: Uint8Array, copied: number): number {
    const { bytes, view } = this.#parts.link.slabs;
    for (;;) {
      const open = this.#openFrame(copied < 0 ? RECORD_HEADER : 1);
      if (open === undefined) return copied;
      if (copied < 0) {
        view.setUint32(open.start + open.at, data.length, true);
        open.at += RECORD_HEADER;
        copied = 0;
      }
      const count = Math.min(data.length - copied, this.#room - open.at);
      if (count > 0) {
        bytes.set(count === data.length ? data : data.subarray(copied, copied + count), open.start + open.at);
        open.at += count;
        copied += count;
      }
      if (this.#room - open.at <= RECORD_HEADER) this.#seal();
      if (copied === data.length) return copied;
    }
  }

  #openFrame(least: number) {
    if (this.#open !== undefined && this.#room - this.#open.at < least) this.#seal();
    if (this.#open === undefined) {
      const slab = this.#slabs.pop();
      if (slab === undefined) return undefined;
      this.#open = { slab, at: 0, start: this.#parts.link.slabs.slabAt(slab) + FRAME_HEADER };
    }
    return this.#open;
  }

  #seal(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.#frames.push({ slab: open.slab, type: FrameType.DATA, length: open.at });
  }

  /** Brings messages into frames, in their order. */
  #fill(): void {
    for (let message = this.#messages.first; message !== undefined; message = this.#messages.first) {
      const { length } = message.data;
      if (length > this.#parts.eagerLimit) {
        this.#prepareAhead();
        if (message.memory === undefined || !this.#announce(message)) return;
        this.#messages.shift();
      } else {
        message.copied = this.#copy(message.data, message.copied);
        if (message.copied < length) return;
        this.#messages.shift();
        message.resolve();
      }
      this.#waiting -= length;
    }
    if (this.#ending === 'asked') this.#writeEnd();
  }

  #prepareAhead(): void {
    let ahead = 0;
    for (const message of this.#messages) {
      if (++ahead > PREPARED_AHEAD) return;
      if (message.preparing || message.data.length <= this.#parts.eagerLimit) continue;
      message.preparing = true;
      this.#parts.prepare(message.data, message.region).then(
        (memory) => {
          if (this.#failure !== undefined) return memory.release();
          message.memory = memory;
          this.flush();
        },
        (error: unknown) => this.#parts.onFailed(error as Error),
      );
    }
  }

  #announce(message: Message): boolean {
    this.#seal();
    const slab = this.#slabs.pop();
    if (slab === undefined) return false;
    const { slabs } = this.#parts.link;
    writeAnnouncement(slabs.view, slabs.slabAt(slab) + FRAME_HEADER, message.memory!);
    this.#frames.push({ slab, type: FrameType.ANNOUNCE, length: ANNOUNCE_BYTES });
    this.#announced.push(message);
    return true;
  }

  #writeEnd(): void {
    this.#seal();
    const slab = this.#slabs.pop();
    if (slab === undefined) return;
    this.#ending = 'written';
    this.#endSlab = slab;
    this.#frames.push({ slab, type: FrameType.END, length: 0 });
  }

  #postFrames(): void {
    const { credits } = this.#parts;
    while (credits.forData > 0) {
      if (this.#frames.length === 0) {
        if (this.#open === undefined || this.#onTheirWay >= FRAMES_AT_ONCE) return;
        this.#seal();
      }
      this.#post(this.#frames.shift()!);
    }
  }

  /** Says what only the header of a frame says, where no other frame has. */
  #tell(): void {
    const { returns, credits } = this.#parts;
    const news =
      returns.due || this.#parts.fetched() !== this.#toldFetched || this.#parts.endCame() !== this.#toldEnd;
    if (!news || !credits.mayTell(returns.givesControlBack)) return;
    const slab = this.#small.pop();
    if (slab !== undefined) this.#post({ slab, type: FrameType.UPDATE, length: 0 });
  }

  #post({ slab, type, length }: Frame): void {
    const { link, returns, credits } = this.#parts;
    const fetched = (this.#toldFetched = this.#parts.fetched());
    this.#toldEnd = this.#parts.endCame();
    const flags = this.#toldEnd ? FrameFlag.END_CAME : 0;
    const { data, control } = returns;
    writeFrameHeader(link.slabs.view, link.slabs.slabAt(slab), {
      type,
      flags,
      length,
      control,
      data,
      fetched,
    });
    returns.told();
    const hasData = slab < link.slabs.large;
    credits.spend(hasData);
    if (hasData) ++this.#onTheirWay;
    else ++this.#controlOnTheirWay;
    link.send(slab, FRAME_HEADER + length);
  }

  #settle(): void {
    if (this.#needDrain && this.#waiting < this.#parts.highWaterMark) {
      this.#needDrain = false;
      this.#parts.onDrain();
    }
    if (!this.finished) return;
    for (const { resolve } of this.#finished.splice(0)) resolve();
    this.#parts.onFinished();
  }
}

/** A promise that need not be awaited: its failure is told in another way too. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** What an attempt to send after the end is told. */
export function afterEnd(): NetError {
  return new NetError('EPIPE', 'this end of the connection has ended: nothing can be sent any more', {
    syscall: 'send',
  });
}
