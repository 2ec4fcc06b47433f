// Programs that run beside a test: started, awaited, and ended with the test at the latest.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

export interface Ended {
  /** Exit status, or the signal that ended it. */
  status: number | string;
  stdout: string;
  stderr: string;
}

export interface Program {
  command: string;
  child: ChildProcess;
  ended: Promise<Ended>;
}

/** Starts a program, which is ended with the test; a missing one fails with the Debian package to install. */
export function start(file: string, args: readonly (string | number)[], debianPackage = ''): Program {
  const child = spawn(file, args.map(String), { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
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
  return { command: [file, ...args].join(' '), child, ended };
}

/**
 * Waits until a program listens on a TCP port, by the kernel's tables: trying to connect would be its first client.
 *
 * @throws Error with its output when it ends first, or when it does not listen in time
 */
export async function listening(program: Program, port: number, timeoutMs = 30_000): Promise<void> {
  let ended: Ended | undefined;
  program.ended.then(
    (how) => (ended = how),
    () => undefined,
  );
  const deadline = Date.now() + timeoutMs;
  while (!isListening(port)) {
    if (ended) throw new Error(`${program.command} ended: ${JSON.stringify(ended)}`);
    if (Date.now() > deadline) throw new Error(`${program.command} does not listen after ${timeoutMs} ms`);
    await Promise.race([setTimeout(20), program.ended.then(() => undefined)]);
  }
}

/** proc_pid_net(5): local address and port in hexadecimal, remote ones, state; 0A is LISTEN. */
function isListening(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const listens = new RegExp(`^ *\\d+: [0-9A-F]+:${hex} [0-9A-F]+:0000 0A `, 'm');
  return ['tcp', 'tcp6'].some((table) => listens.test(readFileSync(`/proc/net/${table}`, 'utf8')));
}
