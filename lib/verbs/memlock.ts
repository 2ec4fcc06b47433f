// Why memory could not be pinned. The kernel counts it for the process (`VmPin`), against RLIMIT_MEMLOCK, unless the process
// has CAP_IPC_LOCK in the initial user namespace (ib_umem_get).
import { readFileSync } from 'node:fs';
import os from 'node:os';

const { ENOMEM, EPERM } = os.constants.errno;
const PAGE = 4096;
const CAP_IPC_LOCK = 1n << 14n;

/** What this process may pin, and has pinned. */
export interface Memlock {
  /** RLIMIT_MEMLOCK in bytes; undefined where it is unlimited or unknown. */
  limit: number | undefined;
  /** Bytes pinned now; undefined where it is unknown. */
  pinned: number | undefined;
  /** Whether the limit does not count for it. */
  privileged: boolean;
}

function proc(file: string): string {
  try {
    return readFileSync(`/proc/self/${file}`, 'utf8');
  } catch {
    return '';
  }
}

export function readMemlock(): Memlock {
  const limit = /^Max locked memory\s+(\d+)/m.exec(proc('limits'))?.[1];
  const status = proc('status');
  const pinned = /^VmPin:\s+(\d+) kB/m.exec(status)?.[1];
  const capabilities = BigInt(`0x${/^CapEff:\s+(\w+)/m.exec(status)?.[1] ?? '0'}`);
  const initialNamespace = /^\s*0\s+0\s+4294967295\s*$/.test(proc('uid_map'));
  return {
    limit: limit === undefined ? undefined : Number(limit),
    pinned: pinned === undefined ? undefined : Number(pinned) * 1024,
    privileged: initialNamespace && (capabilities & CAP_IPC_LOCK) !== 0n,
  };
}

const REMEDIES =
  'ulimit -l unlimited, LimitMEMLOCK=infinity (systemd), --ulimit memlock=-1 (containers), or CAP_IPC_LOCK';

/** What to do about the failure of a function that pins `bytes` of memory; nothing for failures of another kind. */
export function pinAdvice(errno: number, bytes: number | bigint, memlock?: Memlock): string {
  if (errno === ENOMEM) return memlockAdvice(bytes, memlock);
  if (errno === EPERM) return notAllowedAdvice(memlock);
  return '';
}

/** What to do about an ENOMEM of a function that pins `bytes` of memory. */
export function memlockAdvice(
  bytes: number | bigint,
  { limit, pinned, privileged }: Memlock = readMemlock(),
): string {
  const wanted = `${bytes} bytes were to be pinned`;
  const already = pinned === undefined ? '' : `, ${pinned} bytes are pinned already`;
  const short =
    'The machine is short of memory, of mappings (vm.max_map_count), or of what the device itself has for this; or it is a fault of ' +
    `the kernel or driver (${versions()}), if it came with an update`;
  if (limit === undefined)
    return `${wanted}${already}, and RLIMIT_MEMLOCK is unlimited, so it is not that. ${short}`;
  const which = `RLIMIT_MEMLOCK is ${limit} bytes for this process`;
  if (privileged) return `${wanted}${already}. ${which}, which has CAP_IPC_LOCK, so it is not that. ${short}`;
  const pages = Math.ceil(Number(bytes) / PAGE) * PAGE;
  if (pinned !== undefined && pages + pinned <= limit) {
    return `${wanted}${already}, and ${which}, which is enough, so it is not that. ${short}`;
  }
  return `${wanted}${already}, and ${which}. Raise it: ${REMEDIES}`;
}

/** What to do about an EPERM of a function that pins memory. */
function notAllowedAdvice({ limit, privileged }: Memlock = readMemlock()): string {
  return limit === 0 && !privileged
    ? `RLIMIT_MEMLOCK is 0 for this process, which may pin nothing. Raise it: ${REMEDIES}`
    : '';
}

/** Of what pins memory, as far as the process can tell. */
function versions(): string {
  const library = /\/(libibverbs\.so\S*)/.exec(proc('maps'))?.[1];
  return [`Linux ${os.release()}`, library].filter(Boolean).join(', ');
}
