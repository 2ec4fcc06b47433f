import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { prepareDistributionKernel, type DistributionKernel } from '../../lib/rxe/kernel/distribution.js';
import { parseModuleInfo } from '../../lib/rxe/kernel/modules.js';

const root = join(import.meta.dirname, '../..');

let folder: string;
/** The distribution's own kernel, in the cache of whoever runs the tests: fetched if it is not there. */
let kernel: DistributionKernel;
/** A kernel package as it comes from the distribution, but with few modules. */
let packageFile: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kernel-packages-'));
  kernel = await prepareDistributionKernel();
  packageFile = makePackage('whole', kernel.release, (tree) => {
    for (const module of kernel.modules) cpSync(module, join(tree, basename(module)));
  });
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Builds a `.deb` with the kernel's image and the modules that `fill` puts in a folder. */
function makePackage(name: string, release: string, fill: (tree: string) => void): string {
  const content = join(folder, `${name}-content`);
  const tree = join(content, 'lib/modules', release, 'kernel');
  mkdirSync(tree, { recursive: true });
  mkdirSync(join(content, 'boot'));
  mkdirSync(join(content, 'DEBIAN'));
  cpSync(kernel.vmlinuz, join(content, 'boot', `vmlinuz-${release}`));
  fill(tree);
  const fields = {
    Package: name,
    Version: '1',
    Architecture: 'amd64',
    Maintainer: 'nobody',
    Description: name,
  };
  const control = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`);
  writeFileSync(join(content, 'DEBIAN/control'), control.join(''));
  chmodSync(join(content, 'DEBIAN'), 0o755);
  const file = join(folder, `${name}.deb`);
  const { status, stderr } = spawnSync('dpkg-deb', ['-Znone', '--build', content, file]);
  expect(status, stderr.toString()).toBe(0);
  return file;
}

describe('the distribution kernel', () => {
  test('has each module after all that it depends on', () => {
    const names = kernel.modules.map((path) => basename(path, '.ko'));
    expect(names).toContain('rdma_rxe');
    for (const [index, path] of kernel.modules.entries()) {
      const { dependsOn } = parseModuleInfo(readFileSync(path));
      expect(names.slice(0, index)).toEqual(expect.arrayContaining(dependsOn));
    }
  });

  test('is at hand without a network once it is in the cache', async () => {
    const start = performance.now();
    expect(await prepareDistributionKernel()).toEqual(kernel);
    expect(performance.now() - start).toBeLessThan(1000);
  });
});

describe('a kernel by its file', () => {
  let cache: string;
  let before: string | undefined;

  beforeEach(() => {
    cache = mkdtempSync(join(folder, 'cache-'));
    before = process.env.NODE_RDMA_CACHE;
    process.env.NODE_RDMA_CACHE = cache;
  });

  afterEach(() => {
    if (before === undefined) delete process.env.NODE_RDMA_CACHE;
    else process.env.NODE_RDMA_CACHE = before;
  });

  /** Another process that prepares the same package, in the same cache. */
  function prepareElsewhere(file: string) {
    const module = pathToFileURL(join(root, 'build/lib/rxe/kernel/distribution.js')).href;
    const code = `import { prepareDistributionKernel } from ${JSON.stringify(module)};
      const onProgress = (line) => console.error(line);
      const kernel = await prepareDistributionKernel({ kernel: ${JSON.stringify(file)}, onProgress });
      console.log(kernel.modules.length);`;
    return spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  test('a package file gives image and modules, in the same order', async () => {
    const prepared = await prepareDistributionKernel({ kernel: packageFile });
    expect(prepared.release).toBe(kernel.release);
    expect(prepared.modules.map((path) => basename(path))).toEqual(
      kernel.modules.map((path) => basename(path)),
    );
    expect(readFileSync(prepared.vmlinuz).equals(readFileSync(kernel.vmlinuz))).toBe(true);
  });

  test('an installed image finds its modules beside it', async () => {
    const image = join(folder, 'whole-content/boot', `vmlinuz-${kernel.release}`);
    const prepared = await prepareDistributionKernel({ kernel: image });
    expect(prepared.modules).toHaveLength(kernel.modules.length);
  });

  test('several processes at once make it once', async () => {
    const others = [1, 2, 3].map(() => prepareElsewhere(packageFile));
    const [outputs, progress] = await Promise.all([
      Promise.all(others.map((child) => text(child.stdout))),
      Promise.all(others.map((child) => text(child.stderr))),
    ]);
    expect(outputs).toEqual(Array(3).fill(`${kernel.modules.length}\n`));
    expect(progress.filter((lines) => lines.includes('unpacking'))).toHaveLength(1);
  });

  test('a maker that is killed leaves nothing that stops the next', async () => {
    const first = prepareElsewhere(packageFile);
    // The lock is taken before anything is said.
    await new Promise((resolve) => first.stderr.once('data', resolve));
    first.kill('SIGKILL');
    const second = await prepareDistributionKernel({ kernel: packageFile });
    expect(second.modules).toHaveLength(kernel.modules.length);
    const unpacked = prepareElsewhere(packageFile);
    expect(await text(unpacked.stdout)).toBe(`${kernel.modules.length}\n`);
  });

  test('one without rdma_rxe is refused, and nothing of it is kept', async () => {
    const bare = makePackage('bare', kernel.release, (tree) => {
      for (const path of kernel.modules.filter((module) => !module.includes('rdma_rxe'))) {
        cpSync(path, join(tree, basename(path)));
      }
    });
    await expect(prepareDistributionKernel({ kernel: bare })).rejects.toMatchObject({
      code: 'ERR_RXE_NO_RXE',
      exitStatus: 203,
    });
    expect(
      readdirSync(join(cache, 'kernels/distribution')).filter((name) => !name.endsWith('.lock')),
    ).toEqual([]);
  });

  test('one without an image is refused', async () => {
    const control = 'Package: empty\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: empty\n';
    mkdirSync(join(folder, 'empty/DEBIAN'), { recursive: true });
    writeFileSync(join(folder, 'empty/DEBIAN/control'), control);
    spawnSync('dpkg-deb', ['--build', join(folder, 'empty'), join(folder, 'empty.deb')]);
    await expect(prepareDistributionKernel({ kernel: join(folder, 'empty.deb') })).rejects.toMatchObject({
      code: 'ERR_RXE_NO_KERNEL',
      message: /empty\.deb holds no kernel image/,
    });
  });

  test.each([
    ['/no/such/vmlinuz-1', 'ERR_RXE_NO_KERNEL', /there is no such file/],
    ['./package.json', 'ERR_RXE_NO_KERNEL', /the name says no release/],
    ['no package name', 'ERR_RXE_NO_KERNEL', /neither a file nor the name of a Debian package/],
  ])('%s is refused', async (name, code, message) => {
    await expect(prepareDistributionKernel({ kernel: name })).rejects.toMatchObject({ code, message });
  });

  test('a file that is no package is refused', async () => {
    writeFileSync(join(folder, 'text.deb'), 'no archive');
    await expect(prepareDistributionKernel({ kernel: join(folder, 'text.deb') })).rejects.toMatchObject({
      code: 'ERR_RXE_NO_KERNEL',
      message: /cannot unpack .*text\.deb/,
    });
  });
});
