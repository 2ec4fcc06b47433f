import type { Duplex } from 'node:stream';
import type { EngineName, MachineOptions } from './options.js';
import type { SupervisedProcess } from './supervisor.js';

/** Options with the defaults filled in. */
export type EngineOptions = MachineOptions &
  Required<Pick<MachineOptions, 'memory' | 'mtu'>> & {
    /** A folder of packages that does not change while the machine lives: it may be read from an image. */
    packages?: string;
  };

/** A machine that has begun to boot: a process on the host, and the channel to the agent that will be in it. */
export interface Boot {
  process: SupervisedProcess;
  channel: Duplex;
  /** Bytes that the channel takes before the agent has acknowledged them. Default: no limit. */
  window?: number;
  /** What the agent is told about the machine's files (SETUP). */
  settings: Record<string, string>;
  /** What it boots, for the progress lines. */
  title: string;
  /** Explains an end before the machine was up, from what the console said. */
  explain(console: string, status: number): Error;
  /** Removes what the machine kept on the host. */
  cleanUp(): Promise<void>;
}

/** A way to have a kernel of one's own. */
export interface Engine {
  name: EngineName;
  /** Milliseconds that a machine may take to come up. */
  bootTimeout: number;
  /** Why the engine cannot work here, as an error to throw if it was asked for; undefined if it can be tried. */
  unusable(options: EngineOptions): Promise<Error | undefined>;
  boot(options: EngineOptions): Promise<Boot>;
}
