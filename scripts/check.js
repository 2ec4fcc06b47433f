// @ts-check
// npm run check [-- --fix]: format and lint of all that the repository holds. Runs every check, then fails if one did.
import { availableParallelism } from 'node:os';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fingerprint, filesOf, isCurrent, markCurrent } from './fingerprint.js';
import { root, runMain, step, StepError } from './progress.js';
import { buildEnvironment, setUpTools } from './setup.js';

/** @typedef {import('./progress.js').Step} Step */

await runMain(async () => {
  const { fix } = parseArgs({ options: { fix: { type: 'boolean', default: false } } }).values;
  await setUpTools('check');

  /** @type {[string, (step: Step) => Promise<unknown>][]} */
  const checks = [
    ['lock file', checkLockFile],
    [
      'prettier',
      ({ run }) => run(...tool('prettier', '.', fix ? '--write' : '--check', '--log-level', 'warn')),
    ],
    ['tsc', ({ run }) => run(...tool('tsc', '--noEmit'))],
    ['eslint', ({ run }) => run(...tool('eslint', '.', '--max-warnings', '0', ...(fix ? ['--fix'] : [])))],
    [
      'clang-format',
      ({ run }) => run('clang-format', [...(fix ? ['-i'] : ['--dry-run', '-Werror']), ...cppFiles()]),
    ],
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

function cppFiles() {
  return filesOf('native').filter((file) => /\.(cc|h)$/.test(file));
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
 * clang-tidy takes seconds a file, so a file is linted again only when it, a header or the configuration changed.
 * @param {Step} step
 */
async function lintCpp({ run, say }) {
  await run(...tool('cmake-js', 'configure', '--out', 'build-cmake'), { env: buildEnvironment() });
  const headers = filesOf('native').filter((file) => file.endsWith('.h'));
  const version = await run('clang-tidy', ['--version']);
  const print = (/** @type {string} */ file) =>
    fingerprint([file, ...headers, '.clang-tidy', 'CMakeLists.txt'], version);

  const left = filesOf('native').filter(
    (file) => file.endsWith('.cc') && !isCurrent(`clang-tidy/${file}`, print(file)),
  );
  const complaints = /** @type {string[]} */ ([]);
  const lintOne = async () => {
    for (let file = left.shift(); file; file = left.shift()) {
      const began = print(file);
      say(file);
      await run('clang-tidy', ['--quiet', '-p', 'build-cmake', file]).then(
        () => markCurrent(`clang-tidy/${file}`, began),
        (error) => complaints.push(error.message),
      );
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lintOne));
  if (complaints.length > 0) throw new StepError(complaints.join('\n'));
}
