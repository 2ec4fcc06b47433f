// Memory regions besides those of plain memory, and advice about regions: what ProtectionDomain has methods for.
import { Access } from './constants.js';
import type { DeviceMemory } from './device-memory.js';
import { explaining, explainingAsync, invalidArgType, outOfRange, RdmaError } from './errors.js';
import { MemoryRegion } from './memory-region.js';
import { native, type NativeMemoryRegion } from './native.js';
import type { NativeElements } from './native-more.js';
import type { ProtectionDomain } from './protection-domain.js';
import { integer, options as checkOptions, unsigned64, wordNumber } from './validate.js';
import type { Sge } from './work-request.js';

export interface DmabufOptions {
  /** Descriptor of the dma-buf, such as a GPU's driver exports; it may be closed afterwards. */
  fd: number;
  /** Bytes from the start of the dma-buf; 0 by default. */
  offset?: number;
  /** Bytes. */
  length: number;
  /** The address by which peers and work requests know the first byte; `offset` by default. */
  iova?: bigint | number;
  /** Flags of {@link Access}; `LOCAL_WRITE` by default. */
  access?: number;
}

/** A part of device memory to register. */
export interface DeviceMemoryRegionOptions {
  /** Bytes from the start of the device memory; 0 by default. */
  offset?: number;
  /** Bytes; by default all from `offset` on. */
  length?: number;
  /** Flags of {@link Access}; `LOCAL_WRITE` by default. `ZERO_BASED` is added: the first byte has address 0. */
  access?: number;
}

/** What another process has told of a region of its own. */
export interface ImportedRegionOptions {
  /** {@link MemoryRegion.handle} there. */
  handle: number;
  /** {@link MemoryRegion.address} there. */
  address: bigint | number;
  /** Bytes, as registered there. */
  length: number;
  /** Flags of {@link Access}, as registered there. */
  access: number;
}

/** `enum ibv_advise_mr_advice`. */
const advices = { prefetch: 0, prefetchWrite: 1, prefetchNoFault: 2 } as const;
/** `prefetch`: make the pages present, to be read; `prefetchWrite`: to be written; `prefetchNoFault`: those that are there already. */
export type MemoryAdvice = keyof typeof advices;

export interface AdviseOptions {
  advice: MemoryAdvice;
  /** Wait until it is done; by default it goes on in the background. */
  flush?: boolean;
}

/** `IBV_ADVISE_MR_FLAG_FLUSH`. */
const FLUSH = 1;

const KNOWN_ACCESS = Object.values(Access).reduce((all, flag) => all | flag, 0);

/** @internal Flags of {@link Access} that go together. */
export function checkAccess(access: unknown): number {
  const flags = integer('access', access, 0, 2 ** 32 - 1);
  if ((flags & ~KNOWN_ACCESS) !== 0) throw outOfRange('access', 'flags of Access, or-ed', flags);
  if ((flags & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)) !== 0 && (flags & Access.LOCAL_WRITE) === 0) {
    throw new RdmaError(
      'ERR_RDMA_INVALID_ATTRIBUTES',
      'access: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE as well (ibv_reg_mr)',
    );
  }
  return flags;
}

const none = () => '';
const subjectOf = (pd: ProtectionDomain) => ({ device: pd.context.device.name });

/** @internal */
export function allocNullMr(pd: ProtectionDomain): MemoryRegion {
  const made = explaining(subjectOf(pd), none, () => native().allocNullMr(pd.native));
  return new MemoryRegion(made, pd, Access.LOCAL_WRITE);
}

/** Of `odpGeneralCaps`: `IBV_ODP_SUPPORT_IMPLICIT`. */
const ODP_SUPPORT_IMPLICIT = 2n;

/** @internal */
export function regImplicitMr(pd: ProtectionDomain, access: number): MemoryRegion {
  const flags = checkAccess(access) | Access.ON_DEMAND;
  try {
    const made = explaining(subjectOf(pd), none, () => native().regImplicitMr(pd.native, flags));
    return new MemoryRegion(made, pd, flags);
  } catch (error) {
    // rxe of Linux 6.1 says no more than EINVAL.
    const able = (pd.context.queryDevice().odpGeneralCaps & ODP_SUPPORT_IMPLICIT) !== 0n;
    if (able || !(error instanceof RdmaError) || error.code !== 'EINVAL') throw error;
    const { device } = subjectOf(pd);
    throw new RdmaError(
      'ERR_RDMA_UNSUPPORTED',
      `${device} cannot register all memory of a process (odpGeneralCaps): register what is needed`,
      { device, syscall: 'ibv_reg_mr', cause: error },
    );
  }
}

function dmabufArguments(pd: ProtectionDomain, options: DmabufOptions, sync: boolean) {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  const { fd, offset = 0, length, access = Access.LOCAL_WRITE } = options;
  integer('fd', fd, 0, 2 ** 31 - 1);
  integer('offset', offset, 0, Number.MAX_SAFE_INTEGER);
  integer('length', length, 1, Number.MAX_SAFE_INTEGER);
  return [
    pd.native,
    fd,
    offset,
    length,
    unsigned64('iova', options.iova ?? offset),
    checkAccess(access),
    sync,
  ] as const;
}

/** @internal */
export async function regDmabufMr(pd: ProtectionDomain, options: DmabufOptions): Promise<MemoryRegion> {
  const request = dmabufArguments(pd, options, false);
  const made = await explainingAsync(
    subjectOf(pd),
    none,
    () => native().regDmabufMr(...request) as Promise<NativeMemoryRegion>,
  );
  return new MemoryRegion(made, pd, request[5]);
}

/** @internal */
export function regDmabufMrSync(pd: ProtectionDomain, options: DmabufOptions): MemoryRegion {
  const request = dmabufArguments(pd, options, true);
  const made = explaining(subjectOf(pd), none, () => native().regDmabufMr(...request) as NativeMemoryRegion);
  return new MemoryRegion(made, pd, request[5]);
}

/** @internal */
export function regDmMr(
  pd: ProtectionDomain,
  dm: DeviceMemory,
  options: DeviceMemoryRegionOptions,
): MemoryRegion {
  checkOptions('options', options);
  const offset = integer('offset', options.offset ?? 0, 0, dm.length);
  const length = integer('length', options.length ?? dm.length - offset, 1, dm.length - offset);
  const access = checkAccess(options.access ?? Access.LOCAL_WRITE) | Access.ZERO_BASED;
  const made = explaining(subjectOf(pd), none, () =>
    native().regDmMr(pd.native, dm.native, offset, length, access),
  );
  return new MemoryRegion(made, pd, access, dm);
}

/** @internal */
export function importMr(pd: ProtectionDomain, options: ImportedRegionOptions): MemoryRegion {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  const handle = integer('handle', options.handle, 0, 2 ** 32 - 1);
  const length = integer('length', options.length, 1, Number.MAX_SAFE_INTEGER);
  const access = checkAccess(options.access);
  const address = unsigned64('address', options.address);
  const made = explaining(subjectOf(pd), none, () =>
    native().importMr(pd.native, handle, address, length, access),
  );
  return new MemoryRegion(made, pd, access);
}

function adviceArguments(
  pd: ProtectionDomain,
  sge: Sge | readonly Sge[],
  options: AdviseOptions,
  sync: boolean,
) {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  const advice = wordNumber('advice', advices, options.advice);
  const elements = nativeElements(sge);
  return [
    pd.native,
    advice,
    options.flush === true ? FLUSH : 0,
    sync,
    elements.length / 3,
    ...elements,
  ] as const;
}

/** @internal */
export async function adviseMr(
  pd: ProtectionDomain,
  sge: Sge | readonly Sge[],
  options: AdviseOptions,
): Promise<void> {
  const request = adviceArguments(pd, sge, options, false);
  await explainingAsync(subjectOf(pd), none, () => native().adviseMr(...request) as Promise<void>);
}

/** @internal */
export function adviseMrSync(pd: ProtectionDomain, sge: Sge | readonly Sge[], options: AdviseOptions): void {
  const request = adviceArguments(pd, sge, options, true);
  void explaining(subjectOf(pd), none, () => native().adviseMr(...request));
}

/** @internal Elements as the addon takes them: region, offset and length of each. */
export function nativeElements(sge: Sge | readonly Sge[] | undefined): NativeElements {
  const list = sge === undefined ? [] : Array.isArray(sge) ? (sge as readonly Sge[]) : [sge as Sge];
  return list.flatMap((element) => {
    if (typeof element !== 'object' || element === null || !(element.mr instanceof MemoryRegion)) {
      throw invalidArgType('sge.mr', 'a MemoryRegion', element);
    }
    const { mr } = element;
    const offset = integer('sge.offset', element.offset ?? 0, 0, mr.length);
    const most = Math.min(mr.length - offset, 2 ** 32 - 1);
    return [mr.native, offset, integer('sge.length', element.length ?? most, 0, most)];
  });
}
