const units = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 } as const;

/** Bytes from a number with an optional unit: `8`, `4K` or `4KiB`, `1M`. Undefined for anything else. */
export function parseByteSize(text: string): number | undefined {
  const match = /^(\d+) ?(?:([KMG])(?:iB|B)?|B)?$/i.exec(text.trim());
  if (match === null) return undefined;
  const unit = (match[2] ?? '').toUpperCase() as keyof typeof units;
  const bytes = Number(match[1]) * units[unit];
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
