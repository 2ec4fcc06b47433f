import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { join } from 'node:path';
import { packageFolder } from '../../package.js';
import { AgentClient } from '../agent/client.js';
import { withCacheLock } from '../cache.js';
import { RxeError, type RxeErrorCode } from '../errors.js';
import { AgentMachine, type Machine } from '../machine.js';
import type { MachineOptions } from '../options.js';
import { checkSameOptions, type KeptFacts, type KeptOptions } from './facts.js';
import { socketPath } from './place.js';

/** A connection to the kept machine. Disposing of it leaves the machine up; what it runs for us ends. */
export interface KeptMachine extends Machine {
  readonly facts: KeptFacts;
}

/** The machine that is kept up for this user, if there is one. */
export async function connectKeptMachine(): Promise<KeptMachine | undefined> {
  const socket = await open(socketPath());
  if (!socket) return undefined;
  const client = new AgentClient(socket);
  const facts = JSON.parse((await client.ready)['facts']!) as KeptFacts;
  const hangUp = (): Promise<void> => {
    client.close();
    return Promise.resolve();
  };
  const machine = new AgentMachine(facts.id, facts.engine, facts.environment, client, hangUp, true);
  return Object.assign(machine, { facts });
}

/** Starts a machine that stays up when this process ends; `found` if there is one already. */
export function startKeptMachine(options: MachineOptions): Promise<{ facts: KeptFacts; found: boolean }> {
  const { signal, onProgress, bootTimeout: _, ...kept } = options;
  const start = async (): Promise<{ facts: KeptFacts; found: boolean }> => {
    await using machine = await connectKeptMachine();
    if (machine) {
      checkSameOptions(machine.facts, kept);
      return { facts: machine.facts, found: true };
    }
    return { facts: await startOwner(kept, onProgress, signal), found: false };
  };
  return withCacheLock('run/start', start, { onWait: () => onProgress?.('waiting for another start') });
}

/** Ends the kept machine. False if there was none. */
export async function stopKeptMachine(): Promise<boolean> {
  const socket = await open(socketPath());
  if (!socket) return false;
  const client = new AgentClient(socket);
  client.stop();
  await client.closed;
  return true;
}

function open(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      // Refused: the socket of an owner that was killed.
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
      else reject(new RxeError('ERR_RXE_INTERNAL', `the kept machine cannot be reached: ${error.message}`));
    });
  });
}

/** What the owner reports while it starts, a line of JSON each. */
export type OwnerReport =
  { progress: string } | { error: { code: RxeErrorCode; message: string } } | { facts: KeptFacts };

/** The owner is a process of its own. Until the machine is up it ends with this one. */
async function startOwner(
  options: KeptOptions,
  onProgress: MachineOptions['onProgress'],
  signal: AbortSignal | undefined,
): Promise<KeptFacts> {
  signal?.throwIfAborted();
  const program = join(packageFolder, 'dist/rxe/kept/owner.js');
  const owner = spawn(process.execPath, [program, JSON.stringify(options)], {
    detached: true,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const reports = owner.stdio[3] as Readable;
  const interrupt = (): void => void reports.destroy();
  signal?.addEventListener('abort', interrupt);
  try {
    for await (const line of createInterface({ input: reports })) {
      const report = JSON.parse(line) as OwnerReport;
      if ('facts' in report) return report.facts;
      if ('error' in report) throw new RxeError(report.error.code, report.error.message);
      onProgress?.(report.progress);
    }
  } finally {
    signal?.removeEventListener('abort', interrupt);
    reports.destroy();
    owner.unref();
  }
  signal?.throwIfAborted();
  throw new RxeError('ERR_RXE_INTERNAL', 'the owner of the machine ended without a word');
}
