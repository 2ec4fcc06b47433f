import type { AgentClient } from './agent/client.js';
import type { Command, RunOptions, RunResult, SpawnOptions } from './command.js';
import type { EngineName } from './options.js';
import { runCommand } from './run.js';

/** What a machine is to those who run commands in it, whatever keeps it: this process, or another one. */
export interface MachineFacts {
  engine: EngineName;
  /** The variables that tell a command where the devices are: `NODE_RDMA_RXE_…`. */
  environment: Readonly<Record<string, string>>;
}

/** A place with two rxe devices on a wire, where commands run. One process may have several. */
export interface Machine extends MachineFacts, AsyncDisposable {
  /** Tells machines of one host apart. */
  readonly id: string;
  /** Starts a command and gives its streams. The command need not be awaited; `stop` ends it. */
  spawn(argv: readonly string[], options?: SpawnOptions): Command;
  /** Runs a command to its end. Its exit status, whatever it is, is a result and no error. */
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Ends the machine, all that runs in it, and all that it kept on the host. */
  stop(): Promise<void>;
}

/** A machine with an agent in it. */
export class AgentMachine implements Machine {
  constructor(
    readonly id: string,
    readonly engine: EngineName,
    readonly environment: Readonly<Record<string, string>>,
    /** For the owner of a kept machine, which passes frames on. */
    readonly client: AgentClient,
    private readonly end: () => Promise<void>,
    /** Commands see the host's files as they are when they start, not as they were when first read. */
    private readonly refresh: boolean,
  ) {}

  spawn(argv: readonly string[], options: SpawnOptions = {}): Command {
    return this.client.spawn({
      argv,
      cwd: options.cwd ?? process.cwd(),
      env: { ...definedOnly(options.env ?? process.env), ...this.environment },
      input: options.input ?? false,
      refresh: this.refresh,
    });
  }

  run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    return runCommand((spawnOptions) => this.spawn(argv, spawnOptions), options);
  }

  stop(): Promise<void> {
    return this.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
