// @ts-check
// npm run build:ts. From lib/ come: build/lib/, file by file, for the tests of what is inside; the types of dist/; and the code of dist/,
// the package, in as few files as its entries allow. Each file costs its user time at the start: in all, three times that of one.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { filesOf } from './fingerprint.js';
import { root } from './progress.js';

/** What `exports` and `bin` of package.json name, and the program that keeps a machine up. */
const entries = ['index', 'net/index', 'perf/index', 'rxe/index', 'cli/main', 'rxe/kept/owner'];

const typescript = path.join(root, 'node_modules/typescript/bin/tsc');
const { status } = spawnSync(process.execPath, [typescript, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);
prune('build/lib', /\.js(\.map)?$/);
prune('dist', /\.d\.ts$/);

const bundle = await rolldown({
  cwd: root,
  input: Object.fromEntries(entries.map((entry) => [entry, `lib/${entry}.ts`])),
  platform: 'node',
  // What `using` is made of for Node 20 becomes a part of it.
  external: (id) => !/^[./]|^@oxc-project\/runtime\//.test(id),
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  tsconfig: 'tsconfig.json',
  transform: { target: 'es2022' },
});
const { output } = await bundle.write({
  dir: 'dist',
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  sourcemap: true,
});
await bundle.close();
const written = new Set(output.map(({ fileName }) => path.join('dist', fileName)));
for (const file of filesOf('dist')) {
  if (/\.js(\.map)?$/.test(file) && !written.has(file)) rmSync(path.join(root, file));
}

/**
 * Removes what tsc made of sources that are gone, which it never does itself.
 *
 * @param {string} folder
 * @param {RegExp} made the ends of its files
 */
function prune(folder, made) {
  for (const file of filesOf(folder)) {
    const source = `lib${file.slice(folder.length).replace(made, '.ts')}`;
    if (made.test(file) && !existsSync(path.join(root, source))) rmSync(path.join(root, file));
  }
}
