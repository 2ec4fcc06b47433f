// @ts-check
// One run of vitest, on the host or on a device, and what came of it.
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { root, runInForeground } from './progress.js';
import { onDevice } from './setup.js';
import { count } from './test-report.js';

const reports = path.join(root, 'build', 'test-reports');

/** @param {string} [name] of the runs whose reports go; all by default */
export function clearReports(name = '.') {
  rmSync(path.join(reports, name), { recursive: true, force: true });
}

/**
 * @typedef {object} Run
 * @property {string} name of the folder for its report
 * @property {string[]} projects of vitest.config.ts
 * @property {boolean} device whether it needs one
 * @property {string[]} [filters] parts of a file's path, as vitest understands them
 * @property {string[]} [options] for vitest
 * @property {string} [engine] of the machine with the device
 * @property {string} [kernel] of that machine
 * @property {string[]} [node] the command that stands for node
 */

/**
 * @param {Run} run
 * @returns {Promise<import('./test-report.js').Count>}
 */
export async function runTests({ name, projects, device, filters = [], options = [], engine, kernel, node }) {
  const report = path.join(reports, name, 'report.json');
  mkdirSync(path.dirname(report), { recursive: true });
  const vitest = [
    ...(node ?? [process.execPath]),
    path.join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    ...projects.flatMap((project) => ['--project', project]),
    ...['--reporter', 'default', '--reporter', 'json', '--outputFile.json', report],
    ...(device ? ['--reporter', path.join(root, 'scripts/conformance-reporter.js')] : []),
    ...options,
    ...filters,
  ];
  const machine = [
    ...['--out', path.dirname(report)],
    ...(engine ? ['--engine', engine] : []),
    ...(kernel ? ['--kernel', kernel] : []),
  ];
  return count(report, await runInForeground(device ? onDevice(vitest, machine) : vitest));
}
