import { rm } from 'node:fs/promises';
import { findAgent } from '../agent/binary.js';
import { serialWindow } from '../agent/protocol.js';
import type { Boot, Engine, EngineOptions } from '../engine.js';
import { RxeError } from '../errors.js';
import { findUmlKernel } from '../kernel/uml.js';
import { makeScratch } from '../scratch.js';
import { SupervisedProcess } from '../supervisor.js';

/** A User-Mode Linux kernel: an ordinary process, with one CPU, on the host's file system. */
export const umlEngine: Engine = {
  name: 'uml',
  bootTimeout: 60_000,

  async unusable(options) {
    if ((options.cpus ?? 1) > 1) return new RxeError('ERR_RXE_USAGE', 'the uml engine has one CPU');
    if (process.arch !== 'x64')
      return new RxeError('ERR_RXE_NO_ENGINE', 'User-Mode Linux runs on x86-64 only');
    try {
      if (await findUmlKernel(options.kernel)) return undefined;
    } catch (error) {
      return error as Error;
    }
    return new RxeError(
      'ERR_RXE_NO_KERNEL',
      'no User-Mode Linux kernel: build one with `node-rdma rxe kernel build`, or let NODE_RDMA_RXE_KERNEL or --kernel name one',
    );
  },

  async boot(options) {
    const unusable = await this.unusable(options);
    if (unusable) throw unusable;
    const kernel = (await findUmlKernel(options.kernel))!;
    // The machine's memory is a file, which takes room as it is used.
    const folder = await makeScratch({ bytes: options.memory * 1024 * 1024, execute: true });
    const cleanUp = () => rm(folder, { recursive: true, force: true });
    try {
      const args = commandLine(options, await findAgent(), folder);
      const machine = await SupervisedProcess.start(kernel.path, args, {
        ...process.env,
        TMPDIR: folder,
      });
      return boot(machine, options, kernel.release, cleanUp);
    } catch (error) {
      await cleanUp();
      throw error;
    }
  },
};

export function commandLine(options: Pick<EngineOptions, 'memory'>, agent: string, folder: string): string[] {
  return [
    `mem=${options.memory}M`,
    'root=/dev/root',
    'rootfstype=hostfs',
    'rootflags=/',
    'ro',
    `init="${agent}"`,
    `uml_dir=${folder}`,
    'umid=machine',
    'con=null',
    'con0=null,fd:1',
    'ssl=null',
    'ssl0=fd:3',
    'quiet',
    'panic=-1',
    'NODE_RDMA_RXE_CHANNEL=/dev/ttyS0',
  ];
}

function boot(
  machine: SupervisedProcess,
  options: EngineOptions,
  release: string,
  cleanUp: Boot['cleanUp'],
): Boot {
  return {
    process: machine,
    channel: machine.channel,
    window: serialWindow,
    settings: { files: 'hostfs', ...(options.out === undefined ? {} : { out: options.out }) },
    title: `Linux ${release} in user mode`,
    explain,
    cleanUp,
  };
}

/** What User-Mode Linux says when it cannot start. */
function explain(console: string, status: number): Error {
  if (/ptrace|PTRACE/.test(console) && /not permitted|failed|Failed|error/.test(console)) {
    return new RxeError(
      'ERR_RXE_NO_PTRACE',
      `the uml engine needs ptrace, which is forbidden here (in Docker: --cap-add SYS_PTRACE or --security-opt seccomp=unconfined); or use --engine qemu\n${tail(console)}`,
    );
  }
  if (/No space left|SIGBUS|Bus error|ENOSPC/.test(console) || status === 128 + 7) {
    return new RxeError('ERR_RXE_NO_SPACE', `the folder for the machine's memory is full\n${tail(console)}`);
  }
  if (/[Cc]annot allocate memory|Out of memory|-ENOMEM/.test(console)) {
    return new RxeError(
      'ERR_RXE_NO_MEMORY',
      `not enough memory for the machine; ask for less with --memory\n${tail(console)}`,
    );
  }
  return new RxeError(
    'ERR_RXE_BOOT',
    `the uml machine ended (status ${status}) before it was up\n${tail(console)}`,
  );
}

function tail(console: string): string {
  return console.trim().split('\n').slice(-15).join('\n');
}
