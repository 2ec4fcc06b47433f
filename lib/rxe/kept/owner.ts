/** The process that keeps a machine up: started, detached, by `startKeptMachine`, with the options as JSON. */
import { rm } from 'node:fs/promises';
import { createServer, Socket } from 'node:net';
import { dirname } from 'node:path';
import { RxeError } from '../errors.js';
import type { AgentMachine } from '../machine.js';
import { bootMachine } from '../start.js';
import type { OwnerReport } from './client.js';
import type { KeptFacts, KeptOptions } from './facts.js';
import { makePrivateFolder, socketPath } from './place.js';
import { relay } from './relay.js';

const options = JSON.parse(process.argv[2]!) as KeptOptions;
const starter = new Socket({ fd: 3 });
const starting = new AbortController();
const abandon = (): void => starting.abort(new Error('the start was given up'));

function report(what: OwnerReport): void {
  if (starter.writable) starter.write(JSON.stringify(what) + '\n');
}

async function main(): Promise<void> {
  const path = socketPath();
  await makePrivateFolder(dirname(path));
  starter
    .on('error', () => {})
    .on('close', abandon)
    .resume();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, abandon);
  const machine = await bootMachine({
    ...options,
    signal: starting.signal,
    onProgress: (progress) => report({ progress }),
  });
  starter.off('close', abandon);
  await keep(machine, path);
}

async function keep(machine: AgentMachine, path: string): Promise<void> {
  const { id, engine, environment, client } = machine;
  const facts: KeptFacts = { id, engine, environment, owner: process.pid, since: Date.now(), options };
  let ending = false;
  const sockets = new Set<Socket>();
  const end = async (): Promise<void> => {
    if (ending) return;
    ending = true;
    server.close();
    await machine.stop();
    // Last: who waits for the end of the machine waits for its socket to close.
    for (const socket of sockets) socket.destroy();
    process.exit(0);
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    relay(socket, client, facts, () => void end());
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.off(signal, abandon).on(signal, () => void end());
  }
  void client.closed.then(end);
  // What lies there is of an owner that was killed: starts wait for each other, and one has just looked.
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve));
  report({ facts });
  starter.end();
}

main().catch((error: unknown) => {
  const { code, message } =
    error instanceof RxeError ? error : new RxeError('ERR_RXE_INTERNAL', (error as Error).message);
  report({ error: { code, message } });
  starter.end(() => process.exit(1));
});
