/**
 * The folder for what takes long to make and is the same next time: kernels, package lists, the answer of a probe.
 *
 * Things appear in it whole or not at all: they are made beside their place and moved there by one rename.
 */
import { spawn } from 'node:child_process';
import { access, chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

import { RxeError } from './errors.js';

/** `NODE_RDMA_CACHE`, or else `node-rdma` in `XDG_CACHE_HOME`, or else in `~/.cache`. */
export function cacheDirectory(environment: NodeJS.ProcessEnv = process.env): string {
  if (environment.NODE_RDMA_CACHE) return resolve(environment.NODE_RDMA_CACHE);
  // The XDG rules say that a relative path counts as none.
  if (environment.XDG_CACHE_HOME?.startsWith('/')) return join(environment.XDG_CACHE_HOME, 'node-rdma');
  return join(environment.HOME || homedir(), '.cache', 'node-rdma');
}

export function cachePath(name: string): string {
  return join(cacheDirectory(), name);
}

/** Writes a file of the cache, whole or not at all; the last writer wins. */
export async function writeCacheFile(name: string, content: string | Uint8Array): Promise<string> {
  const path = cachePath(name);
  const aside = `${path}.${process.pid}.partial`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(aside, content);
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true }).catch(() => undefined);
    throw cacheError(path, error);
  }
  return path;
}

export interface EnsureOptions {
  /** Called once if another process is making the same thing and this one has to wait for it. */
  onWait?: () => void;
}

/**
 * The path of a folder in the cache; where there is none yet, `make` fills one, which is then moved into its place.
 * Of several processes that ask at once, one makes it and the others wait.
 */
export async function ensureCached(
  name: string,
  make: (directory: string) => Promise<void>,
  options: EnsureOptions = {},
): Promise<string> {
  const path = cachePath(name);
  if (await exists(path)) return path;
  return withCacheLock(
    name,
    async () => {
      if (await exists(path)) return path;
      await sweep(path);
      let aside: string | undefined;
      try {
        aside = await mkdtemp(`${path}${partial}`);
        await make(aside);
        // mkdtemp makes folders for one user; a cache may be shared.
        await chmod(aside, 0o755);
        await rename(aside, path);
      } catch (error) {
        if (aside) await rm(aside, removal).catch(() => undefined);
        throw cacheError(path, error);
      }
      return path;
    },
    options,
  );
}

/** What is in the making: never to be taken for the thing itself. */
export const partial = '.partial-';

const removal = { recursive: true, force: true, maxRetries: 3 };

/**
 * Removes what makers that were killed left of `path`; the lock says that none is at work. Not a folder to go on in: a
 * program that the maker had started may still be writing there, which is also why failing to remove it is no failure.
 */
async function sweep(path: string): Promise<void> {
  const folder = dirname(path);
  const left = (await readdir(folder)).filter((name) => name.startsWith(basename(path) + partial));
  await Promise.all(left.map((name) => rm(join(folder, name), removal).catch(() => undefined)));
}

/**
 * Runs `work` while no other process holds the lock of that name. The lock is the kernel's (flock), held by a helper
 * that reads our pipe: when this process ends, however it ends, the pipe closes and the lock is free.
 */
export async function withCacheLock<T>(
  name: string,
  work: () => Promise<T>,
  options: EnsureOptions = {},
): Promise<T> {
  const file = `${cachePath(name)}.lock`;
  await mkdir(dirname(file), { recursive: true }).catch((error: unknown) => {
    throw cacheError(file, error);
  });
  const release = await lock(file, options.onWait);
  try {
    return await work();
  } finally {
    await release();
  }
}

/** How long a lock may take before the caller hears that somebody else has it. */
const waitNoticeMilliseconds = 500;

function lock(file: string, onWait?: () => void): Promise<() => Promise<void>> {
  return new Promise((resolveLock, reject) => {
    // Detached: Ctrl-C on a terminal must not take the lock from a caller that is still tidying up.
    const holder = spawn('flock', ['--exclusive', file, 'sh', '-c', 'echo held; exec cat'], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    const notice = setTimeout(() => onWait?.(), waitNoticeMilliseconds);
    let complaint = '';
    const ended = new Promise<void>((done) => holder.once('close', () => done()));
    holder.stderr.on('data', (text: Buffer) => (complaint += text.toString()));
    holder.stdin.on('error', () => undefined);
    holder.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(notice);
      reject(
        new RxeError(
          'ERR_RXE_NO_TOOLS',
          `cannot run flock (${error.code}); install it: apt-get install util-linux`,
          { cause: error },
        ),
      );
    });
    holder.once('close', () => {
      clearTimeout(notice);
      reject(new RxeError('ERR_RXE_INTERNAL', `cannot lock ${file}: ${complaint.trim() || 'flock gave up'}`));
    });
    holder.stdout.once('data', () => {
      clearTimeout(notice);
      resolveLock(() => {
        holder.stdin.end();
        return ended;
      });
    });
  });
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** What a system call on the cache failed with, as advice; anything else is passed on as it is. */
function cacheError(path: string, error: unknown): unknown {
  const advice = 'let NODE_RDMA_CACHE name a folder elsewhere';
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new RxeError('ERR_RXE_NO_SPACE', `no space left for ${path}; free some, or ${advice}`, {
        cause: error,
      });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOTDIR':
      return new RxeError(
        'ERR_RXE_NO_SPACE',
        `the cache cannot be written: ${path} (${(error as Error).message}); ${advice}`,
        { cause: error },
      );
    default:
      return error;
  }
}
