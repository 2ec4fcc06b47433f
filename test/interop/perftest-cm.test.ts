// Our measurements with the programs of perftest over rdma_cm: the talk alone (-z), or the queue pairs too (-R). Ours runs in this
// process, on device A.
import { describe, expect, it } from 'vitest';
import type { PerfOptions, PerfTest } from '../../lib/perf/index.js';
import { addressA, addressB } from '../support/cm.js';
import { deviceA, deviceB } from '../support/device.js';
import { run, serve } from '../support/perf.js';
import { beside, listeningOnCm, start } from '../support/programs.js';
import { carried } from '../support/wire.js';

let nextPort = 23_000;

const n = 50;
type Case = [test: PerfTest, ours: Partial<PerfOptions>, c: (string | number)[]];

const command = (test: PerfTest, port: number, c: (string | number)[]) =>
  [`ib_${test.replace('-', '_')}`, ['-d', deviceB!, '-p', port, '-F', '-n', n, ...c], 'perftest'] as const;

/** Emulated machines are slow to start a program and to answer. */
const patient = { iterations: n, timeout: 90_000, stallTimeout: 60_000 };

describe('our client with a server of C', () => {
  it.each<Case>([
    ['write-bw', { commRdmaCm: true, device: deviceA, size: 4096 }, ['-z', '-s', 4096]],
    ['write-bw', { rdmaCm: true, size: 4096, queuePairs: 2 }, ['-R', '-s', 4096, '-q', 2]],
    ['read-lat', { rdmaCm: true, size: 1000 }, ['-R', '-s', 1000]],
    ['send-lat', { rdmaCm: true, connection: 'ud', size: 700 }, ['-R', '-c', 'UD', '-s', 700]],
  ])('%s %j', async (test, ours, c) => {
    const port = nextPort++;
    const server = start(...command(test, port, c));
    await listeningOnCm(server, port);
    const client = { host: addressB, sourceAddress: addressA, port, ...patient, ...ours };
    const { result } = await beside(server, run({ test, ...client }));
    expect(await server.ended).toMatchObject({ status: 0 });
    expect(result.results).toMatchObject([{ size: ours.size, iterations: n * (ours.queuePairs ?? 1) }]);
    expect(result.connection!.peer).toMatchObject({ perftest: '6.06', nodeRdma: null });
  });
});

describe('our server with a client of C', () => {
  it.each<Case>([
    ['send-bw', { commRdmaCm: true, size: 4096 }, ['-z', '-s', 4096]],
    ['send-bw', { rdmaCm: true, size: 4096, queuePairs: 2 }, ['-R', '-s', 4096, '-q', 2]],
    ['atomic-lat', { rdmaCm: true }, ['-R']],
    ['send-lat', { rdmaCm: true, connection: 'ud', size: 700 }, ['-R', '-c', 'UD', '-s', 700]],
  ])('%s %j', async (test, ours, c) => {
    const { port, finished } = await serve({ test, device: deviceA, ...patient, ...ours });
    const client = start(...command(test, port, [...c, addressA]));
    const { result, memory } = await beside(client, finished);
    expect(await client.ended).toMatchObject({ status: 0 });
    expect(result.error).toBeNull();
    if (test === 'atomic-lat') expect(memory[0]!.came.readBigUInt64LE()).toBe(BigInt(n));
    else expect(result.results).toMatchObject([{ size: ours.size, iterations: n * (ours.queuePairs ?? 1) }]);
  });
});

it('a server of C that is killed ends our client with an error', async () => {
  const port = nextPort++;
  const server = start('ib_write_bw', ['-d', deviceB!, '-p', port, '-F', '-R', '-D', 100], 'perftest');
  await listeningOnCm(server, port);
  const ours = run({
    test: 'write-bw',
    host: addressB,
    sourceAddress: addressA,
    port,
    rdmaCm: true,
    duration: 100,
    margin: 0,
  });
  await carried(20_000);
  server.child.kill('SIGKILL');
  const killed = performance.now();
  await expect(ours).rejects.toMatchObject({
    code: expect.stringMatching(/^ERR_RDMA_(PEER_LOST|COMPLETION|TIMEOUT)$/) as string,
    result: { results: [{ incomplete: true }] },
  });
  expect(performance.now() - killed).toBeLessThan(30_000);
});
