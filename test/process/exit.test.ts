// How programs end: at every stage, in every way, with work in flight. None may crash, hang or leave a verbs object behind.
import { describe, expect, it } from 'vitest';
import { leaveNothing, run } from './run.js';

leaveNothing();

// Each process costs a second or more in a machine, so not every stage ends in every way.
const ends: [way: string, status: number, stages: string[]][] = [
  ['exit', 0, ['import', 'open', 'mr', 'registering', 'modifying', 'inFlight', 'closing']],
  ['return', 0, ['registering', 'inFlight', 'closed']],
  ['throw', 1, ['modifying', 'inFlight']],
];

describe.concurrent.each(ends)('a process that ends by %s', (way, status, stages) => {
  it.each(stages)('at stage %s', async (stage) => {
    const end = await run('exit-at', [stage, way]);
    expect(end, end.stderr).toMatchObject({ status, signal: null, stdout: `reached ${stage}\n` });
  });
});

it.concurrent('workers with work in flight end, terminated or by themselves, also two at once', async () => {
  const end = await run('workers', ['2']);
  expect(end, end.stderr).toMatchObject({ status: 0, signal: null, stdout: 'all workers ended\n' });
  expect(end.stderr).toBe('');
});

it.concurrent('what is forgotten is found, told once for each kind, and destroyed', async () => {
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
});
