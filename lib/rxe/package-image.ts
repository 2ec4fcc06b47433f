/**
 * `node_modules` as a file system image. Thousands of small files are slow to read over 9p under emulation (vitest took
 * minutes to start); from a disk they come at the speed of the guest's own page cache. The image is made once, kept in the
 * cache, and made anew when a file of the folder has changed.
 */
import { createHash } from 'node:crypto';
import { open, readdir, realpath, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cachePath, ensureCached, partial } from './cache.js';
import { runTool } from './tool.js';

export interface PackageImage {
  /** The image, an ext4 file system. */
  file: string;
  /** The folder whose files are in it. */
  folder: string;
}

/** Larger folders are left to 9p: an image of them costs more time and room than it saves. */
const mostBytes = 2 ** 30;
const block = 4096;

/** The nearest `node_modules` of a folder and those above it. */
export async function nearestPackages(start: string): Promise<string | undefined> {
  for (let folder = start; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules');
    const found = await stat(candidate).catch(() => undefined);
    if (found?.isDirectory()) return realpath(candidate);
    if (dirname(folder) === folder) return undefined;
  }
}

/**
 * The image of a folder as its files are now; undefined where none can be made (no mke2fs, no room), which costs time and
 * nothing else, since the machine sees the files over 9p all the same.
 */
export async function packageImage(
  folder: string,
  onProgress?: (text: string) => void,
): Promise<PackageImage | undefined> {
  try {
    const contents = await survey(folder);
    if (contents.bytes === 0 || contents.bytes > mostBytes) return undefined;
    const places = `packages/${digest(folder).slice(0, 16)}`;
    const name = `${places}/${contents.digest.slice(0, 32)}`;
    const place = await ensureCached(name, async (directory) => {
      onProgress?.(`making an image of ${folder}`);
      await build(folder, contents, join(directory, 'image'));
    });
    await removeOthers(places, name);
    return { file: join(place, 'image'), folder };
  } catch {
    return undefined;
  }
}

interface Contents {
  /** Changes when a name, a size, a time, a mode or a link's target does. */
  digest: string;
  /** That the files take, in whole blocks. */
  bytes: number;
  files: number;
}

async function survey(folder: string): Promise<Contents> {
  const hash = createHash('sha256');
  let bytes = 0;
  let files = 0;
  const format = '%P\\t%y\\t%s\\t%T@\\t%C@\\t%m\\t%l\\n';
  const { status } = await runTool('find', [folder, '-printf', format], {
    onLine: (line) => {
      hash.update(line).update('\n');
      bytes += Math.ceil(Number(line.split('\t')[2]) / block) * block;
      ++files;
    },
  });
  if (status !== 0) throw new Error(`find ended with status ${status}`);
  return { digest: hash.digest('hex'), bytes, files };
}

async function build(folder: string, { bytes, files }: Contents, image: string): Promise<void> {
  const inodes = files + 1024;
  const file = await open(image, 'wx');
  // Room for what the file system keeps of its own, with some to spare: the file is sparse.
  await file.truncate(Math.ceil((bytes * 1.2 + inodes * 512 + 32 * 2 ** 20) / block) * block);
  await file.close();
  const options = [
    '-q',
    '-F',
    '-t',
    'ext4',
    '-b',
    String(block),
    '-N',
    String(inodes),
    '-m',
    '0',
    '-O',
    '^has_journal',
  ];
  const { status, stderr } = await runTool('mke2fs', [...options, '-d', folder, image], {
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` },
  });
  if (status !== 0) throw new Error(`mke2fs: ${stderr}`);
}

/** Images of what the folder held before are of no use; a machine that still has one open keeps it to its end. */
async function removeOthers(places: string, name: string): Promise<void> {
  for (const entry of await readdir(cachePath(places))) {
    if (name.endsWith(entry) || entry.includes(partial) || entry.endsWith('.lock')) continue;
    await rm(cachePath(`${places}/${entry}`), { recursive: true, force: true });
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
