import { constants } from 'node:os';
import type { Command, Exit } from '../rxe/command.js';
import { RxeError } from '../rxe/errors.js';
import type { Machine } from '../rxe/machine.js';
import { runCommand } from '../rxe/run.js';
import { Progress } from './progress.js';

const passedOn = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** What a signal to this process does; it changes as the start of the machine gives way to the command. */
export class Signals {
  #act: (signal: NodeJS.Signals, count: number) => void = () => {};
  #count = 0;
  readonly #listener = (signal: NodeJS.Signals): void => {
    this.#count += 1;
    this.#act(signal, this.#count);
  };

  constructor() {
    for (const signal of passedOn) process.on(signal, this.#listener);
  }

  on(act: (signal: NodeJS.Signals, count: number) => void): void {
    this.#act = act;
    this.#count = 0;
  }

  release(): void {
    for (const signal of passedOn) process.off(signal, this.#listener);
  }
}

/**
 * Runs what begins by starting a machine. Until `signals` get another meaning, one ends the start, and its number is then the
 * exit status.
 */
export async function whileStarting(
  verbose: boolean,
  work: (start: { progress: Progress; signals: Signals; signal: AbortSignal }) => Promise<number>,
): Promise<number> {
  const progress = new Progress(verbose);
  const signals = new Signals();
  const interrupted = new AbortController();
  let interruption: NodeJS.Signals | undefined;
  signals.on((signal) => {
    interruption = signal;
    interrupted.abort(new Error(`interrupted by ${signal}`));
  });
  try {
    return await work({ progress, signals, signal: interrupted.signal });
  } catch (error) {
    if (interruption) return 128 + constants.signals[interruption];
    throw error;
  } finally {
    progress.done();
    signals.release();
  }
}

/**
 * Runs a command in a machine as if it ran here: standard streams, signals and exit status are passed on. A second signal
 * does not wait for the command any longer: `giveUp` is called.
 */
export async function runInForeground(
  machine: Machine,
  argv: readonly string[],
  options: { timeout?: number; signals: Signals; giveUp: () => void },
): Promise<number> {
  let command: Command | undefined;
  let second: NodeJS.Signals | undefined;
  options.signals.on((signal, count) => {
    if (count === 1) return command?.kill(signal);
    second ??= signal;
    options.giveUp();
  });
  try {
    const exit = await runCommand((spawnOptions) => (command = machine.spawn(argv, spawnOptions)), {
      input: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
      ...(options.timeout === undefined ? {} : { timeout: options.timeout * 1000 }),
    });
    return exitStatus(exit);
  } catch (error) {
    if (second) return 128 + constants.signals[second];
    throw error;
  } finally {
    process.stdin.destroy();
  }
}

function exitStatus({ code, signal }: Exit): number {
  return signal ? 128 + constants.signals[signal] : (code ?? 125);
}

/** Says what went wrong and gives the status to exit with. */
export function reportFailure(error: unknown): number {
  const known = error instanceof RxeError;
  const text = known
    ? error.message
    : error instanceof Error
      ? (error.stack ?? error.message)
      : String(error);
  process.stderr.write(`node-rdma rxe: ${text}\n`);
  return known ? error.exitStatus : 125;
}
