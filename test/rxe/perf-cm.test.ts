// Measurements whose two ends, both of ours, talk and connect by rdma_cm.
import { describe, expect, it } from 'vitest';
import type { PerfOptions, PerfResult, PerfTest } from '../../lib/perf/index.js';
import { addressA, addressB } from '../support/cm.js';
import { deviceA, deviceB } from '../support/device.js';
import { run, serve } from '../support/perf.js';

async function both(options: PerfOptions, client: Partial<PerfOptions> = {}) {
  const { port, finished } = await serve({ ...options, device: options.rdmaCm ? undefined : deviceB });
  const ours = run({ ...options, host: addressB, sourceAddress: addressA, port, ...client });
  return { client: await ours, server: await finished };
}

const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable('it was accepted'),
    (error: unknown) => error as Error & { code: string; result?: PerfResult },
  );

describe('the talk over rdma_cm', () => {
  it('leads to the same', async () => {
    const { client, server } = await both({ test: 'write-bw', commRdmaCm: true, size: 5000, iterations: 60 });
    expect(server.memory[0]!.came.subarray(0, 5000)).toEqual(client.memory[0]!.sent.subarray(0, 5000));
    expect(client.result).toMatchObject({
      connection: { peer: { address: addressB, nodeRdma: { device: deviceB } } },
      results: [{ size: 5000, iterations: 60 }],
    });
    expect(server.result.connection!.peer).toMatchObject({
      address: addressA,
      nodeRdma: { device: deviceA },
    });
  });

  it('tells in what options the ends differ', async () => {
    const common: PerfOptions = { test: 'send-bw', commRdmaCm: true, iterations: 20 };
    const { port, finished } = await serve(common);
    const there = refused(finished);
    const here = await refused(run({ ...common, host: addressB, port, rdmaCm: true, queuePairs: 2 }));
    for (const { code, message } of [here, await there]) {
      expect(code).toBe('ERR_RDMA_MISMATCH');
      expect(message).toMatch(/queuePairs is [12] here and [12] there; rdmaCm is (true|false) here/);
    }
  });

  it('says so when nobody listens, or the address is of no RDMA device', async () => {
    for (const [host, reason] of [
      [addressB, /cannot connect to .*: .*nobody listens/s],
      ['192.0.2.1', /cannot connect to 192\.0\.2\.1/],
    ] as const) {
      const options: PerfOptions = { test: 'write-bw', commRdmaCm: true, host, port: 9, timeout: 3000 };
      expect(await refused(run(options))).toMatchObject({
        code: 'ERR_RDMA_NO_PEER',
        message: expect.stringMatching(reason) as string,
      });
    }
  });

  it('ends with its signal while a server waits', async () => {
    const controller = new AbortController();
    const { finished } = await serve({ test: 'write-bw', rdmaCm: true, signal: controller.signal });
    controller.abort();
    expect(await refused(finished)).toMatchObject({ name: 'AbortError' });
  });
});

describe('queue pairs by rdma_cm', () => {
  it.each<[PerfTest, Partial<PerfOptions>]>([
    ['send-bw', { size: 5000, queuePairs: 3, bidirectional: true }],
    ['write-lat', { size: 9 }],
    ['send-bw', { size: 700, connection: 'ud' }],
    ['send-lat', { size: 700, connection: 'ud' }],
    ['send-bw', { size: 100, connection: 'ud', bidirectional: true, queuePairs: 2 }],
  ])('%s %j', async (test, more) => {
    const { client, server } = await both({ test, rdmaCm: true, iterations: 40, ...more });
    const count = 40 * (more.queuePairs ?? 1);
    for (const { result } of [client, server]) {
      expect(result.error).toBeNull();
      expect(result.results).toMatchObject([{ size: more.size, iterations: count }]);
    }
    expect([client.result.device.device, server.result.device.device]).toEqual([deviceA, deviceB]);
    if (test !== 'send-lat') return;
    const came = server.memory[0]!.came.subarray(40, 740);
    expect(came).toEqual(client.memory[0]!.sent.subarray(0, 700));
  });

  it('fetches what the server has, with as many outstanding as were asked for', async () => {
    const { client, server } = await both({
      test: 'read-bw',
      rdmaCm: true,
      size: 5000,
      iterations: 20,
      outstandingReads: 3,
    });
    expect(client.memory[0]!.sent.subarray(0, 5000)).toEqual(server.memory[0]!.came.subarray(0, 5000));
    expect(client.result.connection!.pathMtu).toBe(server.result.connection!.pathMtu);
  });

  it('adds 1 each time', async () => {
    const { server } = await both({ test: 'atomic-lat', rdmaCm: true, iterations: 30 });
    expect(server.memory[0]!.came.readBigUInt64LE()).toBe(30n);
  });

  it('says so when the address is of another device than was asked for', async () => {
    const common: PerfOptions = { test: 'write-bw', rdmaCm: true, timeout: 3000 };
    const { port, finished } = await serve({ ...common, device: undefined });
    const there = refused(finished);
    const here = await refused(
      run({ ...common, host: addressB, sourceAddress: addressA, port, device: deviceB }),
    );
    expect(here).toMatchObject({
      code: 'ERR_RDMA_MISMATCH',
      message: expect.stringContaining(`is reached by ${deviceA}, not by ${deviceB}`) as string,
    });
    expect((await there).code).toMatch(/^ERR_RDMA_(PEER_LOST|TIMEOUT)$/);
  });
});
