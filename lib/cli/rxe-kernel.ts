/** `node-rdma rxe kernel build|fetch|path|list`: the kernels that machines are made of. */
import Table from 'cli-table3';
import { type Command, InvalidArgumentError } from 'commander';

import { cacheDirectory } from '../rxe/cache.js';
import { RxeError } from '../rxe/errors.js';
import { buildUmlKernel } from '../rxe/kernel/build.js';
import { prepareDistributionKernel } from '../rxe/kernel/distribution.js';
import { listKernels } from '../rxe/kernel/list.js';
import { findUmlKernel } from '../rxe/kernel/uml.js';
import { BuildProgress } from './build-progress.js';

export function addKernelCommands(rxe: Command): void {
  const kernel = rxe.command('kernel').description('kernels for the machines: build, fetch, find them');

  kernel
    .command('build')
    .description(
      'build the kernel of the uml engine from the package linux-source-VERSION, into the cache (once)',
    )
    .option('--version <x.y>', 'kernel version: 6.1 or 6.12 on Debian 12', parseVersion, '6.1')
    .option('--jobs <n>', 'compilers at once (default: one for each CPU)', parseJobs)
    .option('--keep', 'keep the built source tree (2 GB)')
    .action(build);

  kernel
    .command('fetch')
    .description('fetch a kernel package for the qemu engine into the cache, or a newer version of it')
    .argument('[package]', 'an image package, or a meta package (default: linux-image-amd64)')
    .action(fetchKernel);

  kernel
    .command('path')
    .description('print the path of the kernel that the uml engine would start')
    .option('--kernel <path>', 'as with rxe run')
    .action(printPath);

  kernel
    .command('list')
    .description('list the kernels at hand')
    .option('--json', 'as JSON')
    .action(printList);
}

async function build(options: { version: string; jobs?: number; keep?: true }): Promise<void> {
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

async function fetchKernel(name?: string): Promise<void> {
  const kernel = await prepareDistributionKernel({
    kernel: name,
    refresh: true,
    onProgress: (text) => process.stderr.write(`${text}\n`),
  });
  process.stdout.write(`${kernel.vmlinuz}\n`);
}

async function printPath(options: { kernel?: string }): Promise<void> {
  const kernel = await findUmlKernel(options.kernel);
  if (!kernel) {
    throw new RxeError(
      'ERR_RXE_NO_KERNEL',
      `no kernel for the uml engine: neither NODE_RDMA_RXE_KERNEL nor ${cacheDirectory()} has one; make one with: node-rdma rxe kernel build`,
    );
  }
  process.stdout.write(`${kernel.path}\n`);
}

async function printList(options: { json?: true }): Promise<void> {
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
  const table = new Table({ head: ['engine', 'release', 'from', 'path', 'used'], style: { head: [] } });
  for (const { engine, release, origin, path, chosen } of kernels) {
    table.push([engine, release, origin, path, chosen ? 'by default' : '']);
  }
  process.stdout.write(`${table.toString()}\n`);
}

function parseVersion(text: string): string {
  if (/^\d+\.\d+$/.test(text)) return text;
  throw new InvalidArgumentError('Give major and minor number, such as 6.1.');
}

function parseJobs(text: string): number {
  const jobs = Number(text);
  if (Number.isInteger(jobs) && jobs >= 1 && jobs <= 1024) return jobs;
  throw new InvalidArgumentError('Give a number from 1 to 1024.');
}
