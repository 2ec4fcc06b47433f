// @ts-check
// npm run test:node-versions [-- FILTER… --engine uml|qemu]: the tests on a device with each Node.js that the package is for,
// all with the addon that was built with this one: Node-API promises that no rebuild is needed.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runMain, step, StepError } from './progress.js';
import { clearReports, runTests } from './run-tests.js';
import { groupsToRun, setUp } from './setup.js';
import { inWords } from './test-report.js';

const majors = [20, 22, 24];

await runMain(async () => {
  const { filters, engine } = readOptions();
  await setUp('test', ...groupsToRun(engine));
  clearReports('node-versions');

  const lines = [];
  let failed = false;
  for (const major of majors) {
    const node = await nodeOf(major);
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    console.log(`\nNode.js ${version}, with the addon of ${process.version}`);
    const counted = await runTests({
      name: `node-versions/${version}`,
      projects: ['rxe'],
      device: true,
      filters,
      node: [node],
      ...(engine && { engine }),
    });
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
  const { ensureCached } = await import(new URL('../build/lib/rxe/cache.js', import.meta.url).href);
  const name = `node-linux-${process.arch}`;
  const folder = await ensureCached(`node/${major}`, (/** @type {string} */ directory) =>
    step(`Node.js ${major}, by npm`, async ({ run }) => {
      const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'http'];
      await run('npm', ['install', ...quietly, '--prefix', directory, `${name}@${major}`]);
    }),
  );
  return path.join(folder, 'node_modules', name, 'bin', 'node');
}
