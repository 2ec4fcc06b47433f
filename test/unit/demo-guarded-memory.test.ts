import { describe, expect, it } from 'vitest';
import { guard, GuardedMemory, pattern } from '../../lib/cli/demo/guarded-memory.js';
import type { MemoryRegion } from '../../lib/index.js';

describe('pattern', () => {
  it('is the same for a seed, and another for another', () => {
    expect(pattern(1, 5000)).toEqual(pattern(1, 5000));
    expect(Buffer.from(pattern(1, 5000)).equals(pattern(2, 5000))).toBe(false);
  });

  it('does not repeat at the length of a packet or of a page', () => {
    const bytes = Buffer.from(pattern(7, 5 * 4096));
    for (const period of [1, 2, 256, 512, 1024, 2048, 4096]) {
      expect(bytes.subarray(0, 4096).equals(bytes.subarray(period, 4096 + period))).toBe(false);
    }
  });
});

describe('GuardedMemory', () => {
  const payload = pattern(3, 100);
  const prepared = () => {
    const buffer = Buffer.alloc(guard + 100 + guard);
    const region: Pick<MemoryRegion, 'buffer' | 'length'> = { buffer, length: buffer.length };
    const memory = new GuardedMemory(region as unknown as MemoryRegion, 'the target');
    memory.prepare(9);
    return { buffer, memory };
  };

  it('accepts the payload in its place, and all else as it was', () => {
    const { buffer, memory } = prepared();
    memory.verify('WRITE');
    memory.expect(payload);
    buffer.set(payload, guard);
    memory.verify('WRITE');
  });

  it.each([
    ['the payload', guard + 5, 5],
    ['the guard before', guard - 1, -1],
    ['the guard behind', guard + 100, 100],
    ['the last byte', guard + 100 + guard - 1, 163],
  ])('finds one wrong bit in %s', (_where, at, named) => {
    const { buffer, memory } = prepared();
    memory.expect(payload);
    buffer.set(payload, guard);
    buffer[at]! ^= 1;
    expect(() => memory.verify('WRITE')).toThrow(
      new RegExp(`^WRITE: wrong data in the target: byte ${named} of the payload is 0x`),
    );
  });

  it('finds a payload that has not come', () => {
    const { memory } = prepared();
    memory.expect(payload);
    expect(() => memory.verify('READ')).toThrow(/byte 0 of the payload/);
  });
});
