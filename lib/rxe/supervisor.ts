import { spawn, type ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { findAgent } from './agent/binary.js';

/** How long a machine whose owner is gone may take to end by itself, in milliseconds. */
const grace = 3000;
/** How much of the end of the console is kept, in characters. */
const consoleLimit = 64 * 1024;

/** The process of a machine. It cannot outlive this one. */
export class SupervisedProcess {
  readonly #child: ChildProcess;
  #console = '';
  /** What the process inherits as descriptor 3. */
  readonly channel: Duplex;
  /** The status that it ended with, 128 + n after signal n. */
  readonly ended: Promise<number>;

  static async start(
    program: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Promise<SupervisedProcess> {
    return new SupervisedProcess(await findAgent(), program, args, env);
  }

  private constructor(agent: string, program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(agent, ['supervise', String(grace), program, ...args], {
      // The working directory may be removed while the machine runs.
      cwd: '/',
      env,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    });
    this.#child.stdin!.on('error', () => {});
    for (const output of [this.#child.stdout!, this.#child.stderr!]) {
      output.on('data', (bytes: Buffer) => {
        this.#console = (this.#console + bytes.toString('latin1')).slice(-consoleLimit);
      });
    }
    this.channel = this.#child.stdio[3] as Duplex;
    this.channel.on('error', () => {});
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => resolve(code ?? (signal === 'SIGKILL' ? 137 : 125)));
    });
    this.ended.catch(() => {});
  }

  /** The end of what the kernel, or the emulator, has said. */
  get console(): string {
    return this.#console;
  }

  /** Ends the process and all that belongs to it at once, and waits until they are gone. */
  async kill(): Promise<void> {
    this.#child.stdin!.end('k');
    await this.ended.catch(() => {});
  }
}
