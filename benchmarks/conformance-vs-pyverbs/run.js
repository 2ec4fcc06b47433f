// @ts-check
// node benchmarks/conformance-vs-pyverbs/run.js [--engine uml|qemu --kernel KERNEL]: what pyverbs can do on Soft-RoCE and what we can, side
// by side. Fails where pyverbs can and we cannot.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInForeground, runMain } from '../../scripts/progress.js';
import { groupsToRun, onDevice, setUp } from '../../scripts/setup.js';

await runMain(async () => {
  const machine = process.argv.slice(2);
  await setUp('bench', ...groupsToRun(machine[machine.indexOf('--engine') + 1]));
  const inside = path.join(path.dirname(fileURLToPath(import.meta.url)), 'inside.js');
  return runInForeground(onDevice([process.execPath, inside], machine));
});
