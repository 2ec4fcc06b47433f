/** `node-rdma rxe start|exec|stop|status`: one machine kept up while someone develops. */
import { RxeError } from '../rxe/errors.js';
import { connectKeptMachine, startKeptMachine, stopKeptMachine } from '../rxe/kept/client.js';
import type { KeptFacts } from '../rxe/kept/facts.js';
import { resolve } from 'node:path';
import { Progress } from './progress.js';
import { runInForeground, Signals } from './rxe-command.js';
import type { MachineFlags } from './rxe-options.js';
import { constants } from 'node:os';

const noMachine = 'no machine is kept up; start one with `node-rdma rxe start`';

export async function start({ verbose, ...options }: MachineFlags): Promise<number> {
  const progress = new Progress(verbose ?? false);
  const signals = new Signals();
  const interrupted = new AbortController();
  let interruption: NodeJS.Signals | undefined;
  signals.on((signal) => {
    interruption = signal;
    interrupted.abort(new Error(`interrupted by ${signal}`));
  });
  try {
    const { facts, found } = await startKeptMachine({
      ...options,
      ...(options.out === undefined ? {} : { out: resolve(options.out) }),
      onProgress: progress.report,
      signal: interrupted.signal,
    });
    process.stdout.write(`${describe(facts)}, ${found ? 'up already' : 'up'}\n`);
    return 0;
  } catch (error) {
    if (interruption) return 128 + constants.signals[interruption];
    throw error;
  } finally {
    progress.done();
    signals.release();
  }
}

export async function exec(argv: readonly string[], { timeout }: { timeout?: number }): Promise<number> {
  const signals = new Signals();
  await using machine = await connectKeptMachine();
  if (!machine) throw new RxeError('ERR_RXE_NOT_RUNNING', noMachine);
  try {
    return await runInForeground(machine, argv, { timeout, signals, giveUp: () => void machine.stop() });
  } finally {
    signals.release();
  }
}

export async function stop(): Promise<number> {
  if (await stopKeptMachine()) return 0;
  throw new RxeError('ERR_RXE_NOT_RUNNING', 'no machine is kept up');
}

export async function status({ json }: { json?: boolean }): Promise<number> {
  await using machine = await connectKeptMachine();
  if (!machine) throw new RxeError('ERR_RXE_NOT_RUNNING', noMachine);
  const { facts } = machine;
  const text = json
    ? JSON.stringify(facts, null, 2)
    : [
        `${describe(facts)}, up for ${Math.round((Date.now() - facts.since) / 1000)} s`,
        ...variables(facts),
      ].join('\n');
  process.stdout.write(`${text}\n`);
  return 0;
}

function describe({ engine, owner }: KeptFacts): string {
  return `a machine of the ${engine} engine (process ${owner})`;
}

function variables({ environment }: KeptFacts): string[] {
  return Object.entries(environment).map(([name, value]) => `${name}=${value}`);
}
