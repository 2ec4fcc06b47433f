// @ts-check
// npm run test:node-versions [-- FILTER… --engine uml|qemu]: the tests on a device with each Node.js that the package is for,
// all with the addon that was built with this one: Node-API promises that no rebuild is needed.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { root, runInForeground, runMain, step, StepError } from './progress.js';
import { groupsToRun, onDevice, setUp } from './setup.js';
import { count, inWords } from './test-report.js';

const majors = [20, 22, 24];
const reports = path.join(root, 'build', 'test-reports', 'node-versions');

await runMain(async () => {
  const { filters, engine } = readOptions();
  await setUp('test', ...groupsToRun(engine));
  rmSync(reports, { recursive: true, force: true });

  const lines = [];
  let failed = false;
  for (const major of majors) {
    const node = await nodeOf(major);
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    console.log(`\nNode.js ${version}, with the addon of ${process.version}`);
    const folder = path.join(reports, version);
    mkdirSync(folder, { recursive: true });
    const report = path.join(folder, 'report.json');
    const vitest = [node, path.join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'rxe'];
    const reporters = ['--reporter', 'default', '--reporter', 'json', '--outputFile.json', report];
    const options = ['--out', folder, ...(engine ? ['--engine', engine] : [])];
    const status = await runInForeground(onDevice([...vitest, ...reporters, ...filters], options));
    const counted = count(report, status);
    failed ||= counted.failed > 0 || counted.passed === 0;
    lines.push(`Node.js ${version}: ${inWords(counted)}`);
  }
  console.log(`\n${lines.join('\n')}`);
  return failed ? 1 : 0;
});

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { engine: { type: 'string' } },
    });
    return { filters: positionals, engine: values.engine };
  } catch (error) {
    const usage = 'npm run test:node-versions -- [FILTER…] [--engine host|uml|qemu]';
    throw new StepError(`${/** @type {Error} */ (error).message}\nUsage: ${usage}`);
  }
}

/**
 * The path of a Node.js: this one, or one from npm, kept in the cache of node-rdma. What `npm install node` would fetch by a
 * script of its own is the package node-linux-ARCH.
 * @param {number} major
 */
async function nodeOf(major) {
  if (process.version.startsWith(`v${major}.`)) return process.execPath;
  const { ensureCached } = await import(new URL('../dist/rxe/cache.js', import.meta.url).href);
  const name = `node-linux-${process.arch}`;
  const folder = await ensureCached(`node/${major}`, (/** @type {string} */ directory) =>
    step(`Node.js ${major}, by npm`, async ({ run }) => {
      const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'http'];
      await run('npm', ['install', ...quietly, '--prefix', directory, `${name}@${major}`]);
    }),
  );
  return path.join(folder, 'node_modules', name, 'bin', 'node');
}
