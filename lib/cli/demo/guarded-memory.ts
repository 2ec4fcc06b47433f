import type { MemoryRegion } from '../../index.js';

/** Bytes before and after the payload that nobody may touch. */
export const guard = 64;

/**
 * Bytes without a period that a packet, a page or another pattern could hide in.
 *
 * @param seed 32 bits; another one makes other bytes
 */
export function pattern(seed: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let state = seed | 0;
  for (let i = 0; i < length; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** Where two runs of bytes of one length differ first; undefined if nowhere. */
export function firstDifference(actual: Uint8Array, expected: Uint8Array): number | undefined {
  const at = actual.findIndex((byte, i) => byte !== expected[i]);
  return at < 0 ? undefined : at;
}

/** A region with a payload between guards, of which every byte is accounted for. */
export class GuardedMemory {
  readonly mr: MemoryRegion;
  readonly #label: string;
  #expected = new Uint8Array();

  /** @param label what errors call it */
  constructor(mr: MemoryRegion, label: string) {
    this.mr = mr;
    this.#label = label;
  }

  /** Fills the whole region, guards too, with a pattern, and puts a payload in. */
  prepare(seed: number, payload?: Uint8Array): void {
    this.#expected = pattern(seed, this.mr.length);
    if (payload) this.expect(payload);
    this.mr.buffer.set(this.#expected);
  }

  /** From now on the payload should begin with these bytes; all else should stay as it is. */
  expect(payload: Uint8Array): void {
    this.#expected.set(payload, guard);
  }

  /** Compares the whole region with what should be in it; throws with the first byte that differs. */
  verify(operation: string): void {
    const { buffer } = this.mr;
    if (buffer.equals(this.#expected)) return;
    const at = firstDifference(buffer, this.#expected)!;
    throw new Error(
      `${operation}: wrong data in ${this.#label}: byte ${at - guard} of the payload is ${hex(buffer[at]!)}, ` +
        `not ${hex(this.#expected[at]!)} (a negative number is in the guard before it)`,
    );
  }
}

const hex = (byte: number) => `0x${byte.toString(16).padStart(2, '0')}`;
