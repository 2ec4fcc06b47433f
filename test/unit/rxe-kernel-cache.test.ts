import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { cacheDirectory, ensureCached, withCacheLock, writeCacheFile } from '../../lib/rxe/cache.js';

let folder: string;
let before: string | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cache-'));
  before = process.env.NODE_RDMA_CACHE;
  process.env.NODE_RDMA_CACHE = folder;
});

afterEach(async () => {
  if (before === undefined) delete process.env.NODE_RDMA_CACHE;
  else process.env.NODE_RDMA_CACHE = before;
  await rm(folder, { recursive: true });
});

test.each([
  [{ NODE_RDMA_CACHE: '/a', XDG_CACHE_HOME: '/b', HOME: '/c' }, '/a'],
  [{ XDG_CACHE_HOME: '/b', HOME: '/c' }, '/b/node-rdma'],
  [{ XDG_CACHE_HOME: 'relative', HOME: '/c' }, '/c/.cache/node-rdma'],
  [{ HOME: '/c' }, '/c/.cache/node-rdma'],
])('with %j the cache is %s', (environment, path) => {
  expect(cacheDirectory(environment)).toBe(path);
});

describe('a folder of the cache', () => {
  test('is made once', async () => {
    let made = 0;
    const make = async (directory: string) => {
      made += 1;
      await writeFile(join(directory, 'file'), 'content');
    };
    const paths = [await ensureCached('a/b', make), await ensureCached('a/b', make)];
    expect(made).toBe(1);
    expect(paths).toEqual([join(folder, 'a/b'), join(folder, 'a/b')]);
    expect(await readFile(join(folder, 'a/b/file'), 'utf8')).toBe('content');
  });

  test('is not there until it is whole, and not at all after a failure', async () => {
    const make = async (directory: string) => {
      await writeFile(join(directory, 'file'), 'half');
      await expect(access(join(folder, 'thing'))).rejects.toThrow('ENOENT');
      throw new Error('interrupted');
    };
    await expect(ensureCached('thing', make)).rejects.toThrow('interrupted');
    expect(await readdir(folder)).toEqual(['thing.lock']);
  });

  test('does not take over what a killed process left half made', async () => {
    await mkdir(join(folder, 'thing.partial-x1y2z3'));
    await writeFile(join(folder, 'thing.partial-x1y2z3/left-over'), '');
    await ensureCached('thing', (directory) => writeFile(join(directory, 'new'), ''));
    expect(await readdir(join(folder, 'thing'))).toEqual(['new']);
    expect(await readdir(folder)).toEqual(['thing', 'thing.lock']);
  });

  test('that cannot be written is an error that says where and what to do', async () => {
    await writeFile(join(folder, 'file'), '');
    process.env.NODE_RDMA_CACHE = join(folder, 'file/below');
    await expect(writeCacheFile('x', '')).rejects.toMatchObject({
      code: 'ERR_RXE_NO_SPACE',
      message: /cannot be written.*NODE_RDMA_CACHE/,
    });
  });
});

describe('a lock of the cache', () => {
  test('lets one in at a time', async () => {
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await sleep(50);
      inside -= 1;
    };
    await Promise.all([1, 2, 3].map(() => withCacheLock('x', work)));
    expect(most).toBe(1);
  });

  test('is free again after the work failed', async () => {
    await expect(withCacheLock('x', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withCacheLock('x', () => Promise.resolve('in'))).toBe('in');
  });

  test('waits for another process, and says so', async () => {
    const holder = spawn('flock', [join(folder, 'x.lock'), 'sh', '-c', 'echo; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    await once(holder.stdout, 'data');
    let waited = false;
    let entered = false;
    const work = withCacheLock('x', () => Promise.resolve((entered = true)), {
      onWait: () => (waited = true),
    });
    await sleep(800);
    expect({ waited, entered }).toEqual({ waited: true, entered: false });
    process.kill(-holder.pid!, 'SIGKILL');
    await work;
    expect(entered).toBe(true);
  });
});
