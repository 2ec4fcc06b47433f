import { invalidArgType, outOfRange, RdmaError } from './errors.js';

/** An integer from `min` to `max`, or an error that says so. */
export function integer(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number') throw invalidArgType(name, 'a number', value);
  if (!Number.isInteger(value) || value < min || value > max) {
    throw outOfRange(name, `an integer from ${min} to ${max}`, value);
  }
  return value;
}

/** An integer from `min` on that is not above what the device offers, or an error that says by how much it is. */
export function withinDevice(name: string, value: unknown, min: number, max: number, device: string): number {
  const number = integer(name, value, min, Math.max(2 ** 31 - 1, max));
  if (number <= max) return number;
  throw new RdmaError(
    'ERR_RDMA_LIMIT',
    `${name} ${number} is ${number - max} above the ${max} that ${device} offers`,
    { device },
  );
}

const MAX_U64 = (1n << 64n) - 1n;

/** An unsigned 64-bit value, given as a BigInt or as a safe integer. */
export function unsigned64(name: string, value: unknown): bigint {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || value < 0)
      throw outOfRange(name, 'an integer from 0 to 2^53-1, or a BigInt', value);
    return BigInt(value);
  }
  if (typeof value !== 'bigint') throw invalidArgType(name, 'a BigInt or a number', value);
  if (value < 0n || value > MAX_U64) throw outOfRange(name, 'an integer from 0 to 2^64-1', value);
  return value;
}

/** One of a table's words, as its number. */
export function wordNumber<T extends string>(
  name: string,
  table: Readonly<Record<T, number>>,
  word: unknown,
): number {
  if (typeof word === 'string' && Object.hasOwn(table, word)) return table[word as T];
  throw outOfRange(name, `one of ${Object.keys(table).join(', ')}`, word);
}

/** One of a list's words, as its place. */
export function wordIndex(name: string, list: readonly string[], word: unknown): number {
  const index = list.indexOf(word as string);
  if (index < 0) throw outOfRange(name, `one of ${list.join(', ')}`, word);
  return index;
}

/** An AbortSignal, or what looks like one. */
export function abortSignal(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null || !('aborted' in value))
    throw invalidArgType(name, 'an AbortSignal', value);
}

/** An object of options, or nothing. */
export function options(name: string, value: unknown): void {
  if (value !== undefined && (typeof value !== 'object' || value === null))
    throw invalidArgType(name, 'an object', value);
}
