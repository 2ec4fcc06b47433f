// What waiting does to the life of a process: it lives on for it, and for nothing less; and it can be ended at any time.
import { describe, expect, it } from 'vitest';
import { leaveNothing, run } from './run.js';

leaveNothing();

async function succeeds(way: string, stdout: string) {
  const end = await run('events', [way], ['--expose-gc']);
  expect(end, end.stderr).toMatchObject({ status: 0, signal: null, stdout, stderr: '' });
}

describe.concurrent('a process', () => {
  it('ends although it listens and completion events may come', () => succeeds('listen', 'listening\n'));

  it('lives while it waits for a completion, though nothing else holds it', () => succeeds('wait', 'recv\n'));

  it('lives while it iterates, though nothing else holds it, and its objects are not collected', () =>
    succeeds('iterate', 'recv recv recv\n'));

  it('lives for asynchronous events where it says so', () => succeeds('ref', 'gidChange\n'));

  it('exits while it waits', () => succeeds('exit', 'waiting\n'));
});

it.concurrent('workers that wait can be terminated, asleep and under a flood of events', () =>
  succeeds('terminate', 'all workers ended\n'),
);
