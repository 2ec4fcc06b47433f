// Registering a region anew: what MemoryRegion has methods for.
import { explaining, explainingAsync, invalidArgType, outOfRange, RdmaError } from './errors.js';
import { checkAccess } from './memory-kinds.js';
import type { MemoryRegion } from './memory-region.js';
import { pinAdvice } from './memlock.js';
import { native } from './native.js';
import { ProtectionDomain, sourceOf, type MemorySource } from './protection-domain.js';
import { options as checkOptions } from './validate.js';

/** What of a region changes; at least one of these. */
export interface ReregisterOptions {
  /** Flags of {@link Access}. */
  access?: number;
  /** A domain of the same context. */
  pd?: ProtectionDomain;
  /** A length, for new memory of the library's own, or a view, as of {@link ProtectionDomain.regMr}. */
  source?: MemorySource;
}

/** `enum ibv_rereg_mr_flags`. */
const TRANSLATION = 1;
const PD = 2;
const ACCESS = 4;

function plan(mr: MemoryRegion, options: ReregisterOptions) {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  const { pd = mr.pd, source } = options;
  if (!(pd instanceof ProtectionDomain)) throw invalidArgType('pd', 'a ProtectionDomain', pd);
  if (pd.context !== mr.pd.context) {
    throw new RdmaError('ERR_RDMA_FOREIGN_OBJECT', `${pd.label} belongs to another context than ${mr.label}`);
  }
  const access = options.access === undefined ? mr.access : checkAccess(options.access);
  const flags =
    (source === undefined ? 0 : TRANSLATION) |
    (options.pd === undefined ? 0 : PD) |
    (options.access === undefined ? 0 : ACCESS);
  if (flags === 0) throw outOfRange('options', 'at least one of access, pd and source', 'none');
  const memory = source === undefined ? undefined : sourceOf(source, access);
  return {
    access,
    pd,
    advice: (errno: number) =>
      memory === undefined ? '' : pinAdvice(errno, typeof memory === 'number' ? memory : memory.byteLength),
    run: (sync: boolean) => native().reregMr(mr.native, flags, pd.native, memory, access, sync),
  };
}

export async function rereg(mr: MemoryRegion, options: ReregisterOptions): Promise<void> {
  const { access, pd, advice, run } = plan(mr, options);
  await explainingAsync({ device: pd.context.device.name }, advice, () => run(false) as Promise<void>);
  mr.reregistered(pd, access);
}

export function reregSync(mr: MemoryRegion, options: ReregisterOptions): void {
  const { access, pd, advice, run } = plan(mr, options);
  void explaining({ device: pd.context.device.name }, advice, () => run(true));
  mr.reregistered(pd, access);
}
