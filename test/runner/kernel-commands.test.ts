import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { findUmlKernel } from '../../lib/rxe/kernel/uml.js';

const main = join(import.meta.dirname, '../../dist/cli/main.js');
const umlKernel = await findUmlKernel();

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kernel-commands-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** `rxe kernel …` with an empty cache. */
function kernel(args: string[], environment: NodeJS.ProcessEnv = {}) {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    NODE_RDMA_CACHE: join(folder, 'cache'),
    ...environment,
  };
  return spawnSync(process.execPath, [main, 'rxe', 'kernel', ...args], { env, encoding: 'utf8' });
}

describe('rxe kernel path', () => {
  test('without a kernel says how to get one', () => {
    const { status, stdout, stderr } = kernel(['path']);
    expect({ status, stdout }).toEqual({ status: 202, stdout: '' });
    expect(stderr).toContain('node-rdma rxe kernel build');
  });

  test.runIf(umlKernel)('prints the kernel that the environment names', () => {
    const { status, stdout } = kernel(['path'], { NODE_RDMA_RXE_KERNEL: umlKernel!.path });
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${umlKernel!.path}\n` });
  });

  test.each([
    ['/no/such/kernel', 'does not exist'],
    ['/usr', 'is not a file'],
    ['/etc/passwd', 'is not executable'],
    ['/bin/true', 'is not a User-Mode Linux kernel'],
  ])('refuses %s: it %s', (path, complaint) => {
    const { status, stderr } = kernel(['path'], { NODE_RDMA_RXE_KERNEL: path });
    expect(status).toBe(202);
    expect(stderr).toContain(`NODE_RDMA_RXE_KERNEL: ${path} ${complaint}`);
  });

  test('refuses an executable script', () => {
    const script = join(folder, 'script');
    writeFileSync(script, '#!/bin/sh\necho 6.1.0\n', { mode: 0o755 });
    expect(kernel(['path', '--kernel', script]).stderr).toContain('not a Linux program');
  });
});

describe('rxe kernel list', () => {
  test('names both ways to get a kernel when there is none', () => {
    const listed = JSON.parse(kernel(['list', '--json']).stdout) as { origin: string }[];
    // Kernels that are installed on this machine are listed, whatever the cache has.
    expect(listed.filter(({ origin }) => origin !== 'installed')).toEqual([]);
    if (listed.length === 0) expect(kernel(['list']).stdout).toMatch(/rxe kernel build.*rxe kernel fetch/);
  });

  test.runIf(umlKernel)('marks the kernel that uml takes', () => {
    const { stdout } = kernel(['list', '--json'], { NODE_RDMA_RXE_KERNEL: umlKernel!.path });
    expect(JSON.parse(stdout)).toContainEqual({
      engine: 'uml',
      release: umlKernel!.release,
      path: umlKernel!.path,
      origin: 'NODE_RDMA_RXE_KERNEL',
      chosen: true,
    });
  });
});

describe('rxe kernel build', () => {
  test('names all the packages that it misses in one command', () => {
    const { status, stderr } = kernel(['build'], { PATH: join(folder, 'nothing') });
    expect(status).toBe(208);
    expect(stderr).toMatch(/apt-get install --no-install-recommends bc bison flex gcc binutils make/);
  });

  test.each([
    [['--version', 'six'], /version/],
    [['--jobs', '0'], /jobs/],
  ])('refuses %j', (args, complaint) => {
    const { status, stderr } = kernel(['build', ...args]);
    expect(status).toBe(125);
    expect(stderr).toMatch(complaint);
  });
});
