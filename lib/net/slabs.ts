import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { RESERVE, type Settings } from './options.js';

/** Room for a frame without messages. */
const SMALL = 256;

/**
 * The registered memory of a connection, in one region: slots where frames come to, slabs of the same size for frames with messages, and
 * small slabs, numbered on behind them, for those without.
 */
export class Slabs {
  readonly mr: MemoryRegion;
  readonly slots: number;
  readonly slabBytes: number;
  /** Slabs for frames with messages; the small ones come after them. */
  readonly large: number;
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly #slabsAt: number;
  readonly #smallAt: number;

  private constructor(mr: MemoryRegion, { slots, slabBytes }: Settings) {
    this.mr = mr;
    this.slots = slots + RESERVE;
    this.slabBytes = slabBytes;
    this.large = slots;
    this.bytes = mr.buffer;
    this.view = new DataView(mr.buffer.buffer, mr.buffer.byteOffset, mr.buffer.byteLength);
    this.#slabsAt = this.slots * slabBytes;
    this.#smallAt = this.#slabsAt + slots * slabBytes;
  }

  static async allocate(pd: ProtectionDomain, settings: Settings): Promise<Slabs> {
    const bytes = (2 * settings.slots + RESERVE) * settings.slabBytes + RESERVE * SMALL;
    return new Slabs(await pd.regMr(bytes), settings);
  }

  /** All small slabs. */
  get small(): number[] {
    return Array.from({ length: RESERVE }, (_, i) => this.large + i);
  }

  slotAt(slot: number): number {
    return slot * this.slabBytes;
  }

  slabAt(slab: number): number {
    return slab < this.large
      ? this.#slabsAt + slab * this.slabBytes
      : this.#smallAt + (slab - this.large) * SMALL;
  }
}
