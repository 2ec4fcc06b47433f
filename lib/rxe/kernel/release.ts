/** Kernel releases and package versions, such as `6.1.0-57-amd64`: numbers compare as numbers. */
export function compareReleases(a: string, b: string): number {
  const left = a.match(/\d+|\D+/g) ?? [];
  const right = b.match(/\d+|\D+/g) ?? [];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const [x, y] = [left[i] ?? '', right[i] ?? ''];
    if (x === y) continue;
    const difference = Number(x) - Number(y);
    return Number.isNaN(difference) ? (x < y ? -1 : 1) : difference;
  }
  return 0;
}
