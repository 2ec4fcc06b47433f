// The ping-pong programs in examples/ against those of C, in both roles. C waits for events (-e) where it can: on one CPU, two
// programs that poll take turns by time slices.
import { once } from 'node:events';
import net from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { openDevice } from '../../lib/index.js';
import { deviceA, deviceB } from '../support/device.js';
import { listening, start, startWorker, type AtEnd, type Ended, type Program } from '../support/programs.js';

const address = { a: process.env.NODE_RDMA_RXE_ADDRESS_A!, b: process.env.NODE_RDMA_RXE_ADDRESS_B! };
const address6 = { a: process.env.NODE_RDMA_RXE_ADDRESS6_A!, b: process.env.NODE_RDMA_RXE_ADDRESS6_B! };
const examples = `${import.meta.dirname}/../../examples`;

type Kind = 'rc' | 'uc' | 'ud' | 'srq';

interface Game {
  size: number;
  iters: number;
  addresses?: typeof address;
  options?: (string | number)[];
  /** Options of one side alone. By default both check what arrives. */
  ofC?: string[];
  ours?: string[];
}

let nextPort = 21_000;
let activeMtu = 0;

beforeAll(() => {
  const context = openDevice(deviceA);
  ({ activeMtu } = context.queryPort());
  context.close();
});

/** Options of a C program for device B. It takes a GID by its index alone. */
function asC({ b }: typeof address): (string | number)[] {
  const context = openDevice(deviceB);
  const { index } = context.chooseGid({ address: b });
  context.close();
  return ['-d', deviceB!, '-g', index, '-e'];
}

function startOurs(kind: Kind, args: readonly (string | number)[], atEnd: AtEnd): Program {
  return startWorker(`${examples}/${kind}_pingpong.mjs`, ['-d', deviceA!, ...args], atEnd);
}

/** Plays a game; ours on device A, C on device B. */
async function play(
  kind: Kind,
  client: 'ours' | 'C',
  game: Game,
  atEnd: AtEnd,
): Promise<{ ours: Ended; c: Ended }> {
  const { size, iters, addresses = address, options = [], ours = ['-c'], ofC = ['-c'] } = game;
  const port = nextPort++;
  const common = ['-p', port, '-s', size, '-n', iters, ...options];
  const startC = (...host: string[]) =>
    start(`ibv_${kind}_pingpong`, [...asC(addresses), ...common, ...ofC, ...host], 'ibverbs-utils', atEnd);
  const startNode = (...host: string[]) =>
    startOurs(kind, ['-g', addresses.a, ...common, ...ours, ...host], atEnd);
  const [server, startClient] = client === 'ours' ? [startC(), startNode] : [startNode(), startC];
  await listening(server, port);
  const [ofServer, ofClient] = await Promise.all([server.ended, startClient('127.0.0.1').ended]);
  return client === 'ours' ? { ours: ofClient, c: ofServer } : { ours: ofServer, c: ofClient };
}

/** Number, packet sequence number and GID of each queue pair. ibv_ud_pingpong has a colon before the GID. */
function told(output: string, whose: 'local' | 'remote'): string[][] {
  const line = new RegExp(`^ +${whose} address: +LID 0x0000, QPN (\\w+), PSN (\\w+)[,:] GID (\\S+)$`, 'gm');
  return [...output.matchAll(line)].map((match) => match.slice(1));
}

function expectPlayed({ ours, c }: { ours: Ended; c: Ended }, { size, iters }: Game): void {
  for (const ended of [ours, c]) {
    expect(ended).toMatchObject({ status: 0, stderr: '' });
    expect(ended.stdout).toContain(`\n${size * iters * 2} bytes in `);
    expect(ended.stdout).toContain(`\n${iters} iters in `);
    expect(ended.stdout).not.toContain('invalid data');
  }
  expect(told(ours.stdout, 'local')).not.toEqual([]);
  expect(told(ours.stdout, 'local')).toEqual(told(c.stdout, 'remote'));
  expect(told(ours.stdout, 'remote')).toEqual(told(c.stdout, 'local'));
}

const games: [Kind, Game][] = [
  ['rc', { size: 1, iters: 100 }],
  ['rc', { size: 10_001, iters: 20, options: ['-m', 256] }],
  ['uc', { size: 10_001, iters: 20 }],
  ['ud', { size: 1, iters: 50 }],
  ['srq', { size: 4096, iters: 64 }],
];

describe.concurrent.each(games)('%s_pingpong, %j', (kind, game) => {
  it('as client of the C program', async ({ onTestFinished }) => {
    expectPlayed(await play(kind, 'ours', game, onTestFinished), game);
  });

  it('as server of the C program', async ({ onTestFinished }) => {
    expectPlayed(await play(kind, 'C', game, onTestFinished), game);
  });
});

describe.concurrent('what the checks are worth', () => {
  it('the C program notices what is not as it should be', async ({ onTestFinished }) => {
    const { ours, c } = await play('rc', 'ours', { size: 100, iters: 10, ours: [] }, onTestFinished);
    expect(ours.status).toBe(0);
    expect(c.stdout).toContain('invalid data in page 0');
  });

  it('so does ours', async ({ onTestFinished }) => {
    const port = nextPort++;
    const server = startOurs('rc', ['-p', port, '-s', 100, '-c'], onTestFinished);
    await listening(server, port);
    start(
      'ibv_rc_pingpong',
      [...asC(address), '-p', port, '-s', 100, '127.0.0.1'],
      'ibverbs-utils',
      onTestFinished,
    );
    await expect(server.ended).resolves.toMatchObject({
      status: 1,
      stderr: expect.stringContaining('invalid data: byte 0 of a message is 123 instead of 0') as string,
    });
  });
});

it.concurrent('plays over IPv6', async ({ onTestFinished }) => {
  const game = { size: 3000, iters: 20, addresses: address6 };
  const ended = await play('rc', 'ours', game, onTestFinished);
  expectPlayed(ended, game);
  expect(told(ended.ours.stdout, 'remote')).toMatchObject([{ 2: address6.b }]);
});

it.concurrent(
  'plays datagrams as long as the active MTU, and refuses longer ones',
  async ({ onTestFinished }) => {
    const game = { size: activeMtu, iters: 20 };
    expectPlayed(await play('ud', 'C', game, onTestFinished), game);
    await expect(startOurs('ud', ['-s', activeMtu + 1], onTestFinished).ended).resolves.toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`a datagram holds ${activeMtu} bytes here`) as string,
    });
  },
);

it.concurrent(
  'plays with itself in processes of their own, its GID chosen by itself',
  async ({ onTestFinished }) => {
    const port = nextPort++;
    const common = ['-p', port, '-n', 64, '-c'];
    const startNode = (device: string, ...more: string[]) => {
      const args = [`${examples}/srq_pingpong.mjs`, '-d', device, ...common, ...more];
      return start(process.execPath, args, '', onTestFinished);
    };
    const server = startNode(deviceB!);
    await listening(server, port);
    const client = startNode(deviceA!, '127.0.0.1');
    for (const { ended } of [server, client]) {
      const { status, stdout } = await ended;
      expect([status, stdout]).toEqual([0, expect.stringContaining(`\n${4096 * 64 * 2} bytes in `)]);
    }
  },
);

it.concurrent('says what is wrong with a peer that is none', async ({ onTestFinished }) => {
  const port = nextPort++;
  const server = startOurs('rc', ['-p', port], onTestFinished);
  await listening(server, port);
  const socket = net.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.end('GET / HTTP/1.1\r\nHost: example.org\r\nAccept: text/plain\r\n\r\n');
  await expect(server.ended).resolves.toMatchObject({
    status: 1,
    stderr: expect.stringContaining('the peer does not speak as ibv_*_pingpong does') as string,
  });
});

it.concurrent('says that a peer of C without -g has given no GID', async ({ onTestFinished }) => {
  const port = nextPort++;
  const server = startOurs('rc', ['-p', port], onTestFinished);
  await listening(server, port);
  start('ibv_rc_pingpong', ['-d', deviceB!, '-p', port, '127.0.0.1'], 'ibverbs-utils', onTestFinished);
  await expect(server.ended).resolves.toMatchObject({
    status: 1,
    stderr: expect.stringContaining('need -g INDEX') as string,
  });
});

it.concurrent.for<[string[], string]>([
  [['-m', '1000'], '--mtu must be one of 256, 512'],
  [['-g', '250'], 'has no GID 250'],
])('refuses %j', async ([args, message], { onTestFinished }) => {
  await expect(startOurs('rc', args, onTestFinished).ended).resolves.toMatchObject({
    status: 1,
    stderr: expect.stringContaining(message) as string,
  });
});
