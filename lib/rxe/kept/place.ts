import { lstat, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { cachePath } from '../cache.js';
import { RxeError } from '../errors.js';

/** The longest path of a Unix socket, in bytes, with the zero that ends it. */
const longest = 108;

/** The socket by which the kept machine of this user is reached. */
export function socketPath(environment: NodeJS.ProcessEnv = process.env): string {
  const runtime = environment.XDG_RUNTIME_DIR;
  const path = runtime?.startsWith('/') ? join(runtime, 'node-rdma/machine') : cachePath('run/machine');
  if (Buffer.byteLength(path) < longest) return path;
  throw new RxeError(
    'ERR_RXE_USAGE',
    `${path} is too long for the path of a socket; let XDG_RUNTIME_DIR name a folder with a shorter one`,
  );
}

/** Who can write to the socket runs commands as its owner: the folder is closed to others. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = await lstat(folder);
  if (uid === process.getuid!() && (mode & 0o022) === 0) return;
  throw new RxeError(
    'ERR_RXE_INTERNAL',
    `${folder} can be written by others; as its owner: chmod 700 ${folder}`,
  );
}
