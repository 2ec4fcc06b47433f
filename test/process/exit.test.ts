// How programs end: at every stage, in every way, with work in flight. None may crash, hang or leave a verbs object behind.
import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const program = (name: string) => fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url));

interface End {
  status: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

function run(name: string, args: string[] = [], flags: string[] = []): Promise<End> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...flags, program(name), ...args],
      { timeout: 150_000, killSignal: 'SIGKILL' },
      (_error, stdout, stderr) =>
        resolve({ status: child.exitCode, signal: child.signalCode, stdout, stderr }),
    );
  });
}

/** Verbs objects of processes that the kernel still has. */
function resources(): string[] {
  const kinds = ['qp', 'mr', 'cq', 'pd', 'ctx'];
  return kinds
    .flatMap((kind) => execFileSync('rdma', ['resource', 'show', kind], { encoding: 'utf8' }).split('\n'))
    .filter((line) => /\bpid \d+/.test(line) && !line.includes(` pid ${process.pid} `));
}

// Each process costs a second or more in a machine, so not every stage ends in every way.
const ends: [way: string, status: number, stages: string[]][] = [
  ['exit', 0, ['import', 'open', 'mr', 'registering', 'modifying', 'inFlight', 'closing']],
  ['return', 0, ['registering', 'inFlight', 'closed']],
  ['throw', 1, ['modifying', 'inFlight']],
];

describe.each(ends)('a process that ends by %s', (way, status, stages) => {
  it.each(stages)('at stage %s', async (stage) => {
    const end = await run('exit-at', [stage, way]);
    expect(end, end.stderr).toMatchObject({ status, signal: null, stdout: `reached ${stage}\n` });
    expect(resources()).toEqual([]);
  });
});

it('workers with work in flight end, terminated or by themselves, also two at once', async () => {
  const end = await run('workers', ['2']);
  expect(end, end.stderr).toMatchObject({ status: 0, signal: null, stdout: 'all workers ended\n' });
  expect(end.stderr).toBe('');
  expect(resources()).toEqual([]);
});

it('what is forgotten is found, told once for each kind, and destroyed', async () => {
  const end = await run('collect', [], ['--expose-gc', '--no-warnings']);
  expect(end, end.stderr).toMatchObject({ status: 0, signal: null });
  const [kinds, length] = end.stdout.trim().split('\n');
  expect(JSON.parse(kinds!)).toEqual([
    'CompletionQueue',
    'Context',
    'MemoryRegion',
    'ProtectionDomain',
    'QueuePair',
  ]);
  expect(length).toBe('4096');
  expect(resources()).toEqual([]);
});
