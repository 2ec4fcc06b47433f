// @ts-check
// npm run prebuilds: what a release ships ready-made for this platform, in prebuilds/. It is the build that the set-up made
// and the tests tested: prebuildify strips it, and names it so that node-gyp-build finds it.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { root, runMain, step } from './progress.js';
import { setUp } from './setup.js';

await runMain(async () => {
  await setUp();
  await step('prebuilds', async ({ run }) => {
    const aside = path.join(root, 'build', 'prebuilds'); // prebuildify takes the addon away from where it was built
    const built = path.join(aside, 'build', 'Release');
    const made = path.join(root, 'prebuilds', `${process.platform}-${process.arch}`);
    for (const folder of [aside, made]) rmSync(folder, { recursive: true, force: true });
    mkdirSync(built, { recursive: true });
    copyFileSync(path.join(root, 'build/Release/node_rdma.node'), path.join(built, 'node_rdma.node'));
    copyFileSync(path.join(root, 'package.json'), path.join(aside, 'package.json'));

    // One addon for every Node from version 20 on (Node-API), for the C library that it was linked with.
    const options = ['--napi', '--strip', '--tag-libc', '--target', process.version, '--node-gyp', 'true'];
    await run(path.join(root, 'node_modules/.bin/prebuildify'), ['--cwd', aside, '--out', root, ...options]);
    await run('strip', ['-o', path.join(made, 'rxe_agent'), path.join(root, 'build/Release/rxe_agent')]);
  });
});
