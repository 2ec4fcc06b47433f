import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { copyOf, installedIn, run } from './project.js';

const addonIn = (project: string) => {
  const folder = path.join(installedIn(project), `prebuilds/linux-${process.arch}`);
  return path.join(
    folder,
    readdirSync(folder).find((name) => name.endsWith('.node'))!,
  );
};
const libraries = new Set(
  readFileSync(addonIn(inject('project')), 'latin1').match(/lib(ibverbs|rdmacm)(?=\.so\.1\0)/g),
);

/**
 * The installed project as a machine sees it that lacks a library: the addon asks the loader for a name of the same length
 * that no machine has.
 */
function projectWithout(library: string): string {
  const project = copyOf(inject('project'));
  const file = addonIn(project);
  const addon = readFileSync(file, 'latin1');
  writeFileSync(file, addon.replaceAll(`${library}.so.1\0`, `${library}.so.0\0`), 'latin1');
  return project;
}

test("the addon uses the system's libibverbs", () => {
  expect(libraries).toContain('libibverbs');
});

describe.each([...libraries])('where %s is not installed', (library) => {
  const project = projectWithout(library);
  const evaluate = (script: string) => run(process.execPath, ['--input-type=module', '-e', script], project);

  test('the package can be installed, with the prebuilt addon', async () => {
    const { status, stdout, stderr } = await run('npm', ['rebuild', 'node-rdma'], project);
    expect(status, stderr).toBe(0);
    expect(stdout + stderr).not.toContain('building');
    expect(readdirSync(installedIn(project))).not.toContain('build');
  });

  test('import succeeds', async () => {
    const { status, stdout, stderr } = await evaluate(
      `import * as rdma from 'node-rdma'; console.log(typeof rdma.listDevices);`,
    );
    expect(status, stderr).toBe(0);
    expect(stdout.trim()).toBe('function');
  });

  test('the first call tells what was tried and which Debian package is missing', async () => {
    const { status, stdout, stderr } = await evaluate(`
      import { listDevices } from 'node-rdma';
      try {
        listDevices();
      } catch ({ name, code, message }) {
        console.log(JSON.stringify({ name, code, message }));
      }
    `);
    expect(status, stderr).toBe(0);
    const { name, code, message } = JSON.parse(stdout) as Record<string, string>;
    expect({ name, code }).toEqual({ name: 'RdmaError', code: 'ERR_RDMA_LOAD' });
    expect(message).toContain(library);
    expect(message).toMatch(/apt-get install .*libibverbs1 librdmacm1/);
    expect(message).toContain(path.join(installedIn(project), 'prebuilds'));
  });
});
