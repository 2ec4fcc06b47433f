import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, test } from 'vitest';
import { copyOf, installedIn, pathWith, run } from './project.js';

const prebuilds = (project: string) => path.join(installedIn(project), 'prebuilds');
const rebuild = (project: string, env?: NodeJS.ProcessEnv) =>
  run('npm', ['rebuild', 'node-rdma'], project, env);
const loadAddon = `import { listDevices } from 'node-rdma'; console.log(listDevices().length);`;

test(
  'where no prebuild is for this platform, the installation builds the addon',
  { timeout: 600_000 },
  async () => {
    const project = copyOf(inject('project'));
    rmSync(prebuilds(project), { recursive: true });
    const built = await rebuild(project, { CXXFLAGS: '-O0' }); // quicker, and all else is the same
    expect(built.status, built.stderr).toBe(0);
    expect(readdirSync(path.join(installedIn(project), 'build/Release'))).toEqual(
      expect.arrayContaining(['node_rdma.node', 'rxe_agent']),
    );
    const { status, stderr } = await run(process.execPath, ['--input-type=module', '-e', loadAddon], project);
    expect(status, stderr).toBe(0);
  },
);

test('where neither can be, it says why and what to install', async () => {
  const project = copyOf(inject('project'));
  rmSync(prebuilds(project), { recursive: true });
  const { status, stderr } = await rebuild(project, {
    PATH: pathWith(inject('workspace'), 'node', 'npm', 'sh'),
  });
  expect(status).not.toBe(0);
  expect(stderr).toContain('no prebuilt addon fits this system, and none can be built here');
  expect(stderr).toMatch(/apt-get install --no-install-recommends .*g\+\+/);
  expect(existsSync(path.join(installedIn(project), 'build'))).toBe(false);
});

test('a prebuild that does not fit this system is not kept', async () => {
  const project = copyOf(inject('project'));
  const folder = path.join(prebuilds(project), `linux-${process.arch}`);
  const [addon] = readdirSync(folder).filter((name) => name.endsWith('.node'));
  writeFileSync(path.join(folder, addon!), 'not a shared object');
  const { status, stderr } = await rebuild(project, {
    PATH: pathWith(inject('workspace'), 'node', 'npm', 'sh'),
  });
  expect(status).not.toBe(0);
  expect(stderr).toContain(`${addon} does not fit this system`);
  expect(stderr).toContain('building the addon from source');
});

test('an installation that ran no scripts says on the first call what to do', async () => {
  const project = copyOf(inject('project'));
  rmSync(prebuilds(project), { recursive: true });
  const { status, stderr } = await run(process.execPath, ['--input-type=module', '-e', loadAddon], project);
  expect(status).not.toBe(0);
  expect(stderr).toContain('ERR_RDMA_LOAD');
  expect(stderr).toContain('npm rebuild node-rdma');
});
