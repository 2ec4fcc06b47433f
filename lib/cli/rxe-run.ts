import { constants } from 'node:os';
import { startMachine } from '../rxe/start.js';
import { Progress } from './progress.js';
import { runInForeground, Signals } from './rxe-command.js';
import type { MachineFlags } from './rxe-options.js';

export interface RunFlags extends MachineFlags {
  timeout?: number;
}

/** `node-rdma rxe run`: a machine for one command. Returns the exit status. */
export async function run(
  argv: readonly string[],
  { timeout, verbose, ...machineOptions }: RunFlags,
): Promise<number> {
  const progress = new Progress(verbose ?? false);
  const signals = new Signals();
  const interrupted = new AbortController();
  let interruption: NodeJS.Signals | undefined;
  signals.on((signal) => {
    interruption = signal;
    interrupted.abort(new Error(`interrupted by ${signal}`));
  });
  try {
    const machine = await startMachine({
      ...machineOptions,
      onProgress: progress.report,
      signal: interrupted.signal,
    });
    progress.done();
    try {
      return await runInForeground(machine, argv, { timeout, signals, giveUp: () => void machine.stop() });
    } finally {
      await machine.stop();
    }
  } catch (error) {
    if (interruption) return 128 + constants.signals[interruption];
    throw error;
  } finally {
    progress.done();
    signals.release();
  }
}
