import type { Command, CommanderError } from 'commander';
import { rxeExitStatuses } from '../rxe/errors.js';
import { reportFailure } from './rxe-command.js';
import { addKernelCommands } from './rxe-kernel.js';
import { addMachineFlags, seconds, type MachineFlags } from './rxe-options.js';
import type { RunFlags } from './rxe-run.js';

/** Adds `node-rdma rxe`: any command on real Soft-RoCE. */
export function addRxeCommand(program: Command): void {
  const rxe = program
    .command('rxe')
    .description('run any command on real Soft-RoCE: on the host, or in a virtual machine')
    .addHelpText('after', `\n${exitStatusHelp()}`);
  rxe.exitOverride(exitOnUsageError);
  rxe.enablePositionalOptions();

  addMachineFlags(rxe.command('run'))
    .description('run a command where two rxe devices are joined by a wire')
    .argument('<command...>', 'the command and its arguments')
    .option('--timeout <seconds>', 'end the command after this time (exit status 124)', seconds)
    .passThroughOptions()
    .exitOverride(exitOnUsageError)
    .action(async (argv: string[], flags: RunFlags) => {
      const { run } = await import('./rxe-run.js');
      await exitWith(run(argv, flags));
    });

  addMachineFlags(rxe.command('start'))
    .description('keep a machine up, for `rxe exec`; a second start finds the first')
    .exitOverride(exitOnUsageError)
    .action(async (flags: MachineFlags) => {
      const { start } = await import('./rxe-keep.js');
      await exitWith(start(flags));
    });

  rxe
    .command('exec')
    .description('run a command in the machine that is kept up')
    .argument('<command...>', 'the command and its arguments')
    .option('--timeout <seconds>', 'end the command after this time (exit status 124)', seconds)
    .passThroughOptions()
    .exitOverride(exitOnUsageError)
    .action(async (argv: string[], flags: { timeout?: number }) => {
      const { exec } = await import('./rxe-keep.js');
      await exitWith(exec(argv, flags));
    });

  rxe
    .command('stop')
    .description('end the machine that is kept up, and all that runs in it')
    .exitOverride(exitOnUsageError)
    .action(async () => {
      const { stop } = await import('./rxe-keep.js');
      await exitWith(stop());
    });

  rxe
    .command('status')
    .description('describe the machine that is kept up')
    .option('--json', 'as JSON')
    .exitOverride(exitOnUsageError)
    .action(async (flags: { json?: boolean }) => {
      const { status } = await import('./rxe-keep.js');
      await exitWith(status(flags));
    });

  addKernelCommands(rxe);
}

/** A bad option must not look like a failure of the command. */
function exitOnUsageError(error: CommanderError): never {
  process.exit(error.exitCode === 0 ? 0 : 125);
}

/** The process ends with this status once all output has been written. */
async function exitWith(status: Promise<number>): Promise<void> {
  process.exitCode = await status.catch(reportFailure);
}

function exitStatusHelp(): string {
  const lines = Object.values(rxeExitStatuses).map(([status, meaning]) => `  ${status}  ${meaning}`);
  return ['Exit status: that of the command, 128 + n if signal n ended it, or', ...new Set(lines)].join('\n');
}
