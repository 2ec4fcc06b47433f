// Runs `node-rdma rxe …` as a user does, with a cache and a runtime folder of its own for the kept machine.
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

const main = join(import.meta.dirname, '../../dist/cli/main.js');

export interface Outcome {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: Buffer;
}

export interface Running {
  child: ChildProcess;
  outcome: Promise<Outcome>;
}

export function startRxe(args: string[], options: SpawnOptions = {}): Running {
  const child = spawn(process.execPath, [main, 'rxe', ...args], { stdio: 'pipe', ...options });
  child.stdin?.on('error', () => {});
  const collect = (stream: Readable | null): Promise<Buffer> =>
    stream ? buffer(stream).catch(() => Buffer.alloc(0)) : Promise.resolve(Buffer.alloc(0));
  const streams = Promise.all([collect(child.stdout), collect(child.stderr)]);
  const outcome = new Promise<Outcome>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => {
      void streams.then(([stdout, stderr]) => resolve({ status, signal, stdout, stderr }));
    });
  });
  return { child, outcome };
}

export function rxe(
  args: string[],
  options: SpawnOptions & { input?: Buffer | string } = {},
): Promise<Outcome> {
  const { child, outcome } = startRxe(args, options);
  child.stdin!.end(options.input);
  return outcome;
}

/** Process ids, on the host, whose command line or environment's folder names a machine of process `pid`. */
export function processesOfMachine(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(`node-rdma-rxe-${pid}-`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export function waitUntil(what: string, condition: () => boolean, milliseconds = 10_000): Promise<void> {
  const deadline = Date.now() + milliseconds;
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (condition()) resolve();
      else if (Date.now() > deadline) reject(new Error(`not within ${milliseconds} ms: ${what}`));
      else setTimeout(look, 50);
    };
    look();
  });
}
