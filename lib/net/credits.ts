// Who may send a frame: never more are on their way than the receiver has slots for, so that no frame finds none. Frames with data and
// those without are counted apart: an end that cannot send data can always tell what it has read. Pure counting.

/** Slots that one end has given back since the beginning; the counters run over at 2^32 and 2^16. */
export interface SlotCounters {
  data: number;
  control: number;
}

/** Frames that may still be sent to the peer. */
export class SendCredits {
  readonly #slots: number;
  readonly #reserve: number;
  readonly #returned: SlotCounters = { data: 0, control: 0 };
  #data = 0;
  #control = 0;

  /** `reserve` of the `slots` are for frames without data. */
  constructor(slots: number, reserve: number) {
    this.#slots = slots - reserve;
    this.#reserve = reserve;
  }

  get forData(): number {
    return this.#slots - this.#data;
  }

  /**
   * Whether a frame without data may be sent. The last one must give such slots back itself: of two ends that have none left neither
   * could help the other.
   */
  mayTell(givesBack: boolean): boolean {
    return this.#reserve - this.#control > (givesBack ? 0 : 1);
  }

  spend(hasData: boolean): void {
    if (hasData) ++this.#data;
    else ++this.#control;
  }

  /** What the peer's counters say. False where they give back more than was sent: a peer that cannot count. */
  returned({ data, control }: SlotCounters): boolean {
    const moreData = (data - this.#returned.data) >>> 0;
    const moreControl = (control - this.#returned.control) & 0xffff;
    if (moreData > this.#data || moreControl > this.#control) return false;
    this.#returned.data = data;
    this.#returned.control = control;
    this.#data -= moreData;
    this.#control -= moreControl;
    return true;
  }
}

/** Slots that this end gives back, and when it is time to say so. */
export class Returns implements SlotCounters {
  readonly #dataLimit: number;
  readonly #controlLimit: number;
  /** As the peer is told. */
  data = 0;
  control = 0;
  #untoldData = 0;
  #untoldControl = 0;

  constructor(slots: number, reserve: number) {
    this.#dataLimit = Math.max(Math.floor((slots - reserve) / 2), 1);
    this.#controlLimit = Math.floor(reserve / 2);
  }

  /** Whether a frame would give back slots of frames without data. */
  get givesControlBack(): boolean {
    return this.#untoldControl > 0;
  }

  /** Whether the peer must be told although there is nothing else to say. */
  get due(): boolean {
    return this.#untoldData >= this.#dataLimit || this.#untoldControl >= this.#controlLimit;
  }

  giveBack(hadData: boolean): void {
    if (hadData) {
      this.data = (this.data + 1) >>> 0;
      ++this.#untoldData;
    } else {
      this.control = (this.control + 1) & 0xffff;
      ++this.#untoldControl;
    }
  }

  told(): void {
    this.#untoldData = 0;
    this.#untoldControl = 0;
  }
}
