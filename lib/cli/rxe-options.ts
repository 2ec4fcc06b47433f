import { InvalidArgumentError, Option, type Command } from 'commander';
import { accelerators, defaults, engineNames, type MachineOptions } from '../rxe/options.js';

/** The options of `rxe run` and `rxe start` that describe the machine, as commander hands them over. */
export interface MachineFlags {
  engine: NonNullable<MachineOptions['engine']>;
  kernel?: string;
  cpus?: number;
  memory?: number;
  mtu?: number;
  accel?: MachineOptions['accel'];
  out?: string;
  verbose?: boolean;
}

export function addMachineFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--engine <name>', 'where the devices are; auto takes the first that works')
        .choices(['auto', ...engineNames])
        .default('auto'),
    )
    .option(
      '--kernel <kernel>',
      'uml: a User-Mode Linux kernel; qemu: an installed image, a .deb file or a package',
    )
    .option('--cpus <n>', `processors of the machine (default: ${defaults.cpus}; uml has one)`, wholeNumber)
    .option('--memory <MiB>', `memory of the machine (default: ${defaults.memory})`, wholeNumber)
    .option(
      '--mtu <bytes>',
      `of the wire; 1500 gives a path MTU of 1024, 4200 one of 4096 (default: ${defaults.mtu})`,
      wholeNumber,
    )
    .addOption(
      new Option('--accel <how>', 'how qemu runs the processor (default: auto)').choices([...accelerators]),
    )
    .option(
      '--out <folder>',
      'a folder that the command can write to; nothing else that it writes comes back',
    )
    .option('--verbose', 'say on standard error what is going on');
}

function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number.');
}

/** Seconds, with decimals if need be. */
export function seconds(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  // Timers take 31 bits of milliseconds.
  if (value > 0 && value <= 2_000_000) return value;
  throw new InvalidArgumentError('It must be a number of seconds above 0, up to 2000000.');
}
