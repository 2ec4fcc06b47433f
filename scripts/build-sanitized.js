// @ts-check
// npm run build:asan: the addon with AddressSanitizer and UndefinedBehaviorSanitizer, for scripts/with-sanitizers.js.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildEnvironment } from './node-headers.js';
import { root, runMain, step } from './progress.js';
import { sanitizedBuild, setUpTools } from './setup.js';

export async function buildSanitized() {
  await setUpTools('check');
  await step('addon with sanitizers', ({ run }) =>
    run(
      path.join(root, 'node_modules/.bin/cmake-js'),
      ['compile', '--out', sanitizedBuild, '--CDNODE_RDMA_SANITIZE=ON', '--parallel', '2'],
      { env: buildEnvironment() },
    ),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runMain(buildSanitized);
