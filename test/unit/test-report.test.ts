import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { count, inWords } from '../../scripts/test-report.js';

const folder = mkdtempSync(path.join(tmpdir(), 'node-rdma-report-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface File {
  status: string;
  tests: string[];
}

function report(...files: File[]): string {
  const file = path.join(folder, 'report.json');
  const testResults = files.map(({ status, tests }) => ({
    status,
    assertionResults: tests.map((result) => ({ status: result })),
  }));
  writeFileSync(file, JSON.stringify({ testResults }));
  return file;
}

const good = { status: 'passed', tests: ['passed', 'passed', 'skipped', 'todo', 'pending'] };

test('what passed, failed and did not run is counted over all files', () => {
  const bad = { status: 'failed', tests: ['failed', 'passed', 'failed'] };
  expect(count(report(good, bad), 1)).toEqual({ passed: 3, failed: 2, skipped: 3 });
});

test('a file that does not load is a failure', () => {
  expect(count(report(good, { status: 'failed', tests: [] }), 1)).toEqual({
    passed: 2,
    failed: 1,
    skipped: 3,
  });
});

test('a run that fails though no test did is a failure', () => {
  expect(count(report(good), 1)).toEqual({ passed: 2, failed: 1, skipped: 3 });
  expect(count(report(good), 0)).toEqual({ passed: 2, failed: 0, skipped: 3 });
});

test('a run without a report is a failure, whatever its status', () => {
  expect(count(path.join(folder, 'none.json'), 0)).toEqual({ passed: 0, failed: 1, skipped: 0 });
});

test('in words', () => {
  expect(inWords({ passed: 3, failed: 0, skipped: 1 })).toBe('3 passed, 0 failed, 1 skipped');
});
