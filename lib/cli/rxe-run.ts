import { startMachine } from '../rxe/start.js';
import { runInForeground, whileStarting } from './rxe-command.js';
import type { MachineFlags } from './rxe-options.js';

export interface RunFlags extends MachineFlags {
  timeout?: number;
}

/** `node-rdma rxe run`: a machine for one command. Returns the exit status. */
export async function run(
  argv: readonly string[],
  { timeout, verbose, ...machineOptions }: RunFlags,
): Promise<number> {
  return whileStarting(verbose ?? false, async ({ progress, signals, signal }) => {
    const machine = await startMachine({ ...machineOptions, onProgress: progress.report, signal });
    progress.done();
    try {
      return await runInForeground(machine, argv, { timeout, signals, giveUp: () => void machine.stop() });
    } finally {
      await machine.stop();
    }
  });
}
