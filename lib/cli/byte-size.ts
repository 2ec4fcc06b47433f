const units = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 } as const;

/** Bytes from a number with an optional unit: `8`, `4K` or `4KiB`, `1M`. Undefined for anything else. */
export function parseByteSize(text: string): number | undefined {
  const match = /^(\d+) ?(?:([KMG])(?:iB|B)?|B)?$/i.exec(text.trim());
  if (match === null) return undefined;
  const unit = (match[2] ?? '').toUpperCase() as keyof typeof units;
  const bytes = Number(match[1]) * units[unit];
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Bytes in the largest unit that divides them: `1 MiB`, `4 KiB`, `3077 B`. */
export function formatByteSize(bytes: number): string {
  for (const unit of ['G', 'M', 'K'] as const) {
    if (bytes >= units[unit] && bytes % units[unit] === 0) return `${bytes / units[unit]} ${unit}iB`;
  }
  return `${bytes} B`;
}
