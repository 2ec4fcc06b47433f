import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AgentClient } from './agent/client.js';
import type { Boot, Engine, EngineOptions } from './engine.js';
import { hostUnusable, startHostMachine } from './engines/host.js';
import { qemuEngine } from './engines/qemu.js';
import { umlEngine } from './engines/uml.js';
import { RxeError } from './errors.js';
import { AgentMachine, type Machine } from './machine.js';
import { nearestPackages } from './package-image.js';
import { checkMachineOptions, defaults, type MachineOptions } from './options.js';
import { machineWire, wireEnvironment, wireScript } from './wire.js';

const engines: readonly Engine[] = [umlEngine, qemuEngine];
/** How long a machine may take to write to `--out` what it has in memory, in milliseconds; one that hangs never does. */
const syncTimeout = 10_000;

/** Starts a machine with two rxe devices on a wire. Rejects with an RxeError that says what is missing. */
export async function startMachine(options: MachineOptions = {}): Promise<Machine> {
  const complete = await completeOptions(options);
  const engine = options.engine ?? 'auto';
  const obstacle = engine === 'host' || engine === 'auto' ? await hostUnusable() : undefined;
  if (engine === 'host' && obstacle) throw obstacle;
  const takesHost = engine === 'host' || (engine === 'auto' && !obstacle && options.kernel === undefined);
  if (takesHost) return startHostMachine(complete);
  const packages = await nearestPackages(process.cwd());
  return bootFirst({ ...complete, packages }, obstacle);
}

/** A machine with a kernel of its own, with the agent's end in reach. It is kept, and sees what changes on the host. */
export async function bootMachine(options: MachineOptions): Promise<AgentMachine> {
  const complete = await completeOptions(options);
  if (options.engine === 'host') {
    throw new RxeError('ERR_RXE_USAGE', 'the host engine has no machine to keep up: use `node-rdma rxe run`');
  }
  return bootFirst(complete);
}

async function completeOptions(options: MachineOptions): Promise<EngineOptions> {
  checkMachineOptions(options);
  options.signal?.throwIfAborted();
  return {
    ...options,
    memory: options.memory ?? defaults.memory,
    mtu: options.mtu ?? defaults.mtu,
    out: await existingFolder(options.out),
  };
}

async function existingFolder(out: string | undefined): Promise<string | undefined> {
  if (out === undefined) return undefined;
  const path = resolve(out);
  const found = await stat(path).catch((error: unknown) => (error as NodeJS.ErrnoException).code);
  if (typeof found === 'object' && found.isDirectory()) return path;
  const reason = typeof found === 'object' ? 'is not a folder' : `is not there (${found})`;
  throw new RxeError('ERR_RXE_NO_FOLDER', `--out ${path} ${reason}`);
}

/** A machine of the engine that is asked for, or of the first that works. */
async function bootFirst(options: EngineOptions, hostObstacle?: Error): Promise<AgentMachine> {
  if (options.engine !== undefined && options.engine !== 'auto') {
    const engine = engines.find(({ name }) => name === options.engine)!;
    const reason = await engine.unusable(options);
    if (reason) throw reason;
    return boot(engine, options);
  }
  const reasons = hostObstacle ? [`host: ${hostObstacle.message}`] : [];
  for (const engine of engines) {
    const reason = await engine.unusable(options);
    // Who names a kernel of the engine wants it: another engine in its place would be a surprise, and ten times slower.
    if (reason?.message.startsWith('NODE_RDMA_RXE_KERNEL:')) throw reason;
    if (reason) {
      reasons.push(`${engine.name}: ${reason.message}`);
      continue;
    }
    try {
      return await boot(engine, options);
    } catch (error) {
      // That ptrace is forbidden, only the attempt tells.
      if (!(error instanceof RxeError) || error.code !== 'ERR_RXE_NO_PTRACE') throw error;
      reasons.push(`${engine.name}: ${error.message}`);
      options.onProgress?.(error.message);
    }
  }
  throw new RxeError('ERR_RXE_NO_ENGINE', `no engine works here\n  ${reasons.join('\n  ')}`);
}

async function boot(engine: Engine, options: EngineOptions): Promise<AgentMachine> {
  const booted = await engine.boot(options);
  options.onProgress?.(`starting ${booted.title}`);
  const client = new AgentClient(booted.channel, booted.window);
  const end = once(async (): Promise<void> => {
    if (options.out !== undefined) {
      const late = delay(syncTimeout, undefined, { ref: false });
      await Promise.race([client.sync(), booted.process.ended, late]).catch(() => {});
    }
    await booted.process.kill();
    client.close();
    await booted.cleanUp();
  });
  void watchForDeath(booted, client);
  const deadline = setTimeout(() => {
    const seconds = (options.bootTimeout ?? engine.bootTimeout) / 1000;
    client.fail(
      new RxeError(
        'ERR_RXE_BOOT',
        `the ${engine.name} machine was not up after ${seconds} s\n${lastLines(booted.process.console)}`,
      ),
    );
  }, options.bootTimeout ?? engine.bootTimeout);
  const onAbort = (): void => client.fail(options.signal!.reason as Error);
  options.signal?.addEventListener('abort', onAbort);
  try {
    await client.hello;
    await client.setUp({ hostname: 'rxe', ...booted.settings });
    const wire = machineWire(options.mtu);
    const environment = {
      NODE_RDMA_RXE_ENGINE: engine.name,
      ...wireEnvironment(wire),
      ...(options.out === undefined ? {} : { NODE_RDMA_RXE_OUT: options.out }),
    };
    const machine = new AgentMachine(randomUUID(), engine.name, environment, client, end, false);
    options.onProgress?.('adding the rxe devices');
    await layWire(machine, wireScript(wire));
    return machine;
  } catch (error) {
    await end();
    throw error;
  } finally {
    clearTimeout(deadline);
    options.signal?.removeEventListener('abort', onAbort);
  }
}

/** An end that nobody asked for is explained to all that wait for the machine. */
async function watchForDeath(booted: Boot, client: AgentClient): Promise<void> {
  let up = false;
  void client.ready.then(
    () => (up = true),
    () => {},
  );
  const status = await booted.process.ended.catch((error: unknown) => error as Error);
  if (status instanceof Error)
    return client.fail(new RxeError('ERR_RXE_BOOT', status.message, { cause: status }));
  const { console } = booted.process;
  if (!up) return client.fail(booted.explain(console, status));
  client.fail(
    new RxeError(
      'ERR_RXE_MACHINE_DIED',
      `the machine ended (status ${status}) while it was needed\n${lastLines(console)}`,
    ),
  );
}

async function layWire(machine: Machine, script: string): Promise<void> {
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
  const { code, stderr } = await machine.run(['sh', '-s'], { cwd: '/', env, input: script });
  if (code === 0) return;
  const said = stderr.toString().trim();
  if (code === 3) throw new RxeError('ERR_RXE_NO_RXE', `the machine's kernel offers no rdma_rxe: ${said}`);
  if (code === 5) throw new RxeError('ERR_RXE_NO_TOOLS', said);
  throw new RxeError('ERR_RXE_BOOT', `the wire between the rxe devices cannot be laid: ${said}`);
}

function lastLines(console: string): string {
  return console.trim().split('\n').slice(-15).join('\n');
}

function once(action: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined;
  return () => (result ??= action());
}
