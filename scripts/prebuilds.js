// @ts-check
// npm run prebuilds: what a release ships ready-made for this platform, in prebuilds/. Built aside, so that the build that
// one works with stays as it is.
import { copyFileSync, cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fingerprint, filesOf, isCurrent, markCurrent } from './fingerprint.js';
import { buildEnvironment } from './node-headers.js';
import { root, runMain, step } from './progress.js';
import { setUpTools } from './setup.js';

const sources = ['native', 'binding.gyp', 'package.json', 'scripts/native-sources.cjs'];
const platform = `${process.platform}-${process.arch}`;
const made = path.join(root, 'prebuilds', platform);

await runMain(async () => {
  await setUpTools();
  const print = fingerprint(sources, process.version, process.arch);
  if (filesOf(`prebuilds/${platform}`).length === 2 && isCurrent('prebuilds', print)) return;

  await step('prebuilds', async ({ run }) => {
    const aside = path.join(root, 'build', 'prebuilds');
    for (const folder of [aside, made]) rmSync(folder, { recursive: true, force: true });
    mkdirSync(aside, { recursive: true });
    for (const source of sources)
      cpSync(path.join(root, source), path.join(aside, source), { recursive: true });
    symlinkSync(path.join(root, 'node_modules'), path.join(aside, 'node_modules'));

    // One addon for every Node from version 20 on (Node-API), for the C library that it was linked with.
    const options = [
      '--cwd',
      aside,
      '--out',
      root,
      '--napi',
      '--strip',
      '--tag-libc',
      '--target',
      process.version,
    ];
    await run(path.join(root, 'node_modules/.bin/prebuildify'), options, {
      env: { JOBS: 'max', ...buildEnvironment() },
    });
    copyFileSync(path.join(aside, 'build/Release/rxe_agent'), path.join(made, 'rxe_agent'));
    await run('strip', [path.join(made, 'rxe_agent')]);
  });
  markCurrent('prebuilds', print);
});
