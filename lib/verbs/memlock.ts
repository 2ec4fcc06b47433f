import { readFileSync } from 'node:fs';

/** This process's limit on pinned memory (RLIMIT_MEMLOCK) in bytes; undefined where it is unlimited or unknown. */
export function memlockLimit(): number | undefined {
  let text: string;
  try {
    text = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined;
  }
  const soft = /^Max locked memory\s+(\S+)/m.exec(text)?.[1];
  return soft === undefined || soft === 'unlimited' ? undefined : Number(soft);
}

/** What to do about an ENOMEM of a function that pins `bytes` of memory. */
export function memlockAdvice(bytes: number | bigint): string {
  const limit = memlockLimit();
  if (limit === undefined) {
    return (
      `${bytes} bytes were to be pinned, and RLIMIT_MEMLOCK is unlimited: the machine is short of memory, of mappings ` +
      '(vm.max_map_count), or of what the device itself has for this'
    );
  }
  return (
    `${bytes} bytes were to be pinned, and RLIMIT_MEMLOCK is ${limit} bytes for this process. Raise it: ulimit -l ` +
    'unlimited, LimitMEMLOCK=infinity (systemd), --ulimit memlock=-1 (containers), or CAP_IPC_LOCK'
  );
}
