// @ts-check
// npm run test:asan [-- FILTER…]: the tests on a device with AddressSanitizer and UndefinedBehaviorSanitizer in the addon. On a
// host without a device in a machine of the engine qemu: AddressSanitizer does not start in a UML process.
import path from 'node:path';
import { buildSanitized } from './build-sanitized.js';
import { root, runMain } from './progress.js';
import { clearReports, runTests } from './run-tests.js';
import { groupsToRun, setUp } from './setup.js';
import { inWords } from './test-report.js';

await runMain(async () => {
  await setUp('test', ...groupsToRun('qemu'));
  await buildSanitized();
  clearReports('asan');
  const counted = await runTests({
    name: 'asan',
    projects: ['rxe'],
    device: true,
    filters: process.argv.slice(2),
    engine: 'qemu',
    node: [process.execPath, path.join(root, 'scripts/with-sanitizers.js'), process.execPath],
    // A process of its own for the tests does not start within the minute that vitest gives it, under emulation and sanitizers.
    options: ['--pool', 'threads'],
  });
  console.log(inWords(counted));
  return counted.failed > 0 || counted.passed === 0 ? 1 : 0;
});
