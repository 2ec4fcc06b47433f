/** Kernels of the distribution for the `qemu` engine: the image, and the modules that the machine loads. */
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

import { cachePath, ensureCached } from '../cache.js';
import { concreteImage, unpackPackageFile, withArchive, type DebianOptions } from '../debian.js';
import { RxeError } from '../errors.js';
import { collectModules, machineModules } from './modules.js';
import { compareReleases } from './release.js';

export interface DistributionKernel {
  /** As `uname -r` gives it, e.g. `6.1.0-57-amd64`. */
  release: string;
  /** The compressed image, absolute. */
  vmlinuz: string;
  /** Module files, uncompressed, absolute, in load order: all that a machine needs, and what they depend on. */
  modules: string[];
}

export interface CachedKernel extends DistributionKernel {
  /** The package, or the file, that was asked for. */
  source: string;
  directory: string;
}

export interface PrepareOptions extends DebianOptions {
  /**
   * An installed image (`/boot/vmlinuz-RELEASE`, with `/lib/modules/RELEASE`), a `.deb` file, or the name of a package.
   * By default `linux-image-amd64`, or where only others are in the cache, the newest of those.
   */
  kernel?: string;
  /** Looks for a newer package even if there is one in the cache. */
  refresh?: boolean;
}

export const defaultImagePackage = 'linux-image-amd64';

const directory = 'kernels/distribution';

/** Prepares a kernel in the cache, once; afterwards this takes a few milliseconds and no network. */
export async function prepareDistributionKernel(options: PrepareOptions = {}): Promise<DistributionKernel> {
  const { kernel, refresh = false } = options;
  if (kernel?.endsWith('.deb')) return fromPackageFile(kernel, options);
  if (kernel !== undefined && (kernel.includes('/') || (await isFile(kernel)))) {
    return fromInstalledImage(kernel, options);
  }
  if (!refresh) {
    const cached = (await cachedKernels()).filter(({ source }) => !source.startsWith('/'));
    const sameSource = cached.find(({ source }) => source === (kernel ?? defaultImagePackage));
    const found = sameSource ?? (kernel === undefined ? cached[0] : undefined);
    if (found) return found;
  }
  return fromPackage(kernel ?? defaultImagePackage, options);
}

/** The kernels in the cache, the newest release first. */
export async function cachedKernels(): Promise<CachedKernel[]> {
  const names = await readdir(cachePath(directory)).catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => name.endsWith(`-${wishKey()}`))
      .map((name) => readKernel(join(cachePath(directory), name))),
  );
  return found.filter((kernel) => kernel !== undefined).sort((a, b) => compareReleases(b.release, a.release));
}

function fromPackage(name: string, options: PrepareOptions): Promise<DistributionKernel> {
  return withArchive(async (archive) => {
    const wanted = await archive.find(name);
    const imageName = concreteImage(wanted);
    const image = imageName === wanted.name ? wanted : await archive.find(imageName);
    return make(`${image.name}_${image.version}`, name, options, async (scratch) => {
      await archive.unpack(image, scratch);
      return unpackedImage(scratch, image.name);
    });
  }, options);
}

async function fromPackageFile(file: string, options: PrepareOptions): Promise<DistributionKernel> {
  const path = await existing(file);
  return make(`file-${await identity(path)}`, path, options, async (scratch) => {
    options.onProgress?.(`unpacking ${basename(path)}`);
    await unpackPackageFile(path, scratch);
    return unpackedImage(scratch, path);
  });
}

async function fromInstalledImage(file: string, options: PrepareOptions): Promise<DistributionKernel> {
  const vmlinuz = await existing(file);
  const release = /^vmlinuz-(.+)$/.exec(basename(vmlinuz))?.[1];
  if (!release) {
    throw new RxeError(
      'ERR_RXE_NO_KERNEL',
      `${vmlinuz}: the name says no release (vmlinuz-RELEASE), so its modules cannot be found`,
    );
  }
  // /boot/vmlinuz-R belongs to /lib/modules/R; the same below any other root, such as an unpacked package.
  const modules = join(dirname(dirname(vmlinuz)), 'lib/modules', release);
  if (!(await isDirectory(modules))) {
    throw new RxeError('ERR_RXE_NO_KERNEL', `${vmlinuz} has no modules: ${modules} is not there`);
  }
  const key = `file-${await identity(vmlinuz, modules)}`;
  return make(key, vmlinuz, options, () => Promise.resolve({ release, vmlinuz, modules }));
}

interface Image {
  release: string;
  vmlinuz: string;
  /** The folder of its modules. */
  modules: string;
}

/** Takes image and modules out of what `locate` finds; the rest of a package (400 MB) is not kept. */
async function make(
  key: string,
  source: string,
  { onProgress }: PrepareOptions,
  locate: (scratch: string) => Promise<Image>,
): Promise<DistributionKernel> {
  const place = await ensureCached(
    `${directory}/${key}-${wishKey()}`,
    async (aside) => {
      const scratch = join(aside, 'scratch');
      await mkdir(scratch);
      const image = await locate(scratch);
      onProgress?.(`collecting the modules of ${image.release}`);
      await mkdir(join(aside, 'modules'));
      const modules = await collectModules(image.modules, machineModules, join(aside, 'modules'));
      await copyFile(image.vmlinuz, join(aside, 'vmlinuz')).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
        throw new RxeError(
          'ERR_RXE_NO_KERNEL',
          `${image.vmlinuz} is not readable; as root: chmod +r ${image.vmlinuz}`,
          { cause: error },
        );
      });
      await rm(scratch, { recursive: true });
      const record: KernelRecord = { release: image.release, source, modules };
      await writeFile(join(aside, 'kernel.json'), JSON.stringify(record));
    },
    { onWait: () => onProgress?.('waiting for another process that prepares the same kernel') },
  );
  const kernel = await readKernel(place);
  if (!kernel) throw new RxeError('ERR_RXE_INTERNAL', `${place} is damaged; remove it and try again`);
  return kernel;
}

/** `kernel.json` of a kernel in the cache. */
interface KernelRecord {
  release: string;
  source: string;
  modules: string[];
}

async function readKernel(place: string): Promise<CachedKernel | undefined> {
  const text = await readFile(join(place, 'kernel.json'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { release, source, modules } = JSON.parse(text) as KernelRecord;
  return {
    release,
    source,
    directory: place,
    vmlinuz: join(place, 'vmlinuz'),
    modules: modules.map((name) => join(place, 'modules', name)),
  };
}

async function unpackedImage(root: string, origin: string): Promise<Image> {
  const images = await readdir(join(root, 'boot')).catch(() => []);
  const name = images.find((file) => file.startsWith('vmlinuz-'));
  if (!name) {
    throw new RxeError(
      'ERR_RXE_NO_KERNEL',
      `${origin} holds no kernel image; name a package such as linux-image-6.1.0-57-amd64`,
    );
  }
  const release = name.slice('vmlinuz-'.length);
  const folders = [join(root, 'lib/modules', release), join(root, 'usr/lib/modules', release)];
  for (const modules of folders) {
    if (await isDirectory(modules)) return { release, vmlinuz: join(root, 'boot', name), modules };
  }
  throw new RxeError('ERR_RXE_NO_KERNEL', `${origin} holds no modules for its kernel ${release}`);
}

/** Changes when one of the files does: a kernel that was installed anew must not be mistaken for the old one. */
async function identity(...paths: string[]): Promise<string> {
  const facts = await Promise.all(
    paths.map(async (path) => {
      const { size, mtimeMs } = await stat(path);
      return [path, size, mtimeMs];
    }),
  );
  return hash(facts);
}

/** Part of each name in the cache, so that another list of modules makes another folder. */
function wishKey(): string {
  return hash(machineModules);
}

function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 10);
}

async function existing(file: string): Promise<string> {
  return realpath(resolve(file)).catch((error: unknown) => {
    throw new RxeError('ERR_RXE_NO_KERNEL', `--kernel ${file}: there is no such file`, { cause: error });
  });
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (what) => what.isFile(),
    () => false,
  );
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (what) => what.isDirectory(),
    () => false,
  );
}
