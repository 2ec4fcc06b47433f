/** `node-rdma rxe start|exec|stop|status`: one machine kept up while someone develops. */
import { RxeError } from '../rxe/errors.js';
import { connectKeptMachine, startKeptMachine, stopKeptMachine } from '../rxe/kept/client.js';
import type { KeptFacts } from '../rxe/kept/facts.js';
import { resolve } from 'node:path';
import { runInForeground, Signals, whileStarting } from './rxe-command.js';
import type { MachineFlags } from './rxe-options.js';

const noMachine = 'no machine is kept up; start one with `node-rdma rxe start`';

export async function start({ verbose, ...options }: MachineFlags): Promise<number> {
  return whileStarting(verbose ?? false, async ({ progress, signal }) => {
    const { facts, found } = await startKeptMachine({
      ...options,
      ...(options.out === undefined ? {} : { out: resolve(options.out) }),
      onProgress: progress.report,
      signal,
    });
    process.stdout.write(`${describe(facts)}, ${found ? 'up already' : 'up'}\n`);
    return 0;
  });
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
