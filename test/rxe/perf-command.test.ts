// `node-rdma perf` as a program: what it prints, what it writes, how it ends.
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it, vi } from 'vitest';
import type { PerfFlags } from '../../lib/cli/perf-options.js';
import { runPerf } from '../../lib/cli/perf/run.js';
import { deviceA, deviceB } from '../support/device.js';
import { start } from '../support/programs.js';
import { carried } from '../support/wire.js';
import { serve } from '../support/perf.js';

const program = `${import.meta.dirname}/../../dist/cli/main.js`;
const client = (...args: (string | number)[]) =>
  start(process.execPath, [program, 'perf', ...args, '-d', deviceA!]);

/** The client in this process, with what it prints. */
async function runClient(test: string, port: number, flags: PerfFlags) {
  const stdout = new PassThrough();
  const written = text(stdout);
  let stderr = '';
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    stderr += String(chunk);
    return true;
  });
  const status = await runPerf(test, '127.0.0.1', { ibDev: deviceA, port, ...flags }, stdout);
  spy.mockRestore();
  stdout.end();
  return { status, stdout: await written, stderr };
}

it('prints what was measured until Ctrl-C, and ends with status 130', async () => {
  const { port, finished } = await serve({ test: 'write-bw', size: 65_536, duration: 100 });
  const { ended, child } = client('write-bw', '127.0.0.1', '-p', port, '-D', 100, '-f', 0);
  await carried(5_000_000);
  child.kill('SIGINT');
  const { status, stdout, stderr } = await ended;
  expect(status).toBe(130);
  expect(stdout).toMatch(/\n +65536 +[1-9]\d* +– +\d+\.\d\d +\d\.\d{6} {2}incomplete\n/);
  expect(stderr).toBe('node-rdma perf: interrupted: these are the figures until then\n');
  await expect(finished).rejects.toMatchObject({ code: 'ERR_RDMA_PEER_LOST' });
});

it('prints a table, each way by itself with --report-both', async () => {
  const { port, finished } = await serve({
    test: 'send-bw',
    size: 4096,
    iterations: 50,
    bidirectional: true,
  });
  const flags = { size: 4096, iters: 50, bidirectional: true, reportBoth: true };
  const { status, stdout, stderr } = await runClient('send-bw', port, flags);
  await finished;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(
    /^send-bw, client, with 127\.0\.0\.1 \(node-rdma [\d.]+\): RC, path MTU \d+, 1 queue pair, window 50/,
  );
  expect(stdout).toMatch(/\n +bytes +iterations +peak MiB\/s +average MiB\/s +Mpps\n +4096 +50 /);
  expect(stdout).toMatch(/\nFrom this end:\n.*\n +4096 +50 .*\nFrom the peer:\n.*\n +4096 +50 /);
});

it('prints every sample', async () => {
  const { port, finished } = await serve({ test: 'read-lat', iterations: 20, size: 2 });
  const { stdout } = await runClient('read-lat', port, { iters: 20, histogram: true, reportCycles: true });
  await finished;
  const samples = stdout.split('in nanoseconds, sorted:\n')[1]!.trim().split('\n').map(Number);
  expect(samples).toHaveLength(20);
  expect(samples).toEqual(samples.toSorted((a, b) => a - b));
});

it('fails below a limit, and says by how much', async () => {
  const { port, finished } = await serve({ test: 'read-bw', iterations: 20, size: 65_536 });
  const { status, stderr } = await runClient('read-bw', port, { iters: 20, limitBw: 1e9 });
  await finished;
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /^node-rdma perf: with messages of 65536 bytes the rate is [\d.]+ MiB\/s, and the limit is 1000000000 MiB\/s\n$/,
  );
});

it('has the error in the JSON, too', async () => {
  const { port, finished } = await serve({ test: 'read-bw', iterations: 20 });
  const { status, stdout, stderr } = await runClient('read-bw', port, { iters: 21, json: true });
  await expect(finished).rejects.toMatchObject({ code: 'ERR_RDMA_MISMATCH' });
  expect(status).toBe(1);
  expect(stderr).toMatch(/iterations is 21 here and 20 there/);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'ERR_RDMA_MISMATCH' }, results: [] });
});

it('a server tells how its client is started', async () => {
  const stdout = new PassThrough().setEncoding('utf8');
  const flags: PerfFlags = { ibDev: deviceB, port: 0, iters: 10 };
  const finished = runPerf('atomic-bw', undefined, flags, stdout);
  let said = '';
  stdout.on('data', (chunk: string) => (said += chunk));
  while (!said.includes('ib_atomic_bw')) await once(stdout, 'data');
  const port = Number(/TCP port (\d+)/.exec(said)![1]);
  expect(said).toContain(`  node-rdma perf atomic-bw -n 10 -p ${port} HOST\n`);
  expect((await runClient('atomic-bw', port, { iters: 10 })).status).toBe(0);
  expect(await finished).toBe(0);
  expect(said).toMatch(/\n +8 +10 .* {2}the peer's figures\n$/);
});

it.each<[string, PerfFlags, RegExp]>([
  ['write-bw', { rdmaCm: true, mtu: 1024 }, /-m must be absent with rdmaCm: it is that of the address/],
  ['write-bw', { rdmaCm: true, connection: 'uc' }, /-R must be absent for UC/],
  ['write-bw', { mtu: 1500 }, /-m must be one of 256, /],
  ['write-bw', { gidIndex: 200 }, /has no GID at index 200/],
  ['ping', {}, /"test" must be one of send-bw, /],
])('refuses %s %j', async (test, flags, message) => {
  const { status, stderr, stdout } = await runClient(test, 1, flags);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(message);
});
