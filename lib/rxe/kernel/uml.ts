/** The User-Mode Linux kernels at hand: a program each, with Soft-RoCE built in. */
import { constants } from 'node:fs';
import { access, open, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { cachePath, partial } from '../cache.js';
import { RxeError, type RxeErrorCode } from '../errors.js';
import { runTool } from '../tool.js';
import { compareReleases } from './release.js';

export interface UmlKernel {
  /** Absolute. */
  path: string;
  /** As `uname -r` gives it, e.g. `6.1.192-rxe`. */
  release: string;
}

/** Where `rxe kernel build` puts what it builds: a folder each, with the program `linux` and `kernel.json`. */
export const umlDirectory = 'kernels/uml';

/**
 * The kernel that the `uml` engine is to start: `option` (a path), else `NODE_RDMA_RXE_KERNEL`, else the newest that
 * was built into the cache, else none. One that is named and does not do is an error, not a reason to look further.
 */
export async function findUmlKernel(option?: string): Promise<UmlKernel | undefined> {
  if (option) return inspectUmlKernel(option, '--kernel');
  const named = process.env.NODE_RDMA_RXE_KERNEL;
  if (named) return inspectUmlKernel(named, 'NODE_RDMA_RXE_KERNEL');
  return (await builtUmlKernels())[0];
}

/** The kernels in the cache, the newest release first. */
export async function builtUmlKernels(): Promise<(UmlKernel & { config: string })[]> {
  const directory = cachePath(umlDirectory);
  const names = await readdir(directory).catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => !name.includes(partial))
      .map(async (name) => {
        const path = join(directory, name, 'linux');
        const record = await readFile(join(directory, name, 'kernel.json'), 'utf8').catch(() => undefined);
        if (!record || !(await isExecutable(path))) return [];
        const { release, config } = JSON.parse(record) as { release: string; config: string };
        return [{ path, release, config }];
      }),
  );
  return found.flat().sort((a, b) => compareReleases(b.release, a.release));
}

/** Asks the program itself: a UML kernel prints its release and its configuration without starting. */
export async function inspectUmlKernel(file: string, origin: string): Promise<UmlKernel> {
  const path = resolve(file);
  const refuse = (reason: string, code: RxeErrorCode = 'ERR_RXE_NO_KERNEL') =>
    new RxeError(code, `${origin}: ${path} ${reason}; make one with: node-rdma rxe kernel build`);
  const what = await stat(path).catch((error: unknown) => error as NodeJS.ErrnoException);
  if (what instanceof Error) {
    throw refuse(what.code === 'ENOENT' ? 'does not exist' : `cannot be read (${what.code})`);
  }
  if (!what.isFile()) throw refuse('is not a file');
  if (!(await isExecutable(path))) throw refuse('is not executable (chmod +x)');
  if (!(await isElf(path))) throw refuse('is not a User-Mode Linux kernel (not a Linux program)');

  const version = await ask(path, '--version').catch(() => '');
  const config = await ask(path, '--showconfig').catch(() => '');
  if (!/^\d+\.\d+/.test(version) || !/^CONFIG_UML=y$/m.test(config)) {
    throw refuse('is not a User-Mode Linux kernel (it does not answer --version and --showconfig as one)');
  }
  if (!/^CONFIG_RDMA_RXE=y$/m.test(config)) {
    throw refuse('is a User-Mode Linux kernel without CONFIG_RDMA_RXE=y', 'ERR_RXE_NO_RXE');
  }
  return { path, release: version.trim() };
}

async function ask(path: string, question: string): Promise<string> {
  return (await runTool(path, [question], { timeout: 5000 })).stdout;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function isElf(path: string): Promise<boolean> {
  const file = await open(path).catch(() => undefined);
  if (!file) return false;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.toString('latin1') === '\x7fELF';
  } finally {
    await file.close();
  }
}
