import { once } from './once.js';
import { Fifo } from './fifo.js';
import type { Link } from './link.js';
import type { MemoryRegion } from '../verbs/memory-region.js';

const SLOTS = 64;

/** Up to so many bytes are copied through {@link Scratch} rather than registered. */
export const SCRATCH_BYTES = 4096;

/** A place in registered memory, until it is given back. */
export interface ScratchSlot {
  mr: MemoryRegion;
  offset: number;
  bytes: Buffer;
}

/** A little registered memory for short transfers, made when it is first needed. */
export class Scratch {
  readonly #region: () => Promise<MemoryRegion>;
  readonly #free: number[] = Array.from({ length: SLOTS }, (_, i) => i);
  readonly #waiting = new Fifo<(slot: number) => void>();

  constructor(link: Link) {
    this.#region = once(() => link.track(link.pd.regMr(SLOTS * SCRATCH_BYTES)).then((mr) => link.own(mr)));
  }

  /** Runs `work` with a slot of its own. */
  async with<T>(work: (slot: ScratchSlot) => Promise<T>): Promise<T> {
    const mr = await this.#region();
    const slot = this.#free.pop() ?? (await new Promise<number>((resolve) => this.#waiting.push(resolve)));
    const offset = slot * SCRATCH_BYTES;
    try {
      return await work({ mr, offset, bytes: mr.buffer.subarray(offset, offset + SCRATCH_BYTES) });
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(slot);
      else next(slot);
    }
  }
}
