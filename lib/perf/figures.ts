/** Three significant digits at least, no exponent, `–` where nothing was measured. */
export function formatFigure(value: number | null): string {
  if (value === null) return '–';
  if (value === 0 || value >= 100) return value.toFixed(0);
  const digits = Math.min(Math.max(2 - Math.floor(Math.log10(value)), 0), 6);
  return value.toFixed(digits);
}

/** Bytes in the largest unit that divides them: `1 MiB`, `4 KiB`, `3077 B`. */
export function formatBytes(bytes: number): string {
  for (const [unit, size] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ] as const) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size} ${unit}`;
  }
  return `${bytes} B`;
}
