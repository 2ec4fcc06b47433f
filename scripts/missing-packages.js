// @ts-check
// Which of the Debian packages that the project needs are missing here, and how to install them.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import path from 'node:path';
import { debianPackages } from './debian-packages.js';

/** @typedef {import('./debian-packages.js').DebianPackage} DebianPackage */
/** @typedef {import('./debian-packages.js').PackageGroup} PackageGroup */

/** @param {PackageGroup[]} groups */
export function missingPackages(groups) {
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

/** @param {DebianPackage[]} missing */
export function howToInstall(missing) {
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
