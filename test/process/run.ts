// Programs that tests run as processes of their own.
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';

const programFile = (name: string) => fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url));

export interface End {
  status: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

/** Runs one of the programs of test/process to its end. */
export function run(name: string, args: string[] = [], flags: string[] = []): Promise<End> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...flags, programFile(name), ...args],
      { timeout: 150_000, killSignal: 'SIGKILL' },
      (_error, stdout, stderr) =>
        resolve({ status: child.exitCode, signal: child.signalCode, stdout, stderr }),
    );
  });
}

/**
 * Two processes of a program, `serve` and, with the port that this prints, `stay`: the latter is killed when it is connected.
 * Resolves to what the former prints then, when it has ended with status 0.
 */
export async function killPeer(name: string, onTestFinished: (end: () => void) => void): Promise<string> {
  const start = (...args: string[]) => {
    const child = execFile(process.execPath, [programFile(name), ...args]);
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  };
  const server = start('serve');
  const [port] = (await once(server.stdout!, 'data')) as [string];
  const client = start('stay', port.trim());
  expect(await once(client.stdout!, 'data')).toEqual(['connected\n']);
  const said = once(server.stdout!, 'data') as Promise<[string]>;
  client.kill('SIGKILL');
  const [words] = await said;
  expect(await once(server, 'exit')).toEqual([0, null]);
  return words;
}

/** Verbs objects that the kernel still has of other processes, or of this one. */
export function resources(whose: 'others' | 'own' = 'others'): string[] {
  const kinds = ['qp', 'mr', 'cq', 'pd', 'ctx'];
  return kinds
    .flatMap((kind) => execFileSync('rdma', ['resource', 'show', kind], { encoding: 'utf8' }).split('\n'))
    .filter((line) => /\bpid \d+/.test(line) && line.includes(` pid ${process.pid} `) === (whose === 'own'));
}

/** Identifiers of the connection manager of processes that the kernel still has. */
function identifiers(): string[] {
  return execFileSync('rdma', ['resource', 'show', 'cm_id'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => /\bpid \d+/.test(line) && !line.includes(` pid ${process.pid} `));
}

/** Nothing that the programs of a file had is left in the kernel when its tests, which run side by side, are over. */
export function leaveNothing(): void {
  afterAll(() => {
    expect([...resources(), ...identifiers()]).toEqual([]);
  });
}
