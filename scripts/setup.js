// @ts-check
// Makes a clone ready to run: Debian packages, npm packages, the addon, the JavaScript. What is current is left alone.
// Uses Node's own modules only, since nothing else is there at first.
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { release } from 'node:os';
import path from 'node:path';
import { installDebianPackages } from './debian.js';
import { fingerprint, isCurrent, markCurrent } from './fingerprint.js';
import { withLock } from './lock.js';
import { buildEnvironment } from './node-headers.js';
import { root, step } from './progress.js';

/** @typedef {import('./debian-packages.js').PackageGroup} PackageGroup */

/** @param {PackageGroup[]} groups of Debian packages that the job needs besides those to build */
export async function setUp(...groups) {
  await alone(async (lock) => {
    await installTools(groups, lock);
    await buildNative(lock);
    await buildTypeScript(lock);
  });
}

/** The part of the set-up that reads the sources only. @param {PackageGroup[]} groups */
export async function setUpTools(...groups) {
  await alone((lock) => installTools(groups, lock));
}

/** As {@link setUpTools}, with the TypeScript compiled: the benchmarks are checked against what it makes. @param {PackageGroup[]} groups */
export async function setUpChecks(...groups) {
  await alone(async (lock) => {
    await installTools(groups, lock);
    await buildTypeScript(lock);
  });
}

/** @param {(lock: number) => Promise<void>} work */
const alone = (work) => withLock(root, work);

/**
 * @param {PackageGroup[]} groups
 * @param {number} lock
 */
async function installTools(groups, lock) {
  await installDebianPackages(['build', ...groups]);
  await installNpmPackages(lock);
}

/** @param {number} holds */
async function installNpmPackages(holds) {
  if (npmPackagesAreCurrent()) return;
  await step('npm packages', ({ run }) =>
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'http'], { holds }),
  );
}

/** npm keeps in node_modules a copy of the lock file's entries that it has installed. */
function npmPackagesAreCurrent() {
  const record = path.join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(record)) return false;
  const read = (/** @type {string} */ file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  const installed = read(record);
  const { '': _project, ...wanted } = read(path.join(root, 'package-lock.json'));
  const same = (/** @type {string} */ name) =>
    installed[name].version === wanted[name]?.version && installed[name].integrity === wanted[name].integrity;
  return (
    Object.keys(installed).every(same) &&
    Object.keys(wanted).every((name) => name in installed || wanted[name].optional)
  );
}

/** @param {number} holds */
async function buildNative(holds) {
  const print = fingerprint(
    ['native', 'binding.gyp', 'scripts/native-sources.cjs', 'node_modules/node-addon-api/package.json'],
    [process.version, process.arch, process.execPath],
  );
  const made = ['node_rdma.node', 'rxe_agent'].every((name) =>
    existsSync(path.join(root, 'build', 'Release', name)),
  );
  if (made && isCurrent('native', print)) return;
  await step('native code', async ({ run }) => {
    const nodeGyp = (/** @type {string[]} */ ...args) =>
      run(process.execPath, ['node_modules/node-gyp/bin/node-gyp.js', ...args], {
        env: buildEnvironment(),
        holds,
      });
    await nodeGyp('configure');
    await nodeGyp('build', '--jobs', 'max');
  });
  markCurrent('native', print);
}

/** Where `npm run build:asan` puts its build. */
export const sanitizedBuild = path.join(root, 'build-cmake-asan');

/** @param {number} holds */
async function buildTypeScript(holds) {
  const print = fingerprint([
    'lib',
    'tsconfig.json',
    'tsconfig.build.json',
    'scripts/build-typescript.js',
    'node_modules/rolldown/package.json',
    'node_modules/typescript/package.json',
    'node_modules/@types/node/package.json',
  ]);
  const made = ['dist/index.js', 'dist/index.d.ts', 'build/lib/index.js'].every((file) =>
    existsSync(path.join(root, file)),
  );
  if (made && isCurrent('typescript', print)) return;
  if (!made) rmSync(path.join(root, 'build', 'tsbuildinfo'), { force: true }); // tsc would trust it, and write nothing
  await step('TypeScript', ({ run }) => run('npm', ['run', '--silent', 'build:ts'], { holds }));
  markCurrent('typescript', print);
}

/** Whether an RDMA device is here, of whatever kind. */
export function hasDevice() {
  const devices = '/sys/class/infiniband';
  return existsSync(devices) && readdirSync(devices).length > 0;
}

/**
 * What RDMA needs to run here: the machine's packages only where neither the kernel nor a UML kernel brings a device.
 * @param {string} [engine] an engine that the caller insists on
 * @returns {PackageGroup[]}
 */
export function groupsToRun(engine) {
  const modules = `/lib/modules/${release()}/kernel/drivers/infiniband/sw/rxe`;
  const elsewhere =
    hasDevice() || (process.getuid?.() === 0 && existsSync(modules)) || process.env.NODE_RDMA_RXE_KERNEL;
  return engine === 'qemu' || !elsewhere ? ['run', 'machine'] : ['run'];
}

/**
 * The command line that runs a command where an RDMA device is.
 * @param {string[]} command
 * @param {string[]} [options] for `node-rdma rxe run`
 */
export function onDevice(command, options = []) {
  if (hasDevice()) return command;
  return [process.execPath, path.join(root, 'dist/cli/main.js'), 'rxe', 'run', ...options, '--', ...command];
}
