// @ts-check
// npm start: sets up, then shows RDMA at work, on a device of this machine or else on Soft-RoCE.
import path from 'node:path';
import { root, runInForeground, runMain } from './progress.js';
import { groupsToRun, onDevice, setUp } from './setup.js';

await runMain(async () => {
  await setUp(...groupsToRun());
  const demonstration = [
    process.execPath,
    path.join(root, 'dist/cli/main.js'),
    'demo',
    ...process.argv.slice(2),
  ];
  return runInForeground(onDevice(demonstration));
});
