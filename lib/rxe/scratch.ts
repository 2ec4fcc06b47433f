/**
 * A folder for what a machine keeps on the host while it runs. Its name says whose it is, so that what a killed process
 * left is found, and removed, by the next start.
 */
import { mkdtemp, readFile, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RxeError } from './errors.js';

const prefix = 'node-rdma-rxe';

/** Room that the folder must have, in bytes, and whether programs must be executable in it. */
export interface ScratchNeeds {
  bytes: number;
  execute: boolean;
}

/** Makes a folder in the first place that has what is needed: /dev/shm, else the folder for temporary files. */
export async function makeScratch(needs: ScratchNeeds): Promise<string> {
  const places = [...new Set(['/dev/shm', tmpdir(), '/tmp'])];
  await Promise.all(places.map(sweep));
  const complaints: string[] = [];
  for (const place of places) {
    const complaint = await whyNot(place, needs);
    if (complaint) {
      complaints.push(`${place} ${complaint}`);
      continue;
    }
    try {
      // The time of the start tells this process from a later one of the same number.
      return await mkdtemp(join(place, `${prefix}-${process.pid}-${await startTime(process.pid)}-`));
    } catch (error) {
      complaints.push(`${place} cannot be written (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  throw new RxeError(
    'ERR_RXE_NO_SPACE',
    `no folder for the machine's memory: ${complaints.join('; ')}. Let TMPDIR name a folder with ${mebibytes(needs.bytes)} free` +
      `${needs.execute ? ' and without noexec' : ''}, or ask for less with --memory`,
  );
}

async function whyNot(place: string, needs: ScratchNeeds): Promise<string | undefined> {
  // A path with a blank cannot be passed on a kernel's command line.
  if (/\s/.test(place)) return 'has a blank in its name';
  const space = await statfs(place).catch(() => undefined);
  if (!space) return 'is not there';
  const free = space.bavail * space.bsize;
  if (free < needs.bytes) return `has ${mebibytes(free)} free of the ${mebibytes(needs.bytes)} needed`;
  if (needs.execute && (await isNoExec(place))) return 'is mounted noexec';
  return undefined;
}

async function isNoExec(place: string): Promise<boolean> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  const mounts = table
    .split('\n')
    .map((line) => line.split(' '))
    .map(([, , , , point, options]) => ({ point: unescape(point ?? ''), options: options ?? '' }))
    .filter(
      ({ point }) => point !== '' && (place + '/').startsWith(point.endsWith('/') ? point : point + '/'),
    );
  // The last of the longest: later mounts cover earlier ones.
  const covering = mounts.reduce((best, mount) => (mount.point.length >= best.point.length ? mount : best));
  return covering.options.split(',').includes('noexec');
}

function unescape(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
}

/** Removes the folders whose makers are gone. Those of other users are theirs. */
async function sweep(place: string): Promise<void> {
  const names = await readdir(place).catch(() => []);
  for (const name of names) {
    const [, pid, started] = new RegExp(`^${prefix}-(\\d+)-(\\d+)-`).exec(name) ?? [];
    if (pid === undefined || (await startTime(Number(pid))) === started) continue;
    await rm(join(place, name), { recursive: true, force: true }).catch(() => {});
  }
}

/** In clock ticks since boot, as text; empty if there is no such process. */
export async function startTime(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name, in parentheses, may hold anything. Of what follows it, the start time is field 22 of all, 20 of these.
  return status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
