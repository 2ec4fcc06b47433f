// What has come: frames that wait in their slots until there is room, messages that are being put together or read from the peer, and
// messages that nobody has taken yet.
import { Fifo } from './fifo.js';
import type { Slabs } from './slabs.js';
import { protocolError } from './errors.js';
import {
  ANNOUNCE_BYTES,
  FRAME_HEADER,
  FrameType,
  readAnnouncement,
  RECORD_HEADER,
  type Announcement,
} from './protocol.js';

/** What a message counts for beside its bytes, so that empty ones are not for nothing. */
const MESSAGE_COST = 64;

interface Frame {
  slot: number;
  type: number;
  /** Bytes behind the header. */
  length: number;
}

/** A place in the order of messages. */
interface Place {
  /** Undefined while it is being read. */
  message: Buffer | undefined;
  length: number;
}

/** Who waits for a message. */
export interface Taker {
  settle(this: void, outcome: Buffer | Error | undefined): void;
  /** It waits no more. */
  gone: boolean;
}

export interface InboxParts {
  slabs: Slabs;
  /** Of this end. */
  eagerLimit: number;
  maxMessage: number;
  highWaterMark: number;
  /** Reads an announced message from the peer. */
  fetch(this: void, announcement: Announcement): Promise<Buffer>;
  /** The slot of a frame with data is free. */
  onFree(this: void, slot: number): void;
  /** An announced message was read: the peer has to be told. */
  onFetched(this: void): void;
  /** There is room again for frames that wait: somebody should {@link Inbox.work}. */
  onRoom(this: void): void;
  /** Somebody asked for a message, and no more come. */
  onEnd(this: void): void;
  onFailed(this: void, error: Error): void;
}

/** The receiving half of a connection. */
export class Inbox {
  readonly #parts: InboxParts;
  readonly #frames = new Fifo<Frame>();
  readonly #places = new Fifo<Place>();
  /** Of {@link #places}, those that are being read from the peer or were, in their order. */
  readonly #reading = new Fifo<Place>();
  readonly #takers = new Fifo<Taker>();
  #partial: { message: Buffer; filled: number } | undefined;
  #bytes = 0;
  #total = 0;
  #fetched = 0;
  #lost = false;
  #endCame = false;
  #ended = false;
  #failure: Error | undefined;

  constructor(parts: InboxParts) {
    this.#parts = parts;
  }

  /** Announced messages that were read since the beginning. */
  get fetched(): number {
    return this.#fetched;
  }

  /** Whether the peer has said that no more messages come. */
  get endCame(): boolean {
    return this.#endCame;
  }

  /** Whether {@link endCame}, and nothing has to be read from the peer any more. */
  get complete(): boolean {
    return this.#endCame && this.#reading.length === 0;
  }

  /** Whether somebody was told that no more messages come. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Bytes of messages that are here and were not taken. */
  get waiting(): number {
    return this.#bytes;
  }

  /** Bytes of all messages that came. */
  get total(): number {
    return this.#total;
  }

  /** A frame with data has come to a slot. */
  push(slot: number, type: number, length: number): void {
    this.#frames.push({ slot, type, length });
  }

  /** Works on frames as long as there is room for what is in them; on all of them where the connection is no more. */
  work(all = false): void {
    if (this.#failure !== undefined) return;
    try {
      while (this.#frames.length > 0 && (all || this.#bytes < this.#parts.highWaterMark)) {
        this.#frame(this.#frames.shift()!, all);
      }
    } catch (error) {
      this.#parts.onFailed(error as Error);
    }
    this.#deliver();
  }

  /** Whether something that the peer has sent is lost where the connection is no more. */
  get lost(): boolean {
    return this.#lost || this.#reading.length > 0 || this.#partial !== undefined;
  }

  /** The next message, where it is here; for those who need not wait. */
  takeNow(): Buffer | undefined {
    if (this.#takers.length > 0 || this.#places.first?.message === undefined) return undefined;
    const { message, length } = this.#places.shift()!;
    this.#taken(length);
    return message;
  }

  /** The next message goes there; undefined when no more come. */
  take(taker: Taker): void {
    this.#takers.push(taker);
    this.#deliver();
  }

  /** No more come. What is here can be taken still, unless it is to be forgotten. */
  fail(error: Error | undefined, forget: boolean): void {
    this.#frames.drain();
    this.#partial = undefined;
    if (forget) {
      this.#places.drain();
      this.#bytes = 0;
    }
    this.#failure = error;
    this.#endCame = true;
    // What was being read does not come any more, nor what followed it.
    const left = this.#places.drain();
    for (const place of left) {
      if (place.message === undefined) break;
      this.#places.push(place);
    }
    this.#deliver();
  }

  #frame({ slot, type, length }: Frame, noPeer: boolean): void {
    const { slabs } = this.#parts;
    const at = slabs.slotAt(slot) + FRAME_HEADER;
    if (this.#lost) return;
    if (this.#endCame) throw protocolError('something after its end');
    switch (type) {
      case FrameType.DATA:
        this.#data(at, length);
        break;
      case FrameType.ANNOUNCE:
        if (length !== ANNOUNCE_BYTES || this.#partial !== undefined)
          throw protocolError('an announcement in the middle of a message');
        if (noPeer) this.#lost = true;
        else this.#announced(readAnnouncement(slabs.view, at));
        break;
      default:
        if (this.#partial !== undefined || length !== 0)
          throw protocolError('its end in the middle of a message');
        this.#endCame = true;
    }
    this.#parts.onFree(slot);
  }

  #data(start: number, length: number): void {
    const { bytes, view } = this.#parts.slabs;
    const end = start + length;
    let at = start;
    if (length === 0) throw protocolError('an empty frame');
    while (at < end) {
      if (this.#partial === undefined) {
        if (end - at < RECORD_HEADER) throw protocolError('half a length');
        const size = view.getUint32(at, true);
        at += RECORD_HEADER;
        if (size > this.#parts.eagerLimit)
          throw protocolError(
            `a message of ${size} bytes in frames, and ${this.#parts.eagerLimit} are the limit`,
          );
        this.#partial = { message: Buffer.allocUnsafe(size), filled: 0 };
      }
      const { message, filled } = this.#partial;
      const count = Math.min(message.length - filled, end - at);
      if (count > 0) bytes.copy(message, filled, at, at + count);
      at += count;
      this.#partial.filled += count;
      if (this.#partial.filled < message.length) break;
      this.#partial = undefined;
      this.#place({ message, length: message.length });
    }
  }

  #announced(announcement: Announcement): void {
    const { length } = announcement;
    if (!(length <= this.#parts.maxMessage))
      throw protocolError(`a message of ${length} bytes, and ${this.#parts.maxMessage} are the limit`);
    if (length === 0) throw protocolError('the announcement of an empty message');
    const place: Place = { message: undefined, length };
    this.#place(place);
    this.#reading.push(place);
    this.#parts.fetch(announcement).then(
      (message) => {
        place.message = message;
        // The peer is told in the order of its announcements.
        while (this.#reading.first?.message !== undefined) {
          this.#reading.shift();
          this.#fetched = (this.#fetched + 1) >>> 0;
        }
        this.#deliver();
        this.#parts.onFetched();
      },
      (error: unknown) => this.#parts.onFailed(error as Error),
    );
  }

  #place(place: Place): void {
    this.#places.push(place);
    this.#bytes += place.length + MESSAGE_COST;
    this.#total += place.length;
  }

  /** Hands out what is there to those who wait for it. */
  #deliver(): void {
    while (this.#takers.length > 0 && this.#places.first?.message !== undefined) {
      const taker = this.#takers.shift()!;
      if (taker.gone) continue;
      const { message, length } = this.#places.shift()!;
      taker.settle(message);
      this.#taken(length);
    }
    // Only who asks for more hears of the end: whoever has just got the last message may still answer it.
    if (this.#endCame && this.#places.length === 0 && this.#takers.length > 0) this.#atEnd();
  }

  #taken(length: number): void {
    this.#bytes -= length + MESSAGE_COST;
    if (this.#frames.length > 0 && this.#bytes < this.#parts.highWaterMark) this.#parts.onRoom();
  }

  #atEnd(): void {
    for (const { settle } of this.#takers.drain()) settle(this.#failure);
    if (this.#ended) return;
    this.#ended = true;
    if (this.#failure === undefined) this.#parts.onEnd();
  }
}
