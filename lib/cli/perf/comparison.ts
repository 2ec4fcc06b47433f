import Table from 'cli-table3';
import type { Change, Comparison } from '../../perf/compare.js';
import { formatBytes, formatFigure } from '../../perf/figures.js';

/** What has changed, as a table, and under what circumstances. */
export function renderComparison(
  { differences, sizes, unmatched }: Comparison,
  [before, after]: readonly string[],
): string {
  const table = new Table({
    head: ['message', 'figure', before!, after!, 'change'],
    colAligns: ['right', 'left', 'right', 'right', 'right'],
    style: { head: [], border: [], compact: true },
  });
  for (const { size, changes } of sizes) {
    changes.forEach((change, i) => {
      table.push([
        i === 0 ? formatBytes(size) : '',
        change.name,
        formatFigure(change.before),
        formatFigure(change.after),
        describeChange(change),
      ]);
    });
  }
  const lines = [sizes.length > 0 ? table.toString() : 'No size is in both.'];
  if (unmatched.length > 0) lines.push(`In one of them only: ${unmatched.map(formatBytes).join(', ')}`);
  if (differences.length > 0) {
    lines.push('They differ in more than that:');
    for (const { name, before: a, after: b } of differences) lines.push(`  ${name}: ${a} → ${b}`);
  }
  return `${lines.join('\n')}\n`;
}

function describeChange({ percent, higherIsBetter }: Change): string {
  if (percent === null) return '–';
  const sign = percent > 0 ? '+' : '';
  const better = percent > 0 === higherIsBetter;
  const word = Math.abs(percent) < 0.05 ? '' : better ? ' better' : ' worse';
  return `${sign}${percent.toFixed(1)} %${word}`;
}
