/**
 * The wire on the host's own kernel, for hosts that have rdma_rxe. It changes the order in which the host looks up local
 * addresses while it is there (the rule for them moves behind the wire's), hence one such wire at a time.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, readFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import type { Command, Exit, RunOptions, SpawnOptions } from '../command.js';
import type { EngineOptions } from '../engine.js';
import { RxeError } from '../errors.js';
import type { Machine } from '../machine.js';
import { runCommand } from '../run.js';
import { startTime } from '../scratch.js';
import { findProgram } from '../search.js';
import { runTool } from '../tool.js';
import { wireEnvironment, wireRemovalScript, wireScript, type Wire } from '../wire.js';

/** Names and addresses that nobody else is likely to use; 198.18.0.0/15 is set aside for tests of network devices. */
export function hostWire(mtu: number): Wire {
  return {
    a: { device: 'nrdma_a', netdev: 'nrdma_wa', address: '198.18.97.1', address6: 'fd6e:7264:6d61::1' },
    b: { device: 'nrdma_b', netdev: 'nrdma_wb', address: '198.18.97.2', address6: 'fd6e:7264:6d61::2' },
    mtu,
    firstTable: 19701,
    firstRule: 10,
  };
}

/** Why there can be no wire on this host. */
export async function hostUnusable(): Promise<RxeError | undefined> {
  const no = (reason: string) =>
    new RxeError('ERR_RXE_NO_HOST', `the host engine cannot work here: ${reason}`);
  for (const tool of ['ip', 'rdma']) {
    if (!(await findProgram(tool))) return no(`${tool} is not installed (apt-get install iproute2)`);
  }
  if (!(await mayAdministrateNetwork())) return no('adding rxe devices needs root (CAP_NET_ADMIN)');
  if ((await exists('/sys/module/rdma_rxe')) || (await isBuiltIn())) return undefined;
  const modprobe = await findProgram('modprobe');
  const loaded = modprobe && (await runTool(modprobe, ['rdma_rxe'])).status === 0;
  return loaded ? undefined : no('the kernel has no rdma_rxe');
}

/** A module that is built in and has no parameters has no folder in /sys/module; its functions have their names. */
async function isBuiltIn(): Promise<boolean> {
  if (!(await exists('/sys/class/infiniband'))) return false;
  return (await readFile('/proc/kallsyms', 'latin1').catch(() => '')).includes(' rxe_newlink\n');
}

export async function startHostMachine(options: EngineOptions): Promise<Machine> {
  const wire = hostWire(options.mtu);
  await removeAbandoned(wire);
  const remove = (): Promise<unknown> => shell(wireRemovalScript(wire));
  options.onProgress?.('adding rxe devices to this host');
  const { status, stderr } = await shell(wireScript(wire) + claim(wire, await ownerMark()));
  if (status !== 0) {
    await remove();
    throw new RxeError('ERR_RXE_NO_HOST', `the host does not take the rxe devices: ${stderr.trim()}`);
  }
  return new HostMachine(
    {
      NODE_RDMA_RXE_ENGINE: 'host',
      ...wireEnvironment(wire),
      ...(options.out === undefined ? {} : { NODE_RDMA_RXE_OUT: options.out }),
    },
    remove,
  );
}

class HostMachine implements Machine {
  readonly id = randomUUID();
  readonly engine = 'host';
  readonly #running = new Set<Command>();

  constructor(
    readonly environment: Readonly<Record<string, string>>,
    private readonly remove: () => Promise<unknown>,
  ) {}

  spawn(argv: readonly string[], options: SpawnOptions = {}): Command {
    const command = new HostCommand(argv, options, this.environment);
    this.#running.add(command);
    const forget = (): void => void this.#running.delete(command);
    command.exited.then(forget, forget);
    return command;
  }

  run(argv: readonly string[], options: RunOptions = {}) {
    return runCommand((spawnOptions) => this.spawn(argv, spawnOptions), options);
  }

  async stop(): Promise<void> {
    const running = [...this.#running];
    for (const command of running) command.kill('SIGKILL');
    // An rxe device cannot be removed while someone has it open.
    await Promise.allSettled(running.map(({ exited }) => exited));
    await this.remove();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

class HostCommand implements Command {
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exited: Promise<Exit>;
  readonly #pid: number | undefined;

  constructor(argv: readonly string[], options: SpawnOptions, environment: Readonly<Record<string, string>>) {
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: options.cwd,
      env: { ...(options.env ?? process.env), ...environment },
      stdio: [options.input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#pid = child.pid;
    this.stdin = child.stdin;
    this.stdout = child.stdout!;
    this.stderr = child.stderr!;
    this.exited = new Promise((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) => reject(notStarted(argv[0]!, error)));
      child.once('close', (code, signal) => resolve({ code, signal }));
    });
    this.exited.catch(() => {});
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): void {
    if (this.#pid === undefined) return;
    try {
      process.kill(-this.#pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

function notStarted(name: string, { code }: NodeJS.ErrnoException): RxeError {
  if (code === 'ENOENT') return new RxeError('ERR_RXE_COMMAND_NOT_FOUND', `${name}: no such command`);
  return new RxeError('ERR_RXE_NOT_EXECUTABLE', `${name}: cannot be executed (${code})`);
}

/** The netdev's alias says whose the wire is: a process, and its start time since numbers come again. */
function claim(wire: Wire, mark: string): string {
  return `ip link set dev ${wire.a.netdev} alias ${mark}\n`;
}

async function ownerMark(): Promise<string> {
  return `node-rdma:${process.pid}:${await startTime(process.pid)}`;
}

/** Removes the wire of a process that was killed. One whose owner lives is in use. */
async function removeAbandoned(wire: Wire): Promise<void> {
  const alias = await readFile(`/sys/class/net/${wire.a.netdev}/ifalias`, 'utf8').catch(() => undefined);
  if (alias === undefined) return;
  const [, pid, started] = /^node-rdma:(\d+):(\d+)/.exec(alias) ?? [];
  if (pid !== undefined && (await startTime(Number(pid))) === started) {
    throw new RxeError(
      'ERR_RXE_NO_HOST',
      `process ${pid} uses the rxe devices of this host; one at a time can`,
    );
  }
  await shell(wireRemovalScript(wire));
}

function shell(script: string) {
  return runTool('sh', ['-c', script]);
}

async function mayAdministrateNetwork(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8');
  const capNetAdmin = 12n;
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return ((effective >> capNetAdmin) & 1n) === 1n;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
