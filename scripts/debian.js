// @ts-check
// Installs the Debian packages that are missing, or says how.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { howToInstall, inPath, missingPackages } from './missing-packages.js';
import { StepError, step } from './progress.js';

/** @typedef {import('./debian-packages.js').PackageGroup} PackageGroup */

/** @param {PackageGroup[]} groups */
export async function installDebianPackages(groups) {
  const missing = missingPackages(groups);
  if (missing.length === 0) return;
  const asRoot = waysToBeRoot();
  if (!asRoot || !inPath('apt-get')) throw new StepError(howToInstall(missing));

  await step('Debian packages', async ({ run }) => {
    process.stderr.write(`  installing ${missing.map(({ name }) => name).join(' ')}\n`);
    const aptGet = (/** @type {string[]} */ ...args) => {
      const command = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', ...args];
      return run(/** @type {string} */ (command[0]), command.slice(1));
    };
    const install = () =>
      aptGet('install', '--yes', '--no-install-recommends', ...missing.map(({ name }) => name));

    if (!hasPackageLists()) await aptGet('update');
    // Old lists may name versions that the archive has replaced.
    await install().catch(async () => (await aptGet('update'), install()));
  });
}

/** @returns {string[] | undefined} what to put before a command that only root may run */
function waysToBeRoot() {
  if (process.getuid?.() === 0) return [];
  if (spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0) return ['sudo', '-n'];
  return undefined;
}

function hasPackageLists() {
  const lists = '/var/lib/apt/lists';
  return existsSync(lists) && readdirSync(lists).some((name) => /_Packages(\.|$)/.test(name));
}
