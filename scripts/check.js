// @ts-check
// npm run check [-- --fix]: format and lint of all that the repository holds. Runs every check, then fails if one did.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fingerprint, filesOf, isCurrent, markCurrent } from './fingerprint.js';
import { buildEnvironment } from './node-headers.js';
import { root, runMain, step, StepError } from './progress.js';
import { setUpChecks } from './setup.js';

/** @typedef {import('./progress.js').Step} Step */

await runMain(async () => {
  const { fix } = parseArgs({ options: { fix: { type: 'boolean', default: false } } }).values;
  await setUpChecks('check');

  /** @type {[string, (step: Step) => Promise<unknown>][]} */
  const checks = [
    ['lock file', checkLockFile],
    [
      'prettier',
      ({ run }) => run(...tool('prettier', '.', fix ? '--write' : '--check', '--log-level', 'warn')),
    ],
    ['tsc', ({ run }) => run(...tool('tsc', '--noEmit'))],
    ['eslint', ({ run }) => run(...tool('eslint', '.', '--max-warnings', '0', ...(fix ? ['--fix'] : [])))],
    ['clang-format', (step) => formatCpp(step, fix)],
    ['clang-tidy', lintCpp],
  ];
  /** @type {string[]} */
  const failed = [];
  for (const [name, check] of checks) {
    await step(name, check).catch((error) => {
      if (!(error instanceof StepError)) throw error;
      process.stderr.write(`${error.message}\n\n`);
      failed.push(name);
    });
  }
  if (failed.length > 0)
    throw new StepError(`Failed: ${failed.join(', ')}. npm run check -- --fix mends what a tool can mend.`);
  console.log(`${checks.length} checks passed`);
});

/**
 * @param {string} name of a program of an npm package
 * @param {string[]} args
 * @returns {[string, string[]]}
 */
function tool(name, ...args) {
  return [path.join(root, 'node_modules', '.bin', name), args];
}

/**
 * @param {Step} step
 * @param {boolean} fix
 */
async function formatCpp({ run }, fix) {
  const files = filesOf('native').filter((file) => /\.(cc|h)$/.test(file));
  if (fix) {
    await run('clang-format', ['-i', ...files]);
    return;
  }
  // Its own complaints are many lines a file; what one wants to know is which file.
  await run('clang-format', ['--dry-run', '-Werror', '--ferror-limit=1', ...files]).catch((error) => {
    const named = new Set(error.message.match(/^native\/[^:]+(?=:)/gm));
    throw named.size > 0 ? new StepError(`Not as clang-format writes them: ${[...named].join(' ')}`) : error;
  });
}

/** Addresses in the lock file would tie every clone to one registry; npm leaves them out where .npmrc says so. */
async function checkLockFile() {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const tied = Object.keys(packages).filter((name) => packages[name].resolved);
  if (tied.length > 0) {
    const hint =
      'Run npm install in the root of the repository, where .npmrc has omit-lockfile-registry-resolved.';
    throw new StepError(
      `package-lock.json has the address of ${tied.length} packages (${tied[0]}, …). ${hint}`,
    );
  }
}

/**
 * clang-tidy reads one file of each target, made by CMake, and only when something changed.
 * @param {Step} step
 */
async function lintCpp({ run }) {
  const version = await run('clang-tidy', ['--version']);
  const print = fingerprint(
    ['native', '.clang-tidy', 'CMakeLists.txt', 'scripts/native-sources.cjs'],
    version,
  );
  if (isCurrent('clang-tidy', print)) return;

  const folder = 'build-cmake-lint';
  const options = ['--out', folder, '--CDNODE_RDMA_LINT=ON'];
  await run(...tool('cmake-js', 'configure', ...options), { env: buildEnvironment() });
  const commands = JSON.parse(readFileSync(path.join(root, folder, 'compile_commands.json'), 'utf8'));
  const lintOne = (/** @type {{ file: string }} */ { file }) =>
    run('clang-tidy', ['--quiet', '-p', folder, file]);
  const results = await Promise.allSettled(commands.map(lintOne));
  const complaints = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason.message] : [],
  );
  if (complaints.length > 0) throw new StepError(complaints.join('\n'));
  markCurrent('clang-tidy', print);
}
