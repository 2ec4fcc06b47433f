// @ts-check
// A reporter of vitest: after a run that had cases of test/rxe/conformance, the table of what conforms.
import Table from 'cli-table3';
import { release } from 'node:os';

/** @typedef {{ cases: number, passed: number, refused: number, failed: number, answers: Set<string> }} Row */

export default class ConformanceReporter {
  /** @param {ReadonlyArray<import('vitest/node').TestModule>} modules */
  onTestRunEnd(modules) {
    const rows = collect(modules);
    if (rows.size > 0) process.stdout.write(`\n${print(rows)}\n`);
  }
}

/**
 * @param {ReadonlyArray<import('vitest/node').TestModule>} modules
 * @returns {Map<string, Row>}
 */
function collect(modules) {
  const rows = new Map();
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const mark = /** @type {any} */ (test.meta()).conformance;
      if (!mark) continue;
      const row = rows.get(mark.capability) ?? {
        cases: 0,
        passed: 0,
        refused: 0,
        failed: 0,
        answers: new Set(),
      };
      rows.set(mark.capability, row);
      ++row.cases;
      if (test.result().state !== 'passed') ++row.failed;
      else if (mark.refused) ++row.refused;
      else ++row.passed;
      for (const name of mark.answers) row.answers.add(name);
    }
  }
  return rows;
}

/** @param {Map<string, Row>} rows */
function print(rows) {
  const table = new Table({
    head: ['capability', 'cases', 'passed', 'refused by the device', 'failed', 'of rdma-core'],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [], compact: true },
  });
  const total = { cases: 0, passed: 0, refused: 0, failed: 0, answers: 0 };
  for (const [capability, { cases, passed, refused, failed, answers }] of rows) {
    table.push([capability, cases, passed, refused, failed, answers.size]);
    total.cases += cases;
    total.passed += passed;
    total.refused += refused;
    total.failed += failed;
    total.answers += answers.size;
  }
  table.push(['total', total.cases, total.passed, total.refused, total.failed, total.answers]);
  return `Conformance, on Linux ${release()}:\n${table.toString()}
Refused by the device: the exact refusal is asserted. Of rdma-core: cases of its own suite that are answered.`;
}
