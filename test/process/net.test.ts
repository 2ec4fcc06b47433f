// What connections of node-rdma/net do to the life of a process, and the end of a process to its peer.
import { describe, expect, it } from 'vitest';
import { killPeer, leaveNothing, run } from './run.js';

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
    expect(await killPeer('net', onTestFinished)).toMatch(
      /^(ECONNRESET|ETIMEDOUT) (ECONNRESET|ETIMEDOUT)\n$/,
    );
  },
);
