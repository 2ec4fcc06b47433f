import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { commandLine } from '../../lib/rxe/engines/qemu.js';
import { nearestPackages, packageImage } from '../../lib/rxe/package-image.js';

let root: string;
let folder: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'package-image '));
  vi.stubEnv('NODE_RDMA_CACHE', join(root, 'cache'));
  folder = join(root, 'project', 'node_modules');
  mkdirSync(join(folder, 'a package', 'lib'), { recursive: true });
  writeFileSync(join(folder, 'a package', 'lib', 'index.js'), 'export default 1;\n');
  symlinkSync('a package/lib/index.js', join(folder, 'link'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

/** What a file of an image holds. */
const read = (image: string, path: string) =>
  execFileSync('debugfs', ['-R', `cat "${path}"`, image], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });

it('holds the files of the folder', async () => {
  const image = (await packageImage(folder))!;
  expect(image.folder).toBe(folder);
  expect(read(image.file, '/a package/lib/index.js')).toBe('export default 1;\n');
});

it('is made once, and again when a file has changed, also by its time alone', async () => {
  const progress = vi.fn();
  const first = (await packageImage(folder, progress))!;
  expect((await packageImage(folder, progress))!.file).toBe(first.file);
  expect(progress).toHaveBeenCalledTimes(1);

  const file = join(folder, 'a package', 'lib', 'index.js');
  writeFileSync(file, 'export default 2;\n');
  const second = (await packageImage(folder, progress))!;
  expect(second.file).not.toBe(first.file);
  expect(read(second.file, '/a package/lib/index.js')).toBe('export default 2;\n');

  utimesSync(file, 1, 1);
  const third = (await packageImage(folder, progress))!;
  expect(third.file).not.toBe(second.file);
  expect(progress).toHaveBeenCalledTimes(3);

  const places = join(root, 'cache', 'packages');
  const images = readdirSync(join(places, readdirSync(places)[0]!)).filter((name) => !name.endsWith('.lock'));
  expect(images).toHaveLength(1);
});

it('is done without where it cannot be made', async () => {
  expect(await packageImage(join(root, 'nothing here'))).toBeUndefined();
  writeFileSync(join(root, 'file'), '');
  vi.stubEnv('NODE_RDMA_CACHE', join(root, 'file', 'cache'));
  expect(await packageImage(folder)).toBeUndefined();
});

it('is of the nearest node_modules of a folder and those above it', async () => {
  const below = join(root, 'project', 'test', 'deep');
  mkdirSync(below, { recursive: true });
  expect(await nearestPackages(below)).toBe(folder);
  expect(await nearestPackages(join(root, 'project'))).toBe(folder);
  expect(await nearestPackages('/proc')).toBeUndefined();
});

it('is the first disk of the machine, read-only', () => {
  const options = { memory: 1024, mtu: 1500 };
  const boot = { kernel: 'k', initrd: 'i', accelerator: 'tcg' } as const;
  expect(commandLine(options, { ...boot, packages: '/a,b/image' })).toContain(
    'file=/a,,b/image,if=none,id=packages,format=raw,readonly=on',
  );
  expect(commandLine(options, boot).join(' ')).not.toContain('virtio-blk');
});
