// @ts-check
// Counts what a run of vitest left in its JSON report.
import { existsSync, readFileSync } from 'node:fs';

/** @typedef {{ passed: number, failed: number, skipped: number }} Count */

/**
 * A part that leaves no report, or fails beside its tests (a file that does not load, an error outside any test), counts
 * as a failure.
 * @param {string} report
 * @param {number} status of vitest
 * @returns {Count}
 */
export function count(report, status) {
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 };
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const counted = { passed: 0, failed: 0, skipped: 0 };
  for (const { status: ofFile, assertionResults } of testResults) {
    const failed = assertionResults.filter((/** @type {any} */ test) => test.status === 'failed').length;
    const passed = assertionResults.filter((/** @type {any} */ test) => test.status === 'passed').length;
    counted.passed += passed;
    counted.failed += ofFile === 'failed' ? Math.max(failed, 1) : failed;
    counted.skipped += assertionResults.length - passed - failed;
  }
  if (status !== 0 && counted.failed === 0) counted.failed = 1;
  return counted;
}

/** @param {Count} counted */
export function inWords({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
