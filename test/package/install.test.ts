import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, test } from 'vitest';
import { installedIn, mustRun, repository, run } from './project.js';

const project = inject('project');
const manifest = JSON.parse(readFileSync(path.join(repository, 'package.json'), 'utf8')) as {
  version: string;
  exports: Record<string, { types?: string }>;
};
const entries = Object.entries(manifest.exports)
  .filter(([, target]) => target.types !== undefined)
  .map(([name]) => path.posix.join('node-rdma', name));

const node = (...args: string[]) => run(process.execPath, args, project);

/** Asks for the devices, and says which addon that loaded. */
const listDevices = `
  import { listDevices } from 'node-rdma';
  const devices = listDevices();
  const { sharedObjects } = process.report.getReport();
  console.log(JSON.stringify({ devices: devices.length, addons: sharedObjects.filter((file) => file.endsWith('.node')) }));
`;

test.each(entries)('%s is imported from ESM', async (entry) => {
  const script = `import * as all from '${entry}'; console.log(Object.keys(all).length);`;
  const { status, stdout, stderr } = await node('--input-type=module', '-e', script);
  expect(status, stderr).toBe(0);
  expect(Number(stdout)).toBeGreaterThan(0);
});

test('an installation uses the prebuilt addon, and builds none', async () => {
  expect(existsSync(path.join(installedIn(project), 'build'))).toBe(false);
  const { status, stdout, stderr } = await node('--input-type=module', '-e', listDevices);
  expect(status, stderr).toBe(0);
  expect((JSON.parse(stdout) as { addons: string[] }).addons).toEqual([
    path.join(installedIn(project), `prebuilds/linux-${process.arch}/node-rdma.glibc.node`),
  ]);
});

test('require works where Node can require ESM, and says why elsewhere', async () => {
  const { status, stderr } = await node('-e', `require('node-rdma')`);
  if (process.features.require_module) expect(status, stderr).toBe(0);
  else expect(stderr).toContain('ERR_REQUIRE_ESM');
});

test('import() is the way from CommonJS', async () => {
  const { status, stderr } = await node('-e', `import('node-rdma').then((all) => all.listDevices())`);
  expect(status, stderr).toBe(0);
});

test('a strict TypeScript project compiles against the types, with their own checked', async () => {
  const types = path.join(project, 'node_modules/@types/node');
  mkdirSync(path.dirname(types), { recursive: true });
  cpSync(path.join(repository, 'node_modules/@types/node'), types, { recursive: true });
  cpSync(
    path.join(repository, 'node_modules/undici-types'),
    path.join(project, 'node_modules/undici-types'),
    {
      recursive: true,
    },
  );
  const imports = entries.map((entry, index) => `import * as entry${index} from '${entry}';`).join('\n');
  const uses = entries.map((_, index) => `console.log(entry${index});`).join('\n');
  const wrong = `import { listDevices } from 'node-rdma';\n// @ts-expect-error: the types are real\nexport const devices: string = listDevices();\n`;
  writeFileSync(path.join(project, 'uses.mts'), `${imports}\n${uses}\n`);
  writeFileSync(path.join(project, 'misuses.mts'), wrong);

  const tsc = path.join(repository, 'node_modules/.bin/tsc');
  const options = [
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--lib',
    'es2023,esnext.disposable',
  ];
  const { status, stdout } = await run(tsc, [...options, 'uses.mts', 'misuses.mts'], project);
  expect(status, stdout).toBe(0);
});

test('the command is there', async () => {
  const command = path.join(project, 'node_modules/.bin/node-rdma');
  expect((await mustRun(command, ['--version'], project)).trim()).toBe(manifest.version);
  expect(await mustRun(command, ['--help'], project)).toContain('rxe');
});
