// @ts-check
// The same in C: a loop with credits, and rstream of rdma-core.
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const { NODE_RDMA_RXE_DEVICE_A: deviceA = '', NODE_RDMA_RXE_DEVICE_B: deviceB = deviceA } = process.env;
const { NODE_RDMA_RXE_ADDRESS_A: addressA = '', NODE_RDMA_RXE_ADDRESS_B: addressB = addressA } = process.env;

/** Where run.js has compiled it. */
export const program = path.join(import.meta.dirname, '..', '..', 'build', 'bench', 'net');

/** @param {import('./bench.js').Work} work */
export async function measureC({ bytes, messages }) {
  const { stdout } = await run(program, [deviceA, deviceB, String(bytes), String(messages)]);
  return Number(stdout);
}

/** Its sockets poll: on one processor the two processes take turns by time slices, and it may not end in time.
 * @param {import('./bench.js').Work} work */
export async function measureRstream({ bytes, messages }) {
  const size = ['-S', String(bytes), '-C', String(messages), '-p', '7499', '-I', '1'];
  const server = spawn('rstream', ['-b', addressB, ...size], { stdio: 'ignore' });
  server.on('error', () => undefined);
  try {
    await setTimeout(500);
    const { stdout } = await run('rstream', ['-s', addressB, '-b', addressA, ...size], { timeout: 20_000 });
    // name      bytes   xfers   iters   total       time     Gb/sec    usec/xfer
    const [, , , , , time = ''] = stdout.trim().split('\n').at(-1)?.split(/\s+/) ?? [];
    const seconds = parseFloat(time);
    // It counts both directions: what goes out and what comes back.
    return Number.isFinite(seconds) && seconds > 0 ? seconds / 2 : undefined;
  } catch {
    return undefined;
  } finally {
    server.kill('SIGKILL');
  }
}
