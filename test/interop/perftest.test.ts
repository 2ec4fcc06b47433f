// Our measurements with the programs of perftest, in both roles. What counts is what went over: exit status, sizes, iterations, bytes.
// perftest's own rates are not looked at: its clock fails it where the processor is emulated. C gets -e where it can, since on one
// CPU two programs that poll take turns by time slices. Ours runs in this process.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openDevice } from '../../lib/index.js';
import type { PerfOptions, PerfResult, PerfTest, SizeResult } from '../../lib/perf/index.js';
import { measure } from '../../lib/perf/perf.js';
import { deviceA, deviceB } from '../support/device.js';
import { listening, start, type ChildProgram, type Ended } from '../support/programs.js';
import { serve } from '../support/perf.js';
import { carried, receivedByB } from '../support/wire.js';

interface Case {
  ours: Omit<PerfOptions, 'test'>;
  /** Options of the program of C that say the same. */
  c: (string | number)[];
}

interface Played {
  result: PerfResult;
  c: Ended;
  /** What our memory held at the end: what it sent, and where something came to. */
  sent: Buffer;
  came: Buffer;
  /** Bytes that the wire has carried to the device of C meanwhile. */
  wireBytes: number;
}

const gidIndex = { a: 0, b: 0 };
let nextPort = 22_000;

beforeAll(() => {
  for (const [end, name] of [
    ['a', deviceA],
    ['b', deviceB],
  ] as const) {
    const context = openDevice(name);
    gidIndex[end] = context.chooseGid().index;
    context.close();
  }
});

function startC(test: PerfTest, port: number, options: readonly (string | number)[]): ChildProgram {
  const program = `ib_${test.replace('-', '_')}`;
  return start(program, ['-d', deviceB!, '-x', gidIndex.b, '-p', port, '-F', ...options], 'perftest');
}

/** Ours on device A, C on device B. */
async function play(test: PerfTest, role: 'client' | 'server', { ours, c }: Case): Promise<Played> {
  const port = nextPort++;
  const sent: Buffer[] = [];
  const came: Buffer[] = [];
  const run = (options: Partial<PerfOptions>) =>
    measure(
      // Emulated machines are slow to start a program and to answer.
      { test, device: deviceA, port, timeout: 90_000, stallTimeout: 60_000, ...ours, ...options },
      {
        onFinished: ({ flows, mr, room }) => {
          for (const { sendAt, receiveAt } of flows) {
            sent.push(Buffer.from(mr.buffer.subarray(sendAt, sendAt + room)));
            came.push(Buffer.from(mr.buffer.subarray(receiveAt, receiveAt + room)));
          }
        },
      },
    );
  const before = receivedByB();
  const { ended, finished } = role === 'client' ? await asClient() : await asServer();
  const result = await finished;
  return { result, c: await ended, sent: sent[0]!, came: came[0]!, wireBytes: receivedByB() - before };

  async function asClient() {
    const server = startC(test, port, c);
    await listening(server, port);
    return { ended: server.ended, finished: run({ host: '127.0.0.1' }) };
  }

  async function asServer() {
    let finished: Promise<PerfResult> | undefined;
    await new Promise<void>((resolve, reject) => {
      finished = run({ onListening: () => resolve() });
      finished.catch(reject);
    });
    return { ended: startC(test, port, [...c, '127.0.0.1']).ended, finished: finished! };
  }
}

/** Rows of its table: size and iterations. */
function rowsOf(stdout: string): [number, number][] {
  return [...stdout.matchAll(/^ (\d+) +(\d+) +[\d.infa-]+ /gm)].map((row) => [
    Number(row[1]),
    Number(row[2]),
  ]);
}

/** Numbers and first packet sequence numbers of the queue pairs, as the program of C tells them. */
function told(stdout: string, whose: 'local' | 'remote'): [number, number][] {
  const line = new RegExp(`^ ${whose} address: .*QPN 0x(\\w+) PSN 0x(\\w+)`, 'gm');
  return [...stdout.matchAll(line)].map((match) => [parseInt(match[1]!, 16), parseInt(match[2]!, 16)]);
}

/** No 16 bytes of it are all zero: it is random, so it would be by a chance of 2^-128. */
function expectRandom(bytes: Buffer): void {
  for (let at = 0; at + 16 <= bytes.length; at += 16) {
    expect(
      bytes.subarray(at, at + 16).some((byte) => byte !== 0),
      `bytes ${at} to ${at + 15}`,
    ).toBe(true);
  }
}

function expectSpoken({ result, c }: Played): void {
  expect(c).toMatchObject({ status: 0 });
  expect(result.error).toBeNull();
  const pairs = result.connection!.queuePairs;
  const ofOurs = pairs.map(({ local }) => [local.qpNum, local.psn]);
  const ofC = pairs.map(({ remote }) => [remote.qpNum, remote.psn]);
  expect(told(c.stdout, 'remote')).toEqual(ofOurs);
  expect(told(c.stdout, 'local')).toEqual(ofC);
  expect(result.connection!.peer).toMatchObject({ perftest: '6.06', nodeRdma: null });
}

const figures = ({ size, iterations }: SizeResult): [number, number] => [size, iterations];

/** Both tell of the same messages. */
function expectMessages({ result, c }: Played, sizes: number[], iterations: number): void {
  const expected = sizes.map((size): [number, number] => [size, iterations]);
  expect(result.results.map(figures)).toEqual(expected);
  expect(rowsOf(c.stdout)).toEqual(expected);
}

const n = 100;
const bandwidth = { size: 4096, iterations: n };
const bandwidthOfC = ['-s', 4096, '-n', n];
const latency = { size: 1000, iterations: n };
const latencyOfC = ['-s', 1000, '-n', n];

describe('our client with a server of C', () => {
  it('send-bw, with three queue pairs and an MTU of 256', async () => {
    const played = await play('send-bw', 'client', {
      ours: { ...bandwidth, queuePairs: 3, mtu: 256 },
      c: [...bandwidthOfC, '-q', 3, '-e'],
    });
    expectSpoken(played);
    expectMessages(played, [4096], 3 * n);
    expect(played.result.connection!.pathMtu).toBe(256);
    expect(played.wireBytes).toBeGreaterThan(3 * n * 4096);
  });

  it('send-lat, by events', async () => {
    const played = await play('send-lat', 'client', {
      ours: { ...latency, events: true },
      c: [...latencyOfC, '-e'],
    });
    expectSpoken(played);
    expectMessages(played, [1000], n);
    expectRandom(played.came.subarray(0, 1000));
    expect(played.wireBytes).toBeGreaterThan(n * 1000);
    expect(played.result.results[0]!.latency).toMatchObject({ count: n });
  });

  it('write-bw, as a program that prints JSON and writes a page', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'node-rdma-perf-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const page = path.join(folder, 'out.html');
    const port = nextPort++;
    const server = startC('write-bw', port, bandwidthOfC);
    await listening(server, port);
    const main = `${import.meta.dirname}/../../dist/cli/main.js`;
    const ours = ['-d', deviceA!, '-p', port, ...bandwidthOfC, '--json', '--report', page];
    const { ended } = start(process.execPath, [main, 'perf', 'write-bw', '127.0.0.1', ...ours]);
    const { status, stdout, stderr } = await ended;
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const result = JSON.parse(stdout) as PerfResult;
    expect(result).toMatchObject({
      schemaVersion: 1,
      test: 'write-bw',
      results: [{ size: 4096, iterations: n }],
    });
    expect(readFileSync(page, 'utf8')).toContain('Bandwidth by message size');
    expect(await server.ended).toMatchObject({ status: 0 });
  });

  it('write-bw, with the GID that is asked for', async () => {
    const played = await play('write-bw', 'client', {
      ours: { ...bandwidth, gidIndex: gidIndex.a },
      c: bandwidthOfC,
    });
    expectSpoken(played);
    expectMessages(played, [4096], n);
    expect(played.wireBytes).toBeGreaterThan(n * 4096);
    expect(played.result.device.gid.index).toBe(gidIndex.a);
    expect(played.result.results[0]).toMatchObject({ measuredBy: 'this end' });
  });

  it('write-lat', async () => {
    const played = await play('write-lat', 'client', { ours: { iterations: 77 }, c: ['-n', 77] });
    expectSpoken(played);
    expectMessages(played, [2], 77);
    expect(played.came[1]).toBe(77);
  });

  it('read-bw, with four outstanding, by events', async () => {
    const played = await play('read-bw', 'client', {
      ours: { ...bandwidth, outstandingReads: 4, events: true },
      c: [...bandwidthOfC, '-o', 4],
    });
    expectSpoken(played);
    expectMessages(played, [4096], n);
    expectRandom(played.sent.subarray(0, 4096));
  });

  it('read-lat', async () => {
    const played = await play('read-lat', 'client', { ours: latency, c: latencyOfC });
    expectSpoken(played);
    expect(played.result.results.map(figures)).toEqual([[1000, n]]);
    expectRandom(played.sent.subarray(0, 1000 - (1000 % 16)));
  });

  it('atomic-bw, with two queue pairs', async () => {
    const played = await play('atomic-bw', 'client', {
      ours: { iterations: n, queuePairs: 2 },
      c: ['-n', n, '-q', 2],
    });
    expectSpoken(played);
    expectMessages(played, [8], 2 * n);
    expect(played.sent.subarray(0, 8).some((byte) => byte !== 0)).toBe(true);
  });

  it('atomic-lat, comparing and swapping', async () => {
    const played = await play('atomic-lat', 'client', {
      ours: { iterations: n, atomic: 'compare-swap' },
      c: ['-n', n, '-A', 'CMP_AND_SWAP'],
    });
    expectSpoken(played);
    expect(played.result.results.map(figures)).toEqual([[8, n]]);
    expect(played.sent.subarray(0, 8).some((byte) => byte !== 0)).toBe(true);
  });

  it('write-bw, all sizes', async () => {
    const played = await play('write-bw', 'client', {
      ours: { size: 'all', iterations: 5 },
      c: ['-a', '-n', 5],
    });
    expectSpoken(played);
    const sizes = Array.from({ length: 23 }, (_, i) => 2 ** (i + 1));
    expect(played.result.results.map(figures)).toEqual(sizes.map((size) => [size, 5]));
    expect(rowsOf(played.c.stdout)).toEqual([[2 ** 23, 5]]);
    expect(played.wireBytes).toBeGreaterThan(5 * (2 ** 24 - 2));
  });

  it('send-lat, of datagrams', async () => {
    const played = await play('send-lat', 'client', {
      ours: { ...latency, connection: 'ud' },
      c: [...latencyOfC, '-c', 'UD', '-e'],
    });
    expectSpoken(played);
    expectMessages(played, [1000], n);
    expectRandom(played.came.subarray(40, 1040));
  });

  it('write-bw, for a second, both ways', async () => {
    const played = await play('write-bw', 'client', {
      ours: { size: 65_536, duration: 1, bidirectional: true },
      c: ['-s', 65_536, '-D', 1, '-b'],
    });
    expectSpoken(played);
    const [{ directions, size }] = played.result.results as [SizeResult];
    expect(size).toBe(65_536);
    expect(directions!.outgoing.messages).toBeGreaterThan(0);
    expectRandom(played.came.subarray(0, 65_536));
  });
});

describe('our server with a client of C', () => {
  it('send-bw, both ways', async () => {
    const played = await play('send-bw', 'server', {
      ours: { ...bandwidth, bidirectional: true },
      c: [...bandwidthOfC, '-b', '-e'],
    });
    expectSpoken(played);
    expectMessages(played, [4096], n);
    expect(played.result.results[0]!.directions!.incoming.messages).toBe(n);
    expectRandom(played.came.subarray(0, 4096));
    expect(played.wireBytes).toBeGreaterThan(n * 4096);
  });

  it('send-lat', async () => {
    const played = await play('send-lat', 'server', { ours: latency, c: [...latencyOfC, '-e'] });
    expectSpoken(played);
    expectMessages(played, [1000], n);
    expectRandom(played.came.subarray(0, 1000 - (1000 % 16)));
  });

  it('write-bw, with three queue pairs, both ways', async () => {
    const played = await play('write-bw', 'server', {
      ours: { ...bandwidth, bidirectional: true, queuePairs: 3 },
      c: [...bandwidthOfC, '-b', '-q', 3],
    });
    expectSpoken(played);
    expectMessages(played, [4096], 3 * n);
    expectRandom(played.came.subarray(0, 4096));
    expect(played.wireBytes).toBeGreaterThan(3 * n * 4096);
  });

  it('write-lat, over UC', async () => {
    const played = await play('write-lat', 'server', {
      ours: { iterations: 50, connection: 'uc' },
      c: ['-n', 50, '-c', 'UC'],
    });
    expectSpoken(played);
    expectMessages(played, [2], 50);
    expect(played.came[1]).toBe(50);
  });

  it('read-bw, both ways', async () => {
    const played = await play('read-bw', 'server', {
      ours: { ...bandwidth, bidirectional: true },
      c: [...bandwidthOfC, '-b', '-e'],
    });
    expectSpoken(played);
    expectMessages(played, [4096], n);
    expectRandom(played.sent.subarray(0, 4096));
    expect(played.wireBytes).toBeGreaterThan(n * 4096);
  });

  it('read-lat', async () => {
    const played = await play('read-lat', 'server', { ours: latency, c: [...latencyOfC, '-e'] });
    expectSpoken(played);
    expect(rowsOf(played.c.stdout)).toEqual([[1000, n]]);
    expect(played.result.results).toEqual([]);
    expect(played.wireBytes).toBeGreaterThan(n * 1000);
  });

  it.each<PerfTest>(['atomic-bw', 'atomic-lat'])('%s, of which each has added 1', async (test) => {
    const played = await play(test, 'server', { ours: { iterations: n }, c: ['-n', n, '-e'] });
    expectSpoken(played);
    expect(rowsOf(played.c.stdout)).toEqual([[8, n]]);
    const counters = new BigUint64Array(new Uint8Array(played.came).buffer);
    expect(counters.reduce((sum, counter) => sum + counter)).toBe(BigInt(n));
  });

  it('write-bw, of whatever size and number the client likes', async () => {
    const played = await play('write-bw', 'server', { ours: { size: 65_536 }, c: ['-s', 5000, '-n', 20] });
    expectSpoken(played);
    expect(rowsOf(played.c.stdout)).toEqual([[5000, 20]]);
    expect(played.result.results).toMatchObject([{ size: 5000, iterations: 20, measuredBy: 'peer' }]);
    expectRandom(played.came.subarray(0, 5000 - (5000 % 16)));
    expect(played.came.subarray(5000).every((byte) => byte === 0)).toBe(true);
  });

  it('send-bw, all sizes of datagrams', async () => {
    const played = await play('send-bw', 'server', {
      ours: { size: 'all', iterations: 20, connection: 'ud' },
      c: ['-a', '-n', 20, '-c', 'UD'],
    });
    expectSpoken(played);
    expectMessages(played, sizesTo(played.result.device.activeMtu), 20);
    expect(played.result.results.every(({ lost }) => lost === 0)).toBe(true);
  });

  it('send-bw, for a second, over UC', async () => {
    const played = await play('send-bw', 'server', {
      ours: { ...bandwidth, iterations: undefined, duration: 1, connection: 'uc' },
      c: ['-s', 4096, '-D', 1, '-c', 'UC'],
    });
    expectSpoken(played);
    expect(played.result.results[0]!.iterations).toBeGreaterThan(0);
    expectRandom(played.came.subarray(0, 4096));
  });

  it('send-lat, for a second', async () => {
    const played = await play('send-lat', 'server', {
      ours: { size: 64, duration: 1 },
      c: ['-s', 64, '-D', 1],
    });
    expectSpoken(played);
    expect(played.result.results[0]!.latency!.count).toBeGreaterThan(0);
    expectRandom(played.came.subarray(0, 64));
  });
});

describe('a program of C that is killed', () => {
  it.each<PerfTest>(['write-bw', 'send-lat'])(
    'as the server of our %s ends it with an error',
    async (test) => {
      const port = nextPort++;
      const server = startC(test, port, ['-D', 100]);
      await listening(server, port);
      const run = measure({ test, device: deviceA, host: '127.0.0.1', port, duration: 100, margin: 0 }, {});
      await expectLoss(run, server);
    },
  );

  it.each<PerfTest>(['send-bw', 'write-lat'])(
    'as the client of our %s ends it with an error',
    async (test) => {
      const { port, finished } = await serve({ test, device: deviceA, duration: 100, margin: 0 });
      await expectLoss(finished, startC(test, port, ['-D', 100, '127.0.0.1']));
    },
  );

  /** Within a bounded time, with what was measured until then. */
  async function expectLoss(ours: Promise<unknown>, c: ChildProgram): Promise<void> {
    const failure = ours.then(
      () => undefined,
      (error: unknown) => error as { code: string; result: PerfResult },
    );
    await carried(20_000);
    c.child.kill('SIGKILL');
    const killed = performance.now();
    const error = await failure;
    expect(performance.now() - killed).toBeLessThan(30_000);
    expect(error!.code).toMatch(/^ERR_RDMA_(PEER_LOST|COMPLETION|TIMEOUT)$/);
    expect(error!.result.results).toMatchObject([{ incomplete: true }]);
  }
});

function sizesTo(largest: number): number[] {
  return Array.from({ length: Math.log2(largest) }, (_, i) => 2 ** (i + 1));
}
