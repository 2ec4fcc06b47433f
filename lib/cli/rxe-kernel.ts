import { type Command, InvalidArgumentError } from 'commander';

import { reportFailure } from './rxe-command.js';
import type * as actionsModule from './rxe-kernel-actions.js';

/** Adds `rxe kernel build|fetch|path|list`: the kernels that machines are made of. */
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
    .action(act((actions) => actions.build));

  kernel
    .command('fetch')
    .description('fetch a kernel package for the qemu engine into the cache, or a newer version of it')
    .argument('[package]', 'an image package, or a meta package (default: linux-image-amd64)')
    .action(act((actions) => actions.fetchKernel));

  kernel
    .command('path')
    .description('print the path of the kernel that the uml engine would start')
    .option('--kernel <path>', 'as with rxe run')
    .action(act((actions) => actions.printPath));

  kernel
    .command('list')
    .description('list the kernels at hand')
    .option('--json', 'as JSON')
    .action(act((actions) => actions.printList));
}

type Actions = typeof actionsModule;

/** The code of an action is loaded when it is asked for: `rxe run` starts the sooner. */
function act<A extends unknown[]>(choose: (actions: Actions) => (...args: A) => Promise<void>) {
  return async (...args: A): Promise<void> => {
    try {
      await choose(await import('./rxe-kernel-actions.js'))(...args);
    } catch (error) {
      process.exitCode = reportFailure(error);
    }
  };
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
