import { RxeError } from './errors.js';

export const engineNames = ['host', 'uml', 'qemu'] as const;
export type EngineName = (typeof engineNames)[number];

export const accelerators = ['auto', 'kvm', 'tcg'] as const;
export type Accelerator = (typeof accelerators)[number];

export interface MachineOptions {
  /** `auto` takes the first of host, uml and qemu that works here. Default: auto. */
  engine?: 'auto' | EngineName;
  /** For uml a User-Mode Linux kernel; for qemu an installed image, a `.deb` file or the name of a kernel package. */
  kernel?: string;
  /** Processors, 1 to 64. Default: 2; uml has one. */
  cpus?: number;
  /** MiB, from 256. Default: 2048. */
  memory?: number;
  /**
   * Of the network devices of the wire, in bytes, 1280 to 65535. Default: 1500, which gives a path MTU of 1024; from
   * 4176 on the path MTU is 4096.
   */
  mtu?: number;
  /** How qemu runs the processor. `auto` uses KVM where it truly works, emulation otherwise. Default: auto. */
  accel?: Accelerator;
  /** A folder of the host that commands can write to, at the same path inside. All else they write is gone with the machine. */
  out?: string;
  /** Milliseconds that the machine may take to come up. Default: 60 000 for uml, 180 000 for qemu. */
  bootTimeout?: number;
  /** Called with a line for each step that takes time. */
  onProgress?: (text: string) => void;
  /** Ends the start, and the machine with it. */
  signal?: AbortSignal;
}

export const defaults = { cpus: 2, memory: 2048, mtu: 1500 } as const;

/** Throws ERR_RXE_USAGE for a value that no engine can work with. */
export function checkMachineOptions(options: MachineOptions): void {
  oneOf('engine', options.engine, ['auto', ...engineNames]);
  oneOf('accel', options.accel, accelerators);
  inRange('cpus', options.cpus, 1, 64, 'processors');
  inRange('memory', options.memory, 256, 1024 * 1024, 'MiB');
  // IPv6 needs 1280.
  inRange('mtu', options.mtu, 1280, 65535, 'bytes');
  if (options.engine === 'uml' && (options.cpus ?? 1) > 1) {
    throw new RxeError(
      'ERR_RXE_USAGE',
      'a machine of the uml engine has one CPU; for more use --engine qemu',
    );
  }
}

function oneOf(name: string, value: string | undefined, allowed: readonly string[]): void {
  if (value === undefined || allowed.includes(value)) return;
  throw new RxeError('ERR_RXE_USAGE', `${name} must be one of ${allowed.join(', ')}, not '${value}'`);
}

function inRange(name: string, value: number | undefined, least: number, most: number, unit: string): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw new RxeError(
    'ERR_RXE_USAGE',
    `${name} must be a whole number of ${unit} from ${least} to ${most}, not ${value}`,
  );
}
