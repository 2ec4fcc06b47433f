// The demonstration, on the wire of the machine.
import { execFile } from 'node:child_process';
import { release } from 'node:os';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { DemoFlags } from '../../lib/cli/demo.js';
import type { DemoReport } from '../../lib/cli/demo/report.js';
import { runDemo } from '../../lib/cli/demo/run.js';
import { deviceA, deviceB } from '../support/device.js';

async function output(flags: DemoFlags): Promise<string> {
  const stream = new PassThrough();
  const written = text(stream);
  await runDemo({ quick: true, ...flags }, stream).finally(() => stream.end());
  return written;
}

const report = async (flags: DemoFlags) => JSON.parse(await output({ ...flags, json: true })) as DemoReport;

describe('the report', () => {
  it('tells what it ran on, and what became of each part', async () => {
    const { platform, devices, connection, operations, measurements } = await report({ sizes: [8, 3000] });
    expect(platform).toMatchObject({
      node: process.version,
      kernel: release(),
      engine: process.env.NODE_RDMA_RXE_ENGINE,
    });

    const { NODE_RDMA_RXE_ADDRESS_A: addressA, NODE_RDMA_RXE_ADDRESS_B: addressB } = process.env;
    expect(devices.a).toMatchObject({ device: deviceA, linkLayer: 'ethernet', state: 'active' });
    expect(devices.a.gid).toMatchObject({ address: addressA, netdev: process.env.NODE_RDMA_RXE_NETDEV_A });
    expect(devices.a.gid.reason).toMatch(/routable over IPv4/);
    expect(devices.b.device).toBe(deviceB);
    expect(devices.b.gid).toMatchObject({ address: addressB, type: 'roceV2' });

    expect(connection).toMatchObject({ type: 'rc', pathMtu: devices.a.activeMtu });
    expect(connection.a).toMatchObject({ state: 'rts', destQpNum: connection.b.qpNum });
    expect(connection.b).toMatchObject({ state: 'rts', destQpNum: connection.a.qpNum });

    const { pathMtu } = connection;
    const sizes = [1, pathMtu, 3 * pathMtu + 5];
    const bytesVerified = 2 * sizes.reduce((sum, size) => sum + size);
    const names = [
      'SEND, RECV',
      'SEND with immediate data, RECV',
      'RDMA WRITE',
      'RDMA WRITE with immediate data',
      'RDMA READ',
    ];
    const atomics = [
      'Compare and swap, equal: swaps',
      'Compare and swap, unequal: does not',
      'Fetch and add, past 2^64',
    ];
    expect(operations).toEqual([
      ...names.map((name) => ({ name, sizes, bytesVerified, skipped: null })),
      ...atomics.map((name) => ({ name, sizes: [8], bytesVerified: 16, skipped: null })),
    ]);

    expect(measurements.map(({ size }) => size)).toEqual([8, 3000]);
    for (const { size, write, send } of measurements) {
      expect(write.messages).toBeGreaterThanOrEqual(write.window);
      expect(write.messagesPerSecond).toBeCloseTo(write.messages / write.seconds);
      expect(write.mebibytesPerSecond).toBeCloseTo((write.messages * size) / 2 ** 20 / write.seconds);
      expect(send.rounds).toBeGreaterThanOrEqual(3);
      const { min, p50, p99, max } = send.microseconds;
      expect(min).toBeGreaterThan(0);
      expect([min, p50, p99, max]).toEqual([min, p50, p99, max].sort((x, y) => x! - y!));
    }
  });

  it('has both ends on one device, if so told', async () => {
    const { devices, connection } = await report({ sizes: [64], device: [deviceB!] });
    expect([devices.a.device, devices.b.device]).toEqual([deviceB, deviceB]);
    expect(connection.a.qpNum).not.toBe(connection.b.qpNum);
  });
});

describe('the text', () => {
  afterEach(() => void vi.unstubAllEnvs());

  it('has a device that was found, a line for each operation, and a table', async () => {
    vi.stubEnv('NODE_RDMA_RXE_DEVICE_A', undefined);
    const lines = await output({ sizes: [256, 1024] });
    expect(lines).toMatch(/^Devices: the first usable port of this machine, for both ends$/m);
    expect(lines).toMatch(/^ {2}✔ RDMA WRITE +1 B/m);
    expect(lines).toMatch(/│ +256 B │ +[\d.]+ │/);
    expect(lines).toMatch(/│ +1 KiB │ +[\d.]+ │/);
    // eslint-disable-next-line no-control-regex
    expect(lines).not.toMatch(/\x1b/);
  });
});

describe('what cannot be', () => {
  it.each<[DemoFlags, RegExp]>([
    [{ device: ['mlx5_7'] }, /^there is no RDMA device "mlx5_7"\. There are: .*rxe/],
    [{ device: [deviceA!, 'mlx5_7'] }, /^there is no RDMA device "mlx5_7"/],
    [{ device: ['x', 'y', 'z'] }, /^a connection has two ends, and 3 devices are named$/],
    [{ sizes: [8, 2 ** 30] }, /^messages of 1 GiB are above the \d+ MiB that port 1 of \w+ takes$/],
  ])('%j is refused at once, with the reason', async (flags, reason) => {
    const stream = new PassThrough();
    await expect(runDemo(flags, stream)).rejects.toThrow(reason);
    expect(stream.read()).toBeNull();
  });
});

describe('the program', () => {
  const program = `${import.meta.dirname}/../../dist/cli/main.js`;
  const demo = (...args: string[]) =>
    new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
      const child = execFile(process.execPath, [program, 'demo', ...args], (_error, stdout, stderr) =>
        resolve({ status: child.exitCode, stdout, stderr }),
      );
    });

  it('prints one JSON object and nothing else', async () => {
    const { status, stdout, stderr } = await demo('--json', '--quick', '--sizes', '64');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect((JSON.parse(stdout) as DemoReport).measurements.map(({ size }) => size)).toEqual([64]);
  });

  it('exits with status 1 and the reason when it fails', async () => {
    expect(await demo('--json', '--device', 'mlx5_7')).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^node-rdma demo: there is no RDMA device "mlx5_7"\..*\n$/) as string,
    });
  });
});
