import { readFileSync } from 'node:fs';
import path from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { expect, inject, test } from 'vitest';
import { mustRun, repository, run } from './project.js';

const files = (await mustRun('tar', ['-tzf', inject('tarball')], repository))
  .trimEnd()
  .split('\n')
  .map((file) => file.replace(/^package\//, ''));

test('the tarball has what runs and what builds', () => {
  const platform = `prebuilds/linux-${process.arch}`;
  const expected = [
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'binding.gyp',
    'dist/index.js',
    'dist/index.d.ts',
    'dist/cli/main.js',
    'scripts/install.js',
    'scripts/native-sources.cjs',
    `${platform}/node-rdma.glibc.node`,
    `${platform}/rxe_agent`,
  ];
  expect(expected.filter((file) => !files.includes(file))).toEqual([]);
});

test('and nothing else', () => {
  const allowed =
    /^(dist\/.+\.(js|js\.map|d\.ts)|native\/.+\.(cc|h)|prebuilds\/.+|lib\/rxe\/kernel\/rxe\.config|scripts\/[\w-]+\.c?js|[^/]+)$/;
  expect(files.filter((file) => !allowed.test(file))).toEqual([]);
  expect(files.filter((file) => /test|bench|build\/|node_modules/.test(file))).toEqual([]);
});

test('every script that the installation imports is there', () => {
  for (const file of files.filter((name) => /^scripts\/.+\.js$/.test(name))) {
    const text = readFileSync(path.join(repository, file), 'utf8');
    for (const [, name] of text.matchAll(/from '\.\/([\w-]+\.js)'/g))
      expect(files).toContain(`scripts/${name}`);
  }
});

test('its code imports nothing but Node, itself and what it depends on', () => {
  const { dependencies } = JSON.parse(readFileSync(path.join(repository, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const code = files.filter((file) => /^dist\/.+\.js$/.test(file));
  const imported = code.flatMap((file) => {
    const text = readFileSync(path.join(repository, file), 'utf8');
    return [...text.matchAll(/^(?:import|export) (?:.+ from )?"([^"]+)";$/gm)].map(([, name]) => name!);
  });
  const known = (name: string) => /^(node:|\.\.?\/)/.test(name) || name in dependencies;
  expect(imported).toContain('node:fs');
  expect(imported.filter((name) => !known(name))).toEqual([]);
});

test('publint finds nothing', async () => {
  const contents = readFileSync(inject('tarball'));
  const tarball = contents.buffer.slice(contents.byteOffset, contents.byteOffset + contents.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
});

test('are the types wrong? no', async () => {
  const attw = path.join(repository, 'node_modules/.bin/attw');
  const { status, stdout, stderr } = await run(
    attw,
    [inject('tarball'), '--profile', 'esm-only', '--no-color'],
    repository,
  );
  expect(status, stdout + stderr).toBe(0);
});
