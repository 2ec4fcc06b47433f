import { readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { chooseAccelerator } from '../accelerator.js';
import { findAgent } from '../agent/binary.js';
import type { Engine, EngineOptions } from '../engine.js';
import { RxeError } from '../errors.js';
import { archive, fileMode, folderMode, programMode } from '../initramfs.js';
import { prepareDistributionKernel, type DistributionKernel } from '../kernel/distribution.js';
import { defaults } from '../options.js';
import { packageImage } from '../package-image.js';
import { makeScratch } from '../scratch.js';
import { findProgram } from '../search.js';
import { SupervisedProcess } from '../supervisor.js';
import { uncompressedKernel } from '../vmlinux.js';

const program = 'qemu-system-x86_64';

/** A distribution kernel in QEMU. */
export const qemuEngine: Engine = {
  name: 'qemu',
  bootTimeout: 180_000,

  async unusable() {
    if (await findProgram(program)) return undefined;
    return new RxeError(
      'ERR_RXE_NO_QEMU',
      `${program} is not installed; install it: apt-get install qemu-system-x86`,
    );
  },

  async boot(options) {
    const kernel = await prepareDistributionKernel({
      kernel: options.kernel,
      onProgress: options.onProgress,
    });
    const packages =
      options.packages === undefined ? undefined : await packageImage(options.packages, options.onProgress);
    const initramfs = archive(await firstFiles(kernel));
    const folder = await makeScratch({ bytes: initramfs.length + 1024 * 1024, execute: false });
    const cleanUp = () => rm(folder, { recursive: true, force: true });
    try {
      const initrd = join(folder, 'initramfs');
      await writeFile(initrd, initramfs);
      const qemu = (await findProgram(program))!;
      const image = await bootFile(kernel);
      const start = (accelerator: 'kvm' | 'tcg'): Promise<SupervisedProcess> =>
        SupervisedProcess.start(
          qemu,
          commandLine(options, { kernel: image, initrd, accelerator, packages: packages?.file }),
          process.env,
        );
      const wanted = options.accel ?? 'auto';
      const accelerator = await chooseAccelerator(wanted, qemu, () => start('kvm'), options.onProgress);
      const machine = await start(accelerator);
      return {
        process: machine,
        channel: machine.channel,
        settings: {
          files: '9p',
          '9p': 'trans=virtio,version=9p2000.L,cache=loose,msize=512000',
          ...(options.out === undefined ? {} : { out: options.out }),
          ...(packages === undefined ? {} : { packages: packages.folder }),
        },
        title: `Linux ${kernel.release} in QEMU (${accelerator})`,
        explain,
        cleanUp,
      };
    } catch (error) {
      await cleanUp();
      throw error;
    }
  },
};

interface Boot {
  kernel: string;
  initrd: string;
  accelerator: 'kvm' | 'tcg';
  /** An image of the packages, for the machine's first disk. */
  packages?: string;
}

export function commandLine(
  options: EngineOptions,
  { kernel, initrd, accelerator, packages }: Boot,
): string[] {
  const share = (id: string, path: string, readonly: boolean): string[] => [
    '-fsdev',
    `local,id=${id},path=${escape(path)},security_model=none,multidevs=remap${readonly ? ',readonly=on' : ''}`,
    '-device',
    `virtio-9p-pci,fsdev=${id},mount_tag=${id}`,
  ];
  return [
    ...['-no-user-config', '-nodefaults', '-display', 'none', '-nic', 'none', '-no-reboot'],
    ...['-machine', 'q35', ...processors[accelerator]],
    ...['-smp', String(options.cpus ?? defaults.cpus), '-m', String(options.memory)],
    ...['-kernel', kernel, '-initrd', initrd, '-append', kernelParameters],
    ...['-serial', 'stdio'],
    ...[
      '-device',
      'virtio-serial-pci',
      '-chardev',
      'socket,id=agent,fd=3',
      '-device',
      'virtserialport,chardev=agent',
    ],
    ...share('host', '/', true),
    ...(options.out === undefined ? [] : share('out', options.out, false)),
    ...(packages === undefined
      ? []
      : [
          ...['-drive', `file=${escape(packages)},if=none,id=packages,format=raw,readonly=on`],
          ...['-device', 'virtio-blk-pci,drive=packages'],
        ]),
  ];
}

const processors = {
  kvm: ['-accel', 'kvm', '-cpu', 'max'],
  // The level x86-64-v2: programs choose AVX where they find it, and emulated it makes a Node start take half as long again.
  tcg: ['-accel', 'tcg,thread=multi', '-cpu', 'Nehalem,+rdrand'],
};

const kernelParameters = [
  'console=ttyS0',
  'quiet',
  'panic=-1',
  'mitigations=off',
  // What costs seconds under emulation and is of no use in a machine that lives for one command.
  'audit=0',
  'apparmor=0',
  'cryptomgr.notests',
  'nokaslr',
  'random.trust_cpu=on',
  'NODE_RDMA_RXE_CHANNEL=/dev/vport0p1',
].join(' ');

/** A comma ends a value in QEMU's options, two do not. */
function escape(value: string): string {
  return value.replaceAll(',', ',,');
}

async function bootFile({ vmlinuz }: DistributionKernel): Promise<string> {
  return (await uncompressedKernel(vmlinuz)) ?? vmlinuz;
}

async function firstFiles(kernel: DistributionKernel) {
  const folders = ['dev', 'modules', 'proc', 'sys'].map((name) => ({ name, mode: folderMode }));
  const modules = kernel.modules.map(async (path, i) => ({
    name: `modules/${String(i).padStart(3, '0')}-${basename(path)}`,
    mode: fileMode,
    content: await readFile(path),
  }));
  const init = { name: 'init', mode: programMode, content: await readFile(await findAgent()) };
  return [...folders, init, ...(await Promise.all(modules))];
}

function explain(console: string, status: number): Error {
  const text = console.trim().split('\n').slice(-15).join('\n');
  if (/[Cc]annot allocate memory/.test(console)) {
    return new RxeError(
      'ERR_RXE_NO_MEMORY',
      `not enough memory for the machine; ask for less with --memory\n${text}`,
    );
  }
  return new RxeError('ERR_RXE_BOOT', `the qemu machine ended (status ${status}) before it was up\n${text}`);
}
