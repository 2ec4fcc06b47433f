// What identifiers of the connection manager do to the life of a process, and the end of a process to its peer.
import { describe, expect, it } from 'vitest';
import { killPeer, leaveNothing, run } from './run.js';

leaveNothing();

async function succeeds(way: string, stdout: string | RegExp, status = 0, flags: string[] = []) {
  const end = await run('cm', [way], flags);
  expect(end, end.stderr).toMatchObject({
    status,
    signal: null,
    stdout: typeof stdout === 'string' ? stdout : (expect.stringMatching(stdout) as string),
  });
}

describe.concurrent('a process', () => {
  it('ends although it is connected and listens to events', () => succeeds('idle', 'connected\n'));

  it('ends although it listens, where it says so', () => succeeds('unref', 'listening\n'));

  it('exits while it waits for the end of a connection', () => succeeds('exit', 'waiting\n'));

  it('exits while it connects', () => succeeds('exitConnecting', 'connecting\n'));

  it('throws while it is connected', () => succeeds('throw', 'connected\n', 1));
});

it.concurrent('workers with identifiers can be terminated, and their peers hear of it', () =>
  succeeds('terminate', 'all workers ended\n'),
);

it.concurrent('identifiers that are forgotten are found, and told of once for each kind', () =>
  succeeds('collect', /"CmId".*"EventChannel".*"QueuePair"/, 0, ['--expose-gc', '--no-warnings']),
);

it.concurrent('a peer that is killed is missed', async ({ onTestFinished }) => {
  expect(await killPeer('cm', onTestFinished)).toBe('the peer is gone\n');
});
