import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';

const folder = '/sys/kernel/mm/hugepages';
const { EINVAL, ENOMEM } = os.constants.errno;

interface HugePages {
  /** Of one page, in bytes. */
  size: number;
  free: number;
}

/** The sizes of huge pages that this kernel has, with how many are free. */
function hugePages(): HugePages[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .map((name) => ({
      size: Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0) * 1024,
      free: Number(readFileSync(`${folder}/${name}/free_hugepages`, 'utf8')),
    }))
    .sort((a, b) => a.size - b.size);
}

const sizeText = (bytes: number) => (bytes >= 2 ** 30 ? `${bytes / 2 ** 30} GiB` : `${bytes / 2 ** 20} MiB`);

/** What to do when memory of huge pages could not be mapped. `pageSize` and `bytes` in bytes. */
export function hugePageAdvice(
  errno: number,
  pageSize: number,
  bytes: number,
  kernel: readonly HugePages[] = hugePages(),
): string {
  const size = sizeText(pageSize);
  const pages = kernel.find((candidate) => candidate.size === pageSize);
  if (errno === EINVAL || pages === undefined) {
    const has = kernel.map((candidate) => sizeText(candidate.size)).join(' and ');
    return has === ''
      ? `This kernel has no huge pages (no ${folder}): use pageSize 0`
      : `This kernel has huge pages of ${has}, none of ${size}: use one of those, or pageSize 0`;
  }
  if (errno !== ENOMEM) return '';
  return (
    `${Math.ceil(bytes / pageSize)} huge pages of ${size} were asked for, and ${pages.free} are free. Set more aside: ` +
    `echo COUNT > ${folder}/hugepages-${pageSize / 1024}kB/nr_hugepages, or vm.nr_hugepages for those of the usual size`
  );
}
