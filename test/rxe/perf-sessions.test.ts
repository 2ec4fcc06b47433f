// Measurements with both ends of ours, in one process: what goes over, what each end tells of it, and how a session ends that goes wrong.
import net from 'node:net';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDevice, WorkCompletionError } from '../../lib/index.js';
import { perf, perfTests, type PerfOptions, type PerfResult, type PerfTest } from '../../lib/perf/index.js';
import { deviceA, deviceB } from '../support/device.js';
import { meet, run, serve } from '../support/perf.js';

const failed = (error: unknown) => error as Error & { code: string; result: PerfResult };

async function both(options: PerfOptions) {
  const { client, server } = await meet(options);
  return { client: await client, server: await server };
}

const isZero = (bytes: Buffer) => bytes.every((byte) => byte === 0);

describe('each test', () => {
  it.each<[PerfTest, Omit<PerfOptions, 'test'>]>([
    ['send-bw', { size: 5000, iterations: 60 }],
    ['send-bw', { size: 64, iterations: 200, inlineSize: 64, events: true }],
    ['send-bw', { size: 3000, iterations: 40, connection: 'uc', queuePairs: 2 }],
    ['send-bw', { size: 1000, iterations: 100, connection: 'ud' }],
    ['write-bw', { size: 5000, iterations: 60, queuePairs: 3 }],
    ['write-bw', { size: 100, iterations: 150, connection: 'uc', txDepth: 10, cqModeration: 3 }],
    ['send-lat', { size: 5000, iterations: 30 }],
    ['send-lat', { size: 700, iterations: 30, connection: 'ud', events: true }],
  ])('%s %j: what was sent is what came', async (test, options) => {
    const {
      size,
      iterations,
      queuePairs = 1,
      connection,
    } = options as { size: number; iterations: number } & typeof options;
    const { client, server } = await both({ test, ...options });
    expect(client.result.results).toMatchObject([
      { size, iterations: iterations * queuePairs, measuredBy: 'this end' },
    ]);
    expect(server.result.results).toMatchObject([{ size, iterations: iterations * queuePairs }]);
    const header = connection === 'ud' ? 40 : 0;
    client.memory.forEach(({ sent }, i) => {
      const came = server.memory[i]!.came.subarray(header);
      // Small messages go through a page; where they are received they all come to one place.
      const [places] = test === 'send-bw' && size <= 2048 ? [placesOf(size)] : [[0]];
      const candidates = places.map((at) => sent.subarray(at, at + size));
      expect(candidates.some((candidate) => candidate.equals(came.subarray(0, size)))).toBe(true);
      expect(isZero(came.subarray(0, size))).toBe(false);
      if (test !== 'write-bw') expect(isZero(came.subarray(size))).toBe(true);
    });
  });

  it('write-lat ends with the number of the last round on both sides', async () => {
    const { client, server } = await both({ test: 'write-lat', iterations: 300, size: 9 });
    for (const { memory, result } of [client, server]) {
      expect(memory[0]!.came[8]).toBe(300 & 0xff);
      expect(isZero(memory[0]!.came.subarray(9))).toBe(true);
      expect(result.results).toMatchObject([{ size: 9, iterations: 300 }]);
    }
  });

  it.each<[PerfTest]>([['read-bw'], ['read-lat']])('%s fetches what the server has', async (test) => {
    const { client, server } = await both({ test, size: 5000, iterations: 20 });
    expect(client.memory[0]!.sent.subarray(0, 5000)).toEqual(server.memory[0]!.came.subarray(0, 5000));
    expect(isZero(client.memory[0]!.sent.subarray(0, 5000))).toBe(false);
  });

  it.each<[PerfTest]>([['atomic-bw'], ['atomic-lat']])('%s adds 1 each time', async (test) => {
    const { client, server } = await both({ test, iterations: 70 });
    const counters = new BigUint64Array(new Uint8Array(server.memory[0]!.came).buffer);
    expect(counters.reduce((sum, counter) => sum + counter)).toBe(70n);
    expect(client.result.results).toMatchObject([{ size: 8, iterations: 70 }]);
  });

  it('compare-and-swap of 0 with 0 changes nothing', async () => {
    const { server } = await both({ test: 'atomic-bw', iterations: 20, atomic: 'compare-swap' });
    expect(isZero(server.memory[0]!.came)).toBe(true);
  });
});

function placesOf(size: number): number[] {
  const step = Math.ceil(size / 64) * 64;
  return Array.from({ length: Math.floor(4096 / step) }, (_, i) => i * step);
}

describe('both ways', () => {
  it.each<[PerfTest]>([['send-bw'], ['write-bw'], ['read-bw']])(
    '%s: each end tells of both',
    async (test) => {
      const { client, server } = await both({
        test,
        size: 5000,
        iterations: 50,
        bidirectional: true,
        queuePairs: 2,
      });
      const [{ directions: c, bandwidth }] = client.result.results as [PerfResult['results'][0]];
      const [{ directions: s }] = server.result.results as [PerfResult['results'][0]];
      expect([c, s].map((way) => [way!.outgoing.messages, way!.incoming.messages])).toEqual([
        [100, 100],
        [100, 100],
      ]);
      // Of sends each end sees what comes; of the rest the peer says it.
      if (test !== 'send-bw')
        expect(c!.incoming.messagesPerSecond).toBeCloseTo(s!.outgoing.messagesPerSecond!, 6);
      const { outgoing, incoming } = c!;
      if (outgoing.messagesPerSecond !== null && incoming.messagesPerSecond !== null) {
        expect(bandwidth!.messagesPerSecond).toBeCloseTo(
          outgoing.messagesPerSecond + incoming.messagesPerSecond,
          6,
        );
      }
    },
  );
});

describe('all sizes', () => {
  it.each<[PerfTest, Omit<PerfOptions, 'test'>]>([
    ['send-lat', { connection: 'ud' }],
    ['send-bw', { connection: 'ud', bidirectional: true }],
  ])('%s %j', async (test, options) => {
    const { client, server } = await both({ test, ...options, size: 'all', iterations: 6 });
    const { activeMtu } = client.result.device;
    const sizes = Array.from({ length: Math.log2(activeMtu) }, (_, i) => 2 ** (i + 1));
    for (const { result } of [client, server]) expect(result.results.map(({ size }) => size)).toEqual(sizes);
    expect(client.result.configuration.sizes).toEqual(sizes);
  });
});

describe('a time', () => {
  it.each<[PerfTest, Omit<PerfOptions, 'test'>]>([
    ['send-bw', {}],
    ['send-bw', { bidirectional: true, size: 4096, cqModeration: 8 }],
    ['write-bw', { bidirectional: true, size: 4096, cqModeration: 8 }],
    ['send-lat', {}],
    ['write-lat', {}],
    ['read-lat', { size: 4096 }],
  ])('%s %j: the middle of it counts', async (test, options) => {
    const began = performance.now();
    const { client } = await both({ test, duration: 0.6, margin: 0.1, ...options });
    expect(performance.now() - began).toBeGreaterThan(600);
    expect(client.result.configuration).toMatchObject({ seconds: 0.6, marginSeconds: 0.1, iterations: null });
    const [{ bandwidth, directions, latency }] = client.result.results as [PerfResult['results'][0]];
    const counted = directions?.outgoing ?? bandwidth;
    if (counted) {
      expect(counted.seconds).toBeCloseTo(0.4, 6);
      expect(counted.messagesPerSecond).toBeCloseTo(counted.messages / 0.4, 6);
      expect(counted.peakMebibytesPerSecond).toBeNull();
    } else {
      expect(latency!.count).toBeGreaterThan(0);
      expect(latency!.microseconds.max).toBeLessThan(600_000);
    }
  });
});

describe('the result', () => {
  it('has all that is needed to judge it later', async () => {
    const progress: number[] = [];
    const { client, server } = await meet(
      { test: 'read-bw', size: 4096, iterations: 100 },
      { client: { onProgress: ({ messages }) => progress.push(messages) } },
    );
    const [{ result }, { result: ofServer }] = await Promise.all([client, server]);
    expect(JSON.parse(JSON.stringify(result))).toEqual(result);
    expect(result).toMatchObject({
      schemaVersion: 1,
      test: 'read-bw',
      role: 'client',
      error: null,
      platform: {
        node: process.version,
        engine: process.env.NODE_RDMA_RXE_ENGINE,
        libibverbs: expect.stringMatching(/^1\./) as string,
      },
      device: { device: deviceA, gid: { address: process.env.NODE_RDMA_RXE_ADDRESS_A } },
      configuration: { connection: 'rc', txDepth: 100, cqModeration: [100], sizes: [4096], retryCount: 6 },
      connection: { peer: { address: '127.0.0.1', perftest: '6.06', nodeRdma: { device: deviceB } } },
    });
    expect(Date.parse(result.started)).toBeGreaterThan(Date.now() - 600_000);
    const [{ bandwidth, cpuPercent }] = result.results as [PerfResult['results'][0]];
    expect(bandwidth!.mebibytesPerSecond).toBeCloseTo((100 * 4096) / 2 ** 20 / bandwidth!.seconds!, 6);
    expect(bandwidth!.peakMebibytesPerSecond).toBeGreaterThanOrEqual(bandwidth!.mebibytesPerSecond! * 0.999);
    expect(cpuPercent).toBeGreaterThan(0);
    expect(ofServer.results).toMatchObject([{ measuredBy: 'peer', iterations: 100 }]);
    expect(ofServer.results[0]!.bandwidth!.mebibytesPerSecond).toBeCloseTo(bandwidth!.mebibytesPerSecond!, 6);
  });

  it('has every sample, where that is asked for, and the worst', async () => {
    const { client } = await both({ test: 'read-lat', iterations: 50, samples: true });
    const { count, samples, microseconds, distribution } = client.result.results[0]!.latency!;
    expect([count, samples!.length]).toEqual([50, 50]);
    expect(microseconds.max).toBe(Math.max(...samples!));
    expect(microseconds.min).toBe(Math.min(...samples!));
    expect(distribution.at(-1)).toEqual({ percent: 100, value: microseconds.max });
  });

  it('tells how far it is', async () => {
    const messages: number[] = [];
    const { client } = await meet(
      { test: 'write-bw', duration: 2 },
      { client: { onProgress: (progress) => messages.push(progress.messages) } },
    );
    await client;
    expect(messages.at(-1)).toBeGreaterThan(0);
    expect(messages).toEqual(messages.toSorted((a, b) => a - b));
  });

  it('has the MTU that is smaller', async () => {
    const { client, server } = await meet({ test: 'read-lat', iterations: 5 }, { server: { mtu: 512 } });
    for (const side of [client, server]) expect((await side).result.connection!.pathMtu).toBe(512);
  });
});

describe('two of ours with different options', () => {
  it.each<[Partial<PerfOptions>, RegExp]>([
    [{ size: 64 }, /size is \d+ here and \d+ there/],
    [{ iterations: 77 }, /iterations is \d+ here and \d+ there/],
    [{ duration: 1, iterations: undefined }, /iterations is .*not given.*; duration is/],
    [{ queuePairs: 2 }, /queuePairs is \d here and \d there/],
    [{ bidirectional: true }, /bidirectional is (true|false) here/],
    [{ connection: 'uc' }, /connection is \w\w here/],
    [{ test: 'send-bw' }, /test is [\w-]+ here/],
  ])('%j at one end: both say so at once', async (different, message) => {
    const common: PerfOptions = { test: 'write-bw', size: 128, iterations: 20 };
    const { client, server } = await meet(common, { server: different });
    for (const side of [client, server]) {
      await expect(side).rejects.toMatchObject({
        code: 'ERR_RDMA_MISMATCH',
        message: expect.stringMatching(message) as string,
      });
    }
  });

  it('with GIDs of IPv4 and of IPv6, both name them', async () => {
    const { client, server } = await meet({ test: 'read-lat' }, { server: { ipv6: true } });
    for (const side of [client, server]) {
      await expect(side).rejects.toMatchObject({
        code: 'ERR_RDMA_MISMATCH',
        message: expect.stringMatching(/uses GID \d+ of rxe_\w, .*and the peer uses .*-x/) as string,
      });
    }
  });

  it('runs over IPv6 when both do', async () => {
    const { client } = await meet({ test: 'read-lat', iterations: 5, ipv6: true });
    expect((await client).result.device.gid).toMatchObject({ address: process.env.NODE_RDMA_RXE_ADDRESS6_A });
  });
});

describe('what the device cannot do is refused before anybody is waited for', () => {
  it.each<[PerfOptions, string, RegExp]>([
    [{ test: 'read-lat', device: 'mlx5_7' }, 'ERR_RDMA_NO_DEVICE', /There are: /],
    [{ test: 'read-lat', gidIndex: 200 }, 'ERR_RDMA_NO_GID', /no GID at index 200\. It has GID 0: /],
    [
      { test: 'send-bw', connection: 'ud', size: 5000 },
      'ERR_RDMA_LIMIT',
      /size 5000 is above the \d+ bytes that a datagram/,
    ],
    [
      { test: 'send-bw', inlineSize: 900 },
      'ERR_RDMA_LIMIT',
      /inlineSize 900 is more than .*: \d+ is the most/,
    ],
    [
      { test: 'write-bw', queuePairs: 16_000 },
      'ERR_RDMA_LIMIT',
      /16000 queue pairs with txDepth 128 need 2048000 completion/,
    ],
    [{ test: 'read-bw', outstandingReads: 250 }, 'ERR_RDMA_LIMIT', /outstandingReads 250 is \d+ above/],
    [{ test: 'read-bw', devicePort: 7 }, 'ERR_OUT_OF_RANGE', /"port" must be an integer from 1 to 1/],
  ])('%j', async (options, code, message) => {
    await expect(perf({ port: 0, device: deviceA, ...options })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    });
  });

  it('an MTU above the active one, with what would do', async () => {
    const context = openDevice(deviceA);
    onTestFinished(() => context.close());
    if (context.queryPort().activeMtu === 4096) return;
    await expect(perf({ test: 'read-lat', port: 0, device: deviceA, mtu: 4096 })).rejects.toMatchObject({
      code: 'ERR_RDMA_LIMIT',
      message: expect.stringMatching(/mtu 4096 is above the active MTU \d+ of port 1/) as string,
    });
  });
});

describe('a session that goes wrong', () => {
  it.each<[PerfTest]>([['write-bw'], ['send-lat'], ['send-bw']])(
    '%s: an abort ends both ends, with what was measured until then',
    async (test) => {
      const stop = new AbortController();
      const { client, server } = await meet(
        { test, duration: 60 },
        { client: { signal: stop.signal, margin: 0, onProgress: () => stop.abort(new Error('enough')) } },
      );
      const began = performance.now();
      const error = failed(await client.catch((reason: unknown) => reason));
      expect(error).toMatchObject({ name: 'AbortError', cause: { message: 'enough' } });
      expect(error.result).toMatchObject({ error: { code: 'ABORT_ERR' }, results: [{ incomplete: true }] });
      const [{ bandwidth, latency }] = error.result.results as [PerfResult['results'][0]];
      expect(bandwidth?.messages ?? latency!.count).toBeGreaterThan(0);
      const ofServer = failed(await server.catch((reason: unknown) => reason));
      expect(ofServer.code).toMatch(/ERR_RDMA_PEER_LOST|ERR_RDMA_COMPLETION/);
      expect(performance.now() - began).toBeLessThan(30_000);
    },
  );

  it('a server that waits is aborted', async () => {
    const stop = new AbortController();
    const { finished } = await serve({ test: 'write-bw', signal: stop.signal });
    stop.abort();
    await expect(finished).rejects.toMatchObject({
      name: 'AbortError',
      result: { results: [], connection: null },
    });
  });

  it('a client that is something else is told apart', async () => {
    const { port, finished } = await serve({ test: 'write-bw' });
    net.connect(port, '127.0.0.1').end('GET / HTTP/1.1\r\nHost: example.org\r\n\r\n');
    await expect(finished).rejects.toMatchObject({ code: 'ERR_RDMA_PROTOCOL' });
  });

  it('a client that says nothing is given up', async () => {
    const { port, finished } = await serve({ test: 'write-bw', timeout: 100 });
    const socket = net.connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await expect(finished).rejects.toMatchObject({ code: 'ERR_RDMA_TIMEOUT' });
  });

  /** Says what a server of perftest would, of a queue pair that does not exist. */
  async function impostor(): Promise<number> {
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (message) => {
        if (message.length === 16) socket.write(Buffer.concat([Buffer.from('6.06'), Buffer.alloc(12)]));
        else if (message.length === 108)
          socket.write(message.toString('latin1').replace(/^(.{10})\w{6}/, '$1abcdef'), 'latin1');
        else socket.write(message);
      });
    });
    onTestFinished(() => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as net.AddressInfo).port;
  }

  it.each<[PerfTest]>([['write-bw'], ['read-lat']])(
    '%s: a peer that does not answer is an error of the message',
    async (test) => {
      const port = await impostor();
      const error = failed(
        await run({ test, device: deviceA, host: '127.0.0.1', port }).catch((reason: unknown) => reason),
      );
      expect(error).toBeInstanceOf(WorkCompletionError);
      expect(error).toMatchObject({
        status: 'retryExcErr',
        result: { results: [{ iterations: 0, incomplete: true }] },
      });
      const [{ bandwidth }] = error.result.results as [PerfResult['results'][0]];
      if (bandwidth) expect(bandwidth).toMatchObject({ mebibytesPerSecond: null, messagesPerSecond: null });
    },
  );

  it('a peer that is slow to be ready is waited for, longer than for a message', async () => {
    const slow = net.createServer((socket) => {
      const peer = net.connect(ofServer.port, '127.0.0.1');
      onTestFinished(() => void peer.destroy());
      peer.pipe(socket);
      let keys = 0;
      socket.on('data', (message) => {
        keys += message.length === 108 ? 1 : 0;
        // The sync before the first message: the server is ready, and hears of the client a while later.
        setTimeout(() => peer.write(message), keys === 4 ? 2000 : 0);
      });
    });
    onTestFinished(() => void slow.close());
    const options: PerfOptions = { test: 'send-lat', iterations: 10, stallTimeout: 1000 };
    const ofServer = await serve(options);
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    const { port } = slow.address() as net.AddressInfo;
    const client = await run({ ...options, device: deviceA, host: '127.0.0.1', port });
    expect(client.result.results).toMatchObject([{ iterations: 10 }]);
    await ofServer.finished;
  });

  it.each<[PerfTest, RegExp]>([
    ['write-bw', /nothing has come for 200 ms, with 128 writes of 65536 bytes outstanding/],
    [
      'send-lat',
      /nothing has come for 200 ms, with 1 sends and \d+ receives of 2 bytes at queue pair \d+ outstanding/,
    ],
    ['write-lat', /nothing has come for 200 ms, with 0 sends and 0 receives of 2 bytes at/],
  ])('%s: silence is an error after its time', async (test, message) => {
    const port = await impostor();
    // The device tries again after 4.3 s, and is silent until then.
    const options = { qpTimeout: 20, stallTimeout: 200 };
    await expect(run({ test, device: deviceA, host: '127.0.0.1', port, ...options })).rejects.toMatchObject({
      code: 'ERR_RDMA_TIMEOUT',
      message: expect.stringMatching(message) as string,
    });
  });
});

it('knows all the tests that perftest has of these', () => {
  expect(perfTests).toHaveLength(8);
});
