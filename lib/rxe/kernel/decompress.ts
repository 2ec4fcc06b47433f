/** Reads a kernel module, compressed or not. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { buffer } from 'node:stream/consumers';

import { RxeError } from '../errors.js';

const programs = new Map([
  ['.xz', { command: 'xz', package: 'xz-utils' }],
  ['.gz', { command: 'gzip', package: 'gzip' }],
  ['.zst', { command: 'zstd', package: 'zstd' }],
]);

export async function decompress(file: string): Promise<Buffer> {
  const program = programs.get(extname(file));
  if (!program) return readFile(file);
  const child = spawn(program.command, ['-dc', file], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', (error) =>
      reject(
        new RxeError(
          'ERR_RXE_NO_TOOLS',
          `${program.command} is needed for the modules of this kernel; install it: apt-get install ${program.package}`,
          { cause: error },
        ),
      ),
    );
    child.once('close', (status) => {
      if (status === 0) resolve();
      else reject(new RxeError('ERR_RXE_NO_KERNEL', `cannot decompress ${file}`));
    });
  });
  const [content] = await Promise.all([buffer(child.stdout), ended]);
  return content;
}
