import { RxeError } from '../errors.js';
import type { MachineFacts } from '../machine.js';
import type { MachineOptions } from '../options.js';

/** The options of a machine that can be written down and compared. */
export type KeptOptions = Pick<
  MachineOptions,
  'engine' | 'kernel' | 'cpus' | 'memory' | 'mtu' | 'accel' | 'out'
>;

/** What the owner of a kept machine tells everyone who connects. */
export interface KeptFacts extends MachineFacts {
  id: string;
  /** Process id of the owner. */
  owner: number;
  /** When the machine was up, in milliseconds since 1970. */
  since: number;
  options: KeptOptions;
}

/** Throws if the machine that is up is not what was asked for. What was left open fits everything. */
export function checkSameOptions(facts: KeptFacts, wanted: KeptOptions): void {
  const actual: Record<string, string | number | undefined> = { ...facts.options, engine: facts.engine };
  for (const [name, value] of Object.entries(wanted)) {
    if (value === undefined || value === 'auto' || value === actual[name]) continue;
    throw new RxeError(
      'ERR_RXE_OTHER_MACHINE',
      `the machine that is up has ${name} ${String(actual[name] ?? 'left to the default')}, not ${String(value)}: end it first with \`node-rdma rxe stop\``,
    );
  }
}
