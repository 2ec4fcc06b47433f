import Table from 'cli-table3';

import { cacheDirectory } from '../rxe/cache.js';
import { RxeError } from '../rxe/errors.js';
import { buildUmlKernel } from '../rxe/kernel/build.js';
import { prepareDistributionKernel } from '../rxe/kernel/distribution.js';
import { listKernels } from '../rxe/kernel/list.js';
import { findUmlKernel } from '../rxe/kernel/uml.js';
import { BuildProgress } from './build-progress.js';

export async function build(options: { version: string; jobs?: number; keep?: true }): Promise<void> {
  const interrupt = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => interrupt.abort(new Error(signal));
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const progress = new BuildProgress(process.stderr);
  try {
    const result = await buildUmlKernel({
      ...options,
      signal: interrupt.signal,
      onProgress: (text) => progress.step(text),
      onCompile: (fraction) => progress.part(fraction),
    });
    progress.end();
    if (!result.built) process.stderr.write(`Linux ${result.release} is there already\n`);
    if (result.source) process.stderr.write(`the source tree is in ${result.source}\n`);
    process.stdout.write(`${result.path}\n`);
  } catch (error) {
    progress.end();
    if (!interrupt.signal.aborted) throw error;
    process.stderr.write('interrupted; nothing was kept\n');
    process.exitCode = (interrupt.signal.reason as Error).message === 'SIGINT' ? 130 : 143;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

export async function fetchKernel(name?: string): Promise<void> {
  const kernel = await prepareDistributionKernel({
    kernel: name,
    refresh: true,
    onProgress: (text) => process.stderr.write(`${text}\n`),
  });
  process.stdout.write(`${kernel.vmlinuz}\n`);
}

export async function printPath(options: { kernel?: string }): Promise<void> {
  const kernel = await findUmlKernel(options.kernel);
  if (!kernel) {
    throw new RxeError(
      'ERR_RXE_NO_KERNEL',
      `no kernel for the uml engine: neither NODE_RDMA_RXE_KERNEL nor ${cacheDirectory()} has one; make one with: node-rdma rxe kernel build`,
    );
  }
  process.stdout.write(`${kernel.path}\n`);
}

export async function printList(options: { json?: true }): Promise<void> {
  const kernels = await listKernels();
  if (options.json) {
    process.stdout.write(`${JSON.stringify(kernels, null, 2)}\n`);
    return;
  }
  if (kernels.length === 0) {
    process.stdout.write(
      'no kernels yet: node-rdma rxe kernel build (for uml), node-rdma rxe kernel fetch (for qemu)\n',
    );
    return;
  }
  const table = new Table({
    head: ['  engine', 'release', 'from', 'path'],
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
    chars: withoutLines,
  });
  for (const { engine, release, origin, path, chosen } of kernels) {
    table.push([`${chosen ? '*' : ' '} ${engine}`, release, origin, path]);
  }
  process.stdout.write(`${table.toString()}\n* what the engine takes unless told otherwise\n`);
}

const lines = ['top', 'bottom', 'left', 'mid', 'right'].flatMap((side) =>
  ['', '-mid', '-left', '-right'].map((part) => side + part),
);
const withoutLines = Object.fromEntries([...lines, 'middle'].map((line) => [line, '']));
