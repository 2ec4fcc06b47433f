// @ts-check
// node scripts/with-sanitizers.js COMMAND…: runs a Node program with the addon that `npm run build:asan` built. A finding
// ends the program. AddressSanitizer does not start in a UML machine; on the qemu engine it does.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { runInForeground, runMain, StepError } from './progress.js';
import { sanitizedBuild } from './setup.js';

await runMain(async () => {
  const command = process.argv.slice(2);
  if (command.length === 0) throw new StepError('Usage: node scripts/with-sanitizers.js COMMAND…');
  const addon = path.join(sanitizedBuild, 'Release', 'node_rdma.node');
  if (!existsSync(addon)) throw new StepError(`${addon} is not there. Build it: npm run build:asan`);

  // Node itself is not sanitized, so the runtime must come before it, and Node's own memory at exit is no leak of ours.
  const runtime = spawnSync('g++', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).stdout.trim();
  const env = {
    ...process.env,
    NODE_RDMA_ADDON: addon,
    LD_PRELOAD: [runtime, process.env.LD_PRELOAD].filter(Boolean).join(':'),
    ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? 'detect_leaks=0',
    UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? 'print_stacktrace=1',
  };
  return runInForeground(command, { env });
});
