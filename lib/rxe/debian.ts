/**
 * Packages of the distribution, fetched and unpacked without being installed: no root, nothing outside the cache.
 *
 * Where the machine has package lists, they are used. Where it has none (a container image, usually) or they are out of
 * date, lists of our own are fetched into the cache, from the sources that the machine is configured for.
 */
import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { cachePath, withCacheLock } from './cache.js';
import { RxeError } from './errors.js';
import { runTool, type ToolResult } from './tool.js';

export interface DebianPackage {
  name: string;
  version: string;
  /** Names of the packages in `Depends`, without versions; of alternatives the first. */
  dependsOn: string[];
  /** Bytes to download. */
  size: number;
  /** Bytes when unpacked. */
  installedSize: number;
}

export interface DebianOptions {
  onProgress?: (text: string) => void;
}

/** Where packages are found and fetched. */
export interface Archive {
  /** The newest version of a package. */
  find(name: string): Promise<DebianPackage>;
  /** Fetches a package and unpacks it into a folder, without running its scripts. */
  unpack(found: DebianPackage, into: string): Promise<void>;
}

/**
 * Runs `use` with the machine's package lists, and once more with fresh ones where they do not do: they lack a package,
 * or name a version that the archive no longer has.
 */
export async function withArchive<T>(
  use: (archive: Archive) => Promise<T>,
  options: DebianOptions = {},
): Promise<T> {
  if (process.arch !== 'x64') {
    throw new RxeError('ERR_RXE_NO_KERNEL', `kernels are fetched for x86-64 only, not for ${process.arch}`);
  }
  if (!existsSync('/usr/bin/apt-get') || !existsSync('/usr/bin/dpkg')) {
    throw new RxeError(
      'ERR_RXE_NO_KERNEL',
      'cannot fetch a kernel: this is not a Debian system (no apt-get); name one of your own with --kernel',
    );
  }
  try {
    return await use({
      find: async (name) => {
        const found = await lookUp(name, machineLists);
        if (!found) throw new StaleLists();
        return found;
      },
      unpack: (found, into) => fetchAndUnpack(found, into, machineLists, options),
    });
  } catch (error) {
    if (!(error instanceof StaleLists)) throw error;
  }
  const lists = ownLists();
  const trouble = await refresh(lists, options);
  return use({
    find: async (name) => {
      const found = await lookUp(name, lists);
      if (!found) throw trouble ?? noSuchPackage(name);
      return found;
    },
    unpack: (found, into) => fetchAndUnpack(found, into, lists, options),
  });
}

/** The image package behind a meta package such as `linux-image-amd64`; of any other package itself. */
export function concreteImage(wanted: DebianPackage): string {
  const image = wanted.dependsOn.find(
    (name) => /^linux-image-\d/.test(name) && !/-(dbg|unsigned)$/.test(name),
  );
  return image ?? wanted.name;
}

/** Unpacks a package file, without running its scripts. */
export async function unpackPackageFile(file: string, into: string): Promise<void> {
  const { status, stderr } = await runTool('dpkg', ['-x', file, into], { package: 'dpkg' });
  if (status === 0) return;
  if (/No space left|cannot write/i.test(stderr)) throw noSpace(into);
  throw new RxeError('ERR_RXE_NO_KERNEL', `cannot unpack ${file}: ${lastLine(stderr)}`);
}

/** Reads the records that `apt-cache show` prints. */
export function parsePackages(text: string): DebianPackage[] {
  return text
    .split(/\n{2,}/)
    .filter((record) => record.trim() !== '')
    .map((record) => {
      const field = (key: string) => new RegExp(`^${key}: *(.*)$`, 'm').exec(record)?.[1] ?? '';
      return {
        name: field('Package'),
        version: field('Version'),
        dependsOn: field('Depends')
          .split(',')
          .map((dependency) => /^[^\s(|:]+/.exec(dependency.trim())?.[0] ?? '')
          .filter((dependency) => dependency !== ''),
        size: Number(field('Size')),
        installedSize: Number(field('Installed-Size')) * 1024,
      };
    });
}

/** The apt options that select package lists; none for the machine's own. */
type Lists = readonly string[];

const machineLists: Lists = [];

function ownLists(): Lists {
  return ['-o', `Dir::State::lists=${cachePath('apt/lists')}`, '-o', `Dir::Cache=${cachePath('apt/cache')}`];
}

const aptHabits = [
  '-q',
  // As root, apt would download as user _apt, who may not write to the cache of root.
  ...['-o', 'APT::Sandbox::User=root'],
  ...['-o', 'Acquire::Retries=1'],
  // Seconds without a byte.
  ...['-o', 'Acquire::http::Timeout=30', '-o', 'Acquire::https::Timeout=30'],
];

/** The machine's lists do not do: look again with fresh ones. */
class StaleLists extends Error {}

async function lookUp(name: string, lists: Lists): Promise<DebianPackage | undefined> {
  // Also keeps what looks like an option away from apt.
  if (!/^[a-z0-9][a-z0-9+.-]+$/.test(name)) {
    throw new RxeError('ERR_RXE_NO_KERNEL', `'${name}' is neither a file nor the name of a Debian package`);
  }
  const { status, stdout } = await runTool('apt-cache', [...lists, '--no-all-versions', 'show', name], {
    package: 'apt',
  });
  return status === 0 ? parsePackages(stdout).find((candidate) => candidate.name === name) : undefined;
}

/** Fetches package lists of our own; what went wrong is returned, since half of them may be enough. */
async function refresh(lists: Lists, { onProgress }: DebianOptions): Promise<RxeError | undefined> {
  return withCacheLock('apt', async () => {
    onProgress?.('fetching package lists');
    // apt makes neither of these.
    await mkdir(cachePath('apt/lists/partial'), { recursive: true });
    await mkdir(cachePath('apt/cache/archives/partial'), { recursive: true });
    const result = await runTool('apt-get', [...aptHabits, ...lists, 'update'], { package: 'apt' });
    const failed = result.status !== 0 || /Failed to fetch/.test(result.stderr);
    return failed ? downloadError('the package lists', result) : undefined;
  });
}

async function fetchAndUnpack(
  found: DebianPackage,
  into: string,
  lists: Lists,
  { onProgress }: DebianOptions,
): Promise<void> {
  const downloads = join(into, '.download');
  await mkdir(downloads, { recursive: true });
  await requireSpace(into, found.size + found.installedSize, found.name);
  onProgress?.(`fetching ${found.name} ${found.version} (${megabytes(found.size)})`);
  const args = [...aptHabits, ...lists, 'download', `${found.name}=${found.version}`];
  const result = await runTool('apt-get', args, { package: 'apt', cwd: downloads });
  if (result.status !== 0) {
    const gone = /\b404\b|Hash Sum mismatch|unexpected size/i.test(result.stdout + result.stderr);
    throw gone && lists === machineLists ? new StaleLists() : downloadError(found.name, result);
  }
  const file = (await readdir(downloads)).find((name) => name.endsWith('.deb'));
  if (!file) throw downloadError(found.name, result);
  onProgress?.(`unpacking ${found.name}`);
  await unpackPackageFile(join(downloads, file), into);
  await rm(downloads, { recursive: true });
}

/** Refuses at once what would fail after minutes. */
export async function requireSpace(directory: string, bytes: number, what: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < bytes) throw noSpace(directory, `${what} needs ${megabytes(bytes)}`);
}

export function downloadError(what: string, { stdout, stderr }: Omit<ToolResult, 'status'>): RxeError {
  const text = stdout + stderr;
  if (/No space left on device|enough free space/i.test(text)) return noSpace(cachePath(''));
  const reason = lastLine(stderr.replace(/^W: Some index files.*$/m, ''));
  if (/resolving|resolve|connect|unreachable|timed out/i.test(text)) {
    return new RxeError(
      'ERR_RXE_DOWNLOAD',
      `cannot fetch ${what}: no connection to the package archive (${reason}); check the network and apt's proxy settings, or name a kernel that is here with --kernel`,
    );
  }
  return new RxeError('ERR_RXE_DOWNLOAD', `cannot fetch ${what}: ${reason}`);
}

function noSuchPackage(name: string): RxeError {
  const kind = name.startsWith('linux-source') ? 'linux-source-' : 'linux-image-';
  return new RxeError(
    'ERR_RXE_NO_KERNEL',
    `no package ${name} in the package sources of this machine; those that there are: apt-cache search --names-only '^${kind}[0-9]'`,
  );
}

function noSpace(directory: string, need?: string): RxeError {
  return new RxeError(
    'ERR_RXE_NO_SPACE',
    `no space left in ${directory}${need ? ` (${need})` : ''}; free some, or let NODE_RDMA_CACHE name a folder elsewhere`,
  );
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
