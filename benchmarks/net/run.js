// @ts-check
// run.js [ROUNDS [SHARE [NAME…]]]: measures node-rdma/net on a device, against a ring and C, and prints a table in Markdown. `npm run
// build` first; the engine is that of NODE_RDMA_BENCH_ENGINE, or the first that works.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { median } from './median.js';
import { program } from './others.js';
import { measures } from './plan.js';

const here = import.meta.dirname;
const cli = path.join(here, '..', '..', 'dist', 'cli', 'main.js');
/** Seconds after which something hangs. */
const deadline = 900;

mkdirSync(path.dirname(program), { recursive: true });
execFileSync('cc', [
  '-std=gnu17',
  '-O3',
  '-Wall',
  '-Wextra',
  '-o',
  program,
  path.join(here, 'loop.c'),
  '-libverbs',
]);

const inside = [process.execPath, path.join(here, 'inside.js'), ...process.argv.slice(2)];
const engine = process.env.NODE_RDMA_BENCH_ENGINE ?? 'auto';
const command = [cli, 'rxe', 'run', '--engine', engine, '--timeout', String(deadline), '--', ...inside];
const printed = execFileSync(process.execPath, command, {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
});
const { figures, connects, ...where } = JSON.parse(printed.trim().split('\n').at(-1) ?? '');

const row = (/** @type {(string | number)[]} */ cells) => `| ${cells.join(' | ')} |`;
console.log(
  `${where.date.slice(0, 10)}, ${where.processor}, Linux ${where.kernel}, Node.js ${where.node}, engine ${where.engine}\n`,
);
console.log(row(['', 'who', 'median', 'of the ring', 'asked for']));
console.log(row(['---', '---', '---:', '---:', '---:']));
for (const { name, title, unit, by, least } of measures) {
  if (figures[name] === undefined) continue;
  const ring = median(figures[name].ring) ?? NaN;
  for (const who of by) {
    const runs = figures[name][who];
    const figure = runs === undefined ? null : median(runs);
    const cells =
      figure === null ? ['–', '–'] : [`${Math.round(figure)} ${unit}`, (figure / ring).toFixed(2)];
    console.log(
      row([who === by[0] ? title : '', who, ...cells, least[who] === undefined ? '' : `≥ ${least[who]}`]),
    );
  }
}
if (connects) {
  const { inTurn, perSecond, atOnce, seconds, left } = connects;
  console.log(
    `\n${inTurn} connections in turn: ${Math.round(perSecond)} a second, each with a message and its answer. ${atOnce} at once: ` +
      `${seconds.toFixed(1)} s. Left in the kernel afterwards: ${left} objects.`,
  );
}
