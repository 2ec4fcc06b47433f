// @ts-check
// npm test [-- FILTER… -t NAME --engine uml|qemu]: sets up, then runs every test where it belongs, and counts.
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { filesOf } from './fingerprint.js';
import { root, runInForeground, runMain, StepError } from './progress.js';
import { groupsToRun, onDevice, setUp } from './setup.js';
import { count, inWords } from './test-report.js';

/** Each part is one run of vitest. Those on a device share one machine. */
const parts = [
  { name: 'unit', projects: ['unit'], device: false },
  { name: 'device', projects: ['rxe', 'interop', 'process'], device: true },
  { name: 'runner', projects: ['runner'], device: false },
  { name: 'package', projects: ['package'], device: false },
];
const reports = path.join(root, 'build', 'test-reports');

await runMain(async () => {
  const { filters, name, engine } = readOptions();
  const wanted = parts.filter(({ projects }) => testFiles(projects, filters).length > 0);
  if (wanted.length === 0)
    throw new StepError(`No test file matches ${filters.join(' ') || 'test/*/**/*.test.ts'}.`);

  await setUp('test', ...(wanted.some(({ device }) => device) ? groupsToRun(engine) : []));
  rmSync(reports, { recursive: true, force: true });

  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const part of wanted) {
    const began = performance.now();
    const report = path.join(reports, part.name, 'report.json');
    mkdirSync(path.dirname(report), { recursive: true });
    const vitest = [
      process.execPath,
      path.join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      ...part.projects.flatMap((project) => ['--project', project]),
      ...['--reporter', 'default', '--reporter', 'json', '--outputFile.json', report],
      ...(name ? ['--testNamePattern', name] : []),
      ...filters,
    ];
    const options = ['--out', path.dirname(report), ...(engine ? ['--engine', engine] : [])];
    const status = await runInForeground(part.device ? onDevice(vitest, options) : vitest);

    const counted = count(report, status);
    for (const key of /** @type {const} */ (['passed', 'failed', 'skipped'])) total[key] += counted[key];
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log(`${part.name} (${part.projects.join(', ')}): ${inWords(counted)}, in ${seconds} s\n`);
  }
  console.log(inWords(total));
  return total.failed > 0 || total.passed === 0 ? 1 : 0;
});

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { engine: { type: 'string' }, testNamePattern: { type: 'string', short: 't' } },
    });
    return { filters: positionals, name: values.testNamePattern, engine: values.engine };
  } catch (error) {
    const usage = 'npm test -- [FILTER…] [-t NAME] [--engine host|uml|qemu]';
    throw new StepError(`${/** @type {Error} */ (error).message}\nUsage: ${usage}`);
  }
}

/**
 * @param {string[]} projects
 * @param {string[]} filters parts of a file's path, as vitest understands them
 */
function testFiles(projects, filters) {
  return projects
    .flatMap((project) => filesOf(`test/${project}`))
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
}
