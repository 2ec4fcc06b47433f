/** All the kernels that a machine could be made of here. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import type { EngineName } from '../options.js';
import { cachedKernels, prepareDistributionKernel } from './distribution.js';
import { compareReleases } from './release.js';
import { builtUmlKernels, findUmlKernel } from './uml.js';

export interface ListedKernel {
  engine: EngineName;
  release: string;
  /** Where it comes from, for people. */
  origin: string;
  path: string;
  /** The engine takes this one unless told otherwise. */
  chosen: boolean;
}

/** The kernels for each engine; an installed one is listed if rdma_rxe is among its modules. */
export async function listKernels(): Promise<ListedKernel[]> {
  return [...(await umlKernels()), ...(await qemuKernels())];
}

async function umlKernels(): Promise<ListedKernel[]> {
  const chosen = await findUmlKernel();
  const built = (await builtUmlKernels()).map(({ path, release }) => ({
    path,
    release,
    origin: 'built, in the cache',
  }));
  const named = chosen && !built.some(({ path }) => path === chosen.path);
  const all = named ? [{ ...chosen, origin: 'NODE_RDMA_RXE_KERNEL' }, ...built] : built;
  return all.map((kernel) => ({ engine: 'uml', ...kernel, chosen: kernel.path === chosen?.path }));
}

async function qemuKernels(): Promise<ListedKernel[]> {
  const cached = await cachedKernels();
  // With one in the cache this only looks it up; without one it would fetch.
  const chosen = cached.some(({ source }) => !source.startsWith('/'))
    ? await prepareDistributionKernel()
    : undefined;
  const prepared = cached.map(({ release, source, vmlinuz }) => ({
    release,
    origin: source.startsWith('/') ? `${source}, in the cache` : `package ${source}, in the cache`,
    path: vmlinuz,
    chosen: vmlinuz === chosen?.vmlinuz,
  }));
  return [...prepared, ...(await installedKernels())].map((kernel) => ({ engine: 'qemu', ...kernel }));
}

async function installedKernels(): Promise<Omit<ListedKernel, 'engine'>[]> {
  const images = (await readdir('/boot').catch(() => [])).filter((name) => name.startsWith('vmlinuz-'));
  const found = await Promise.all(
    images.map(async (name) => {
      const release = name.slice('vmlinuz-'.length);
      const rxe = join('/lib/modules', release, 'kernel/drivers/infiniband/sw/rxe');
      const modules = await readdir(rxe).catch(() => []);
      return modules.length > 0
        ? [{ release, origin: 'installed', path: join('/boot', name), chosen: false }]
        : [];
    }),
  );
  return found.flat().sort((a, b) => compareReleases(b.release, a.release));
}
