import type { Readable, Writable } from 'node:stream';

/** How a command ended: exactly one of the two is not null. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A command that runs where the rxe devices are. Its output must be consumed, or it stalls, as on any pipe. */
export interface Command {
  /** Null unless input was asked for. Closes when the command wants no more. */
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /**
   * Resolves when the command has ended and all its output has been handed to the streams. Rejects with an RxeError
   * when it could not be started (`ERR_RXE_COMMAND_NOT_FOUND`, `ERR_RXE_NOT_EXECUTABLE`, `ERR_RXE_NO_FOLDER`) or the
   * machine ended first (`ERR_RXE_MACHINE_DIED`).
   */
  readonly exited: Promise<Exit>;
  /** Sends a signal to the command and what it started (its process group). Does nothing once it has ended. */
  kill(signal?: NodeJS.Signals): void;
}

export interface SpawnOptions {
  /** Default: this process's working directory. */
  cwd?: string;
  /** In place of this process's environment. The variables of the machine (`NODE_RDMA_RXE_…`) are added to it. */
  env?: NodeJS.ProcessEnv;
  /** Give the command a pipe as standard input; /dev/null otherwise. Default: false. */
  input?: boolean;
}

export interface RunOptions extends Omit<SpawnOptions, 'input'> {
  /** What the command reads on standard input. Default: nothing (/dev/null). */
  input?: string | Uint8Array | Readable;
  /** Where output goes as it comes. Without it, it is collected in the result. */
  stdout?: Writable;
  stderr?: Writable;
  /**
   * Ends the command (SIGTERM, two seconds later SIGKILL), and `run` rejects with the signal's reason; ten seconds after that
   * also if the machine does not answer. Stopping such a machine ends it all the same.
   */
  signal?: AbortSignal;
  /** Milliseconds after which the command is ended likewise, and `run` rejects with `ERR_RXE_TIMEOUT`. */
  timeout?: number;
}

export interface RunResult extends Exit {
  /** Empty where the output went to a stream. */
  stdout: Buffer;
  stderr: Buffer;
}
