// Programs that run beside a test: started, awaited, and ended with the test at the latest.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';

export interface Ended {
  /** Exit status, or the signal that ended it. */
  status: number | string;
  stdout: string;
  stderr: string;
}

export interface Program {
  command: string;
  /** What it has written so far. */
  output: { stdout: string; stderr: string };
  ended: Promise<Ended>;
}

export interface ChildProgram extends Program {
  child: ChildProcess;
}

/** Takes what is to be done when a test ends: the test's own in tests that run side by side, where vitest's knows of none. */
export type AtEnd = (end: () => void | Promise<void>) => void;

/** Starts a program, which is ended with the test; a missing one fails with the Debian package to install. */
export function start(
  file: string,
  args: readonly (string | number)[],
  debianPackage = '',
  atEnd: AtEnd = onTestFinished,
): ChildProgram {
  const child = spawn(file, args.map(String), { stdio: ['ignore', 'pipe', 'pipe'] });
  atEnd(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text));
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', (cause) => {
      const install = debianPackage === '' ? '' : `: apt-get install ${debianPackage}`;
      reject(new Error(`${file} cannot be started${install}`, { cause }));
    });
    child.once('close', (code, signal) => {
      resolve({ status: code ?? signal!, ...output });
    });
  });
  ended.catch(() => undefined); // whoever awaits it hears of it
  return { command: [file, ...args].join(' '), child, output, ended };
}

/**
 * Starts a program of Node in a worker of this process, where it is an environment of its own: in an emulated machine Node
 * itself takes seconds to start.
 */
export function startWorker(
  file: string,
  args: readonly (string | number)[],
  atEnd: AtEnd = onTestFinished,
): Program {
  const worker = new Worker(file, { argv: args.map(String), stdout: true, stderr: true });
  atEnd(async () => {
    await worker.terminate();
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    worker[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text));
  }
  // What nobody catches, a process tells on standard error.
  worker.once('error', (error) => (output.stderr += `${error.stack}\n`));
  const ended = new Promise<Ended>((resolve) => {
    worker.once('exit', (status) => resolve({ status, ...output }));
  });
  return { command: [file, ...args].join(' '), output, ended };
}

/**
 * Waits until a program listens on a TCP port, by the kernel's tables: trying to connect would be its first client.
 *
 * @throws Error with its output when it ends first, or when it does not listen in time
 */
export function listening(program: Program, port: number, timeoutMs = 30_000): Promise<void> {
  return until(program, () => isListening(port), timeoutMs);
}

/** {@link listening} on a port of the connection manager. */
export function listeningOnCm(program: Program, port: number, timeoutMs = 30_000): Promise<void> {
  const listens = new RegExp(` state LISTEN .* src-addr \\S*:${port} `, 'm');
  return until(
    program,
    () => listens.test(execFileSync('rdma', ['resource', 'show', 'cm_id'], { encoding: 'utf8' })),
    timeoutMs,
  );
}

/** What `work` gives; where it fails, the error also tells what a program beside it has written. */
export async function beside<T>(program: Program, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    (error as Error).message += `\n${program.command}: ${JSON.stringify(program.output)}`;
    throw error;
  }
}

/** Waits until a program has written something. @throws as {@link listening} */
export function written(program: Program, text: string, timeoutMs = 30_000): Promise<void> {
  return until(program, () => program.output.stdout.includes(text), timeoutMs, `has not written "${text}"`);
}

async function until(
  program: Program,
  is: () => boolean,
  timeoutMs: number,
  lacks = 'does not listen',
): Promise<void> {
  let ended: Ended | undefined;
  program.ended.then(
    (how) => (ended = how),
    () => undefined,
  );
  const deadline = Date.now() + timeoutMs;
  while (!is()) {
    if (ended) throw new Error(`${program.command} ended: ${JSON.stringify(ended)}`);
    if (Date.now() > deadline) throw new Error(`${program.command} ${lacks} after ${timeoutMs} ms`);
    await Promise.race([setTimeout(20), program.ended.then(() => undefined)]);
  }
}

/** proc_pid_net(5): local address and port in hexadecimal, remote ones, state; 0A is LISTEN. */
function isListening(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const listens = new RegExp(`^ *\\d+: [0-9A-F]+:${hex} [0-9A-F]+:0000 0A `, 'm');
  return ['tcp', 'tcp6'].some((table) => listens.test(readFileSync(`/proc/net/${table}`, 'utf8')));
}
