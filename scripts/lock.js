// @ts-check
// One holder at a time, among processes. The lock belongs to an open descriptor, so that it ends with its holder, however that ends.
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { StepError } from './progress.js';

/**
 * Runs `work` while holding the lock on `folder`. Waits for another holder, and says so.
 * @template T
 * @param {string} folder
 * @param {(descriptor: number) => Promise<T>} work gets the descriptor that holds the lock
 * @returns {Promise<T>}
 */
export async function withLock(folder, work) {
  const descriptor = openSync(folder, 'r');
  try {
    if (!flock(descriptor, '--nonblock')) {
      process.stderr.write('  waiting for another set-up in this folder to end\n');
      flock(descriptor);
    }
    return await work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * flock(1) locks what it inherits, and the lock stays when it is gone: it belongs to our descriptor.
 * @param {number} descriptor
 * @param {string[]} options
 * @returns {boolean} false when another holds it
 */
function flock(descriptor, ...options) {
  const { error, status } = spawnSync('flock', [...options, '3'], {
    stdio: ['ignore', 'inherit', 'inherit', descriptor],
  });
  if (error) throw new StepError(`flock does not start (${error.message}): install util-linux`);
  if (status !== 0 && options.length === 0) throw new StepError(`flock failed with status ${status}`);
  return status === 0;
}
