// @ts-check
// npm test [-- FILTER… -t NAME --engine uml|qemu]: sets up, then runs every test where it belongs, and counts.
import { parseArgs } from 'node:util';
import { filesOf } from './fingerprint.js';
import { runMain, StepError } from './progress.js';
import { clearReports, runTests } from './run-tests.js';
import { groupsToRun, setUp } from './setup.js';
import { inWords } from './test-report.js';

/** Each part is one run of vitest. Those on a device share one machine. */
const parts = [
  { name: 'unit', projects: ['unit'], device: false },
  { name: 'device', projects: ['rxe', 'interop', 'process'], device: true },
  { name: 'runner', projects: ['runner'], device: false },
  { name: 'package', projects: ['package'], device: false },
];

await runMain(async () => {
  const { filters, name, engine } = readOptions();
  const wanted = parts.filter(({ projects }) => testFiles(projects, filters).length > 0);
  if (wanted.length === 0)
    throw new StepError(`No test file matches ${filters.join(' ') || 'test/*/**/*.test.ts'}.`);

  await setUp('test', ...(wanted.some(({ device }) => device) ? groupsToRun(engine) : []));
  clearReports();

  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const part of wanted) {
    const began = performance.now();
    const options = name ? ['--testNamePattern', name] : [];
    const counted = await runTests({ ...part, filters, options, ...(engine && { engine }) });
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
