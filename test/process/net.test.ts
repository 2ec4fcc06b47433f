// What connections of node-rdma/net do to the life of a process, and the end of a process to its peer.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { leaveNothing, programFile, run } from './run.js';

leaveNothing();

async function ends(way: string, stdout: string, status = 0, stderr = /^$/) {
  const end = await run('net', [way]);
  expect(end, end.stderr).toMatchObject({ status, signal: null, stdout });
  expect(end.stderr).toMatch(stderr);
}

describe.concurrent('a process', () => {
  it('ends although it has connections, where they say so', () => ends('unref', 'connected\n'));

  it('ends when its connections are over', () => ends('over', 'over\n'));

  it('exits while it sends', () => ends('exit', 'sending\n'));

  it('ends with an error that nobody takes', () => ends('uncaught', '', 1, /nobody takes this/));
});

it.concurrent(
  'a peer that is killed resets the connection for who reads and who sends',
  async ({ onTestFinished }) => {
    const start = (...args: string[]) => {
      const child = execFile(process.execPath, [programFile('net'), ...args]);
      onTestFinished(() => void child.kill('SIGKILL'));
      return child;
    };
    const server = start('serve');
    const [port] = (await once(server.stdout!, 'data')) as [string];
    const client = start('stay', port.trim());
    expect(await once(client.stdout!, 'data')).toEqual(['connected\n']);
    const said = once(server.stdout!, 'data');
    client.kill('SIGKILL');
    expect(await said).toEqual([expect.stringMatching(/^(ECONNRESET|ETIMEDOUT) (ECONNRESET|ETIMEDOUT)\n$/)]);
    expect(await once(server, 'exit')).toEqual([0, null]);
  },
);
