// @ts-check
// Tells whether something must be made anew: a stamp beside it keeps the hash of all that it was made from.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './progress.js';

/**
 * @param {string[]} inputs files and folders below the root (a folder counts with all that is in it)
 * @param {unknown[]} facts what else the result depends on
 * @returns {string}
 */
export function fingerprint(inputs, ...facts) {
  const hash = createHash('sha256').update(JSON.stringify(facts));
  for (const file of inputs.flatMap(filesOf)) {
    const content = readFileSync(path.join(root, file));
    hash.update(`\0${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/**
 * @param {string} name a file or folder below the root
 * @returns {string[]}
 */
export function filesOf(name) {
  const full = path.join(root, name);
  if (!existsSync(full)) return [];
  if (!statSync(full).isDirectory()) return [name];
  return readdirSync(full)
    .sort()
    .flatMap((child) => filesOf(path.join(name, child)));
}

/**
 * @param {string} name of the stamp
 * @param {string} print
 */
export const isCurrent = (name, print) =>
  existsSync(stamp(name)) && readFileSync(stamp(name), 'utf8') === print;

/**
 * @param {string} name of the stamp
 * @param {string} print
 */
export function markCurrent(name, print) {
  mkdirSync(path.dirname(stamp(name)), { recursive: true });
  writeFileSync(stamp(name), print);
}

/** @param {string} name */
const stamp = (name) => path.join(root, 'build', 'stamps', name);
