// @ts-check
// Installs the Debian packages that are missing, or says how.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { debianPackages } from './debian-packages.js';
import { StepError, step } from './progress.js';

/** @typedef {import('./debian-packages.js').PackageGroup} PackageGroup */

/** @param {PackageGroup[]} groups */
export async function installDebianPackages(groups) {
  const missing = missingPackages(groups);
  if (missing.length === 0) return;
  const asRoot = waysToBeRoot();
  if (!asRoot || !inPath('apt-get')) throw new StepError(howToInstall(missing));

  await step(`Debian packages: ${missing.map(({ name }) => name).join(' ')}`, async ({ run }) => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const aptGet = (/** @type {string[]} */ ...args) => {
      const [command, ...rest] = [
        ...asRoot,
        'env',
        'DEBIAN_FRONTEND=noninteractive',
        'apt-get',
        '-q',
        ...args,
      ];
      return run(/** @type {string} */ (command), rest, { env });
    };
    const install = () =>
      aptGet('install', '--yes', '--no-install-recommends', ...missing.map(({ name }) => name));

    if (!hasPackageLists()) await aptGet('update');
    // Old lists may name versions that the archive has replaced.
    await install().catch(async () => (await aptGet('update'), install()));
  });
}

/** @param {PackageGroup[]} groups */
function missingPackages(groups) {
  const wanted = groups.flatMap((group) => debianPackages[group]);
  const names = wanted.map(({ name }) => name);
  const query = spawnSync('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\n', ...names], {
    encoding: 'utf8',
  });
  const installed = new Set(query.stdout?.match(/^\S+(?= installed$)/gm));
  return wanted.filter(
    ({ name, command, file }) =>
      !installed.has(name) && !(command && inPath(command)) && !(file && existsSync(file)),
  );
}

/** @returns {string[] | undefined} what to put before a command that only root may run */
function waysToBeRoot() {
  if (process.getuid?.() === 0) return [];
  if (spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0) return ['sudo', '-n'];
  return undefined;
}

/** @param {import('./debian-packages.js').DebianPackage[]} missing */
function howToInstall(missing) {
  const width = Math.max(...missing.map(({ name }) => name.length));
  return [
    'These Debian packages are missing:',
    ...missing.map(({ name, why }) => `  ${name.padEnd(width)}  ${why}`),
    '',
    inPath('apt-get')
      ? 'Installing them needs root, or sudo without a password. Run this, then try again:'
      : 'This system has no apt-get. Install what corresponds to them; on Debian that is:',
    '',
    `  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing.map(({ name }) => name).join(' ')}`,
  ].join('\n');
}

function hasPackageLists() {
  const lists = '/var/lib/apt/lists';
  return existsSync(lists) && readdirSync(lists).some((name) => /_Packages(\.|$)/.test(name));
}

/** @param {string} command */
export function inPath(command) {
  return (process.env.PATH ?? '').split(':').some((folder) => {
    try {
      accessSync(path.join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
