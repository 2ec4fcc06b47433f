import { Access } from '../verbs/constants.js';
import { outOfRange } from '../verbs/errors.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { options as checkOptions, wordNumber } from '../verbs/validate.js';

/** What a peer may do with memory. */
export type Right = 'read' | 'write' | 'atomic';

/** Each right as a flag of a region. */
export const rightAccess: Readonly<Record<Right, number>> = {
  read: Access.REMOTE_READ,
  write: Access.REMOTE_WRITE,
  atomic: Access.REMOTE_ATOMIC,
};

export const rights = Object.keys(rightAccess) as Right[];

/** How memory is registered. */
export interface AllocateOptions {
  /** What a peer may do with it once it is exported; `['read']` by default. */
  rights?: readonly Right[];
}

/** @throws TypeError, RangeError */
export function checkRights(value: unknown): readonly Right[] {
  if (!Array.isArray(value)) throw outOfRange('rights', `a list of ${rights.join(', ')}`, value);
  for (const right of value) wordNumber('rights', rightAccess, right);
  return value as Right[];
}

/** Registered memory for messages and for peers: of one connection, or of all connections of a server. */
export class Memory {
  readonly pd: ProtectionDomain;
  readonly #shared: Memory | undefined;
  readonly #regions = new WeakMap<ArrayBufferLike, MemoryRegion>();

  constructor(pd: ProtectionDomain, shared?: Memory) {
    this.pd = pd;
    this.#shared = shared;
  }

  /** Memory of zeros. Any may be read by the peer while it is sent from there, so each has that right. */
  async allocate(bytes: number, options: AllocateOptions = {}): Promise<MemoryRegion> {
    checkOptions('options', options);
    const wanted = checkRights(options.rights ?? ['read']);
    const access = wanted.reduce(
      (flags, right) => flags | rightAccess[right],
      Access.LOCAL_WRITE | Access.REMOTE_READ,
    );
    const mr = await this.pd.regMr(bytes, { access });
    this.#regions.set(mr.buffer.buffer, mr);
    return mr;
  }

  /** The region that these bytes lie in. */
  find(data: Uint8Array): MemoryRegion | undefined {
    const own = this.#regions.get(data.buffer);
    return own !== undefined && !own.closed ? own : this.#shared?.find(data);
  }
}
