/**
 * Picks kernel modules out of a module tree and puts them in load order, from what each module says of itself (its
 * `.modinfo` section): no depmod, no modules.dep, so a package that was only unpacked will do.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { RxeError } from '../errors.js';
import { decompress } from './decompress.js';

/** `required`: without it the machine is of no use; `optional`: some kernels have it built in, or not at all. */
export type Wish = readonly [name: string, need: 'required' | 'optional'];

/** What a machine on the qemu engine loads, in this order, each after what it depends on. */
export const machineModules: readonly Wish[] = [
  ['virtio_pci', 'required'],
  ['virtio_console', 'required'],
  ['virtio_blk', 'optional'],
  ['virtio_rng', 'optional'],
  ['9pnet_virtio', 'required'],
  ['9p', 'required'],
  ['overlay', 'required'],
  ['ext4', 'optional'],
  ['squashfs', 'optional'],
  ['configfs', 'optional'],
  ['fuse', 'optional'],
  ['virtiofs', 'optional'],
  ['veth', 'required'],
  ['dummy', 'optional'],
  ['af_packet', 'optional'],
  ['sch_netem', 'optional'],
  ['sch_ingress', 'optional'],
  ['sch_tbf', 'optional'],
  ['sch_prio', 'optional'],
  ['cls_u32', 'optional'],
  ['cls_matchall', 'optional'],
  ['cls_flower', 'optional'],
  ['act_gact', 'optional'],
  ['act_mirred', 'optional'],
  ['act_skbedit', 'optional'],
  // rxe asks the crypto layer for these by algorithm, not by module: modprobe would be needed in the machine.
  ['crc32_generic', 'optional'],
  ['crc32c_generic', 'optional'],
  ['ib_uverbs', 'required'],
  ['ib_umad', 'required'],
  ['rdma_ucm', 'required'],
  ['rdma_rxe', 'required'],
];

/**
 * Copies the wanted modules and all that they depend on from `tree` (a `/lib/modules/RELEASE`) into `into`, uncompressed,
 * and returns the names of the files in load order.
 */
export async function collectModules(tree: string, wishes: readonly Wish[], into: string): Promise<string[]> {
  const files = await moduleFiles(tree);
  const builtIn = await builtInModules(tree);
  const contents = new Map<string, Buffer>();
  const read = async (name: string): Promise<ModuleInfo | 'absent' | 'built-in'> => {
    const file = files.get(name);
    if (!file) return builtIn.has(name) ? 'built-in' : 'absent';
    const content = await decompress(file);
    contents.set(name, content);
    return parseModuleInfo(content);
  };
  const order = await loadOrder(wishes, read);
  const names: string[] = [];
  for (const name of order) {
    const content = contents.get(name);
    if (!content) continue;
    await writeFile(join(into, `${name}.ko`), content);
    names.push(`${name}.ko`);
  }
  return names;
}

export interface ModuleInfo {
  /** Must be loaded before. */
  dependsOn: string[];
  /** Should be loaded before where they exist: `softdep=pre: …`. */
  wants: string[];
}

/** Depth first, each module once, after what it depends on. */
export async function loadOrder(
  wishes: readonly Wish[],
  read: (name: string) => Promise<ModuleInfo | 'absent' | 'built-in'>,
): Promise<string[]> {
  const order: string[] = [];
  const visited = new Map<string, boolean>();

  /** False where the kernel has it not, or not all that it depends on. */
  const visit = async (name: string): Promise<boolean> => {
    const known = visited.get(name);
    if (known !== undefined) return known;
    // A module that is asked for again while its own dependencies are visited: a cycle, which depmod refuses too.
    visited.set(name, true);
    const info = await read(name);
    let complete = info !== 'absent';
    if (typeof info === 'object') {
      for (const other of info.wants) await visit(other);
      for (const other of info.dependsOn) complete = (await visit(other)) && complete;
      if (complete) order.push(name);
    }
    visited.set(name, complete);
    return complete;
  };

  const missing: string[] = [];
  for (const [name, need] of wishes) {
    if (!(await visit(moduleName(name))) && need === 'required') missing.push(name);
  }
  if (missing.includes('rdma_rxe')) {
    throw new RxeError(
      'ERR_RXE_NO_RXE',
      'this kernel has no rdma_rxe module, so there is no Soft-RoCE in it; take linux-image-amd64',
    );
  }
  if (missing.length > 0) {
    throw new RxeError(
      'ERR_RXE_NO_KERNEL',
      `this kernel lacks modules that the machine needs (${missing.join(', ')}); take linux-image-amd64`,
    );
  }
  return order;
}

/** Reads the NUL-separated `key=value` strings of the `.modinfo` section of a 64-bit little-endian module. */
export function parseModuleInfo(module: Buffer): ModuleInfo {
  const info: ModuleInfo = { dependsOn: [], wants: [] };
  for (const entry of elfSection(module, '.modinfo').toString('latin1').split('\0')) {
    const [key, value = ''] = entry.split('=', 2);
    if (key === 'depends') info.dependsOn.push(...split(value, ','));
    if (key === 'softdep') info.wants.push(...softDependencies(value));
  }
  return info;
}

function softDependencies(text: string): string[] {
  const before = /(?:^|\s)pre:((?:\s+(?!post:|pre:)\S+)*)/.exec(text)?.[1];
  return split(before ?? '', /\s+/);
}

function split(text: string, separator: string | RegExp): string[] {
  return text
    .split(separator)
    .filter((part) => part !== '')
    .map(moduleName);
}

/** Module names and file names use `-` and `_` as they like; the kernel counts them as one. */
function moduleName(name: string): string {
  return name.replaceAll('-', '_');
}

function elfSection(file: Buffer, wanted: string): Buffer {
  const isElf64 = file.length >= 64 && file.readUInt32BE(0) === 0x7f454c46 && file[4] === 2 && file[5] === 1;
  if (!isElf64) throw new RxeError('ERR_RXE_NO_KERNEL', 'a kernel module is not a 64-bit ELF file');
  const table = Number(file.readBigUInt64LE(40));
  const entrySize = file.readUInt16LE(58);
  const header = (index: number) => {
    const at = table + index * entrySize;
    const offset = Number(file.readBigUInt64LE(at + 24));
    return {
      name: file.readUInt32LE(at),
      content: file.subarray(offset, offset + Number(file.readBigUInt64LE(at + 32))),
    };
  };
  const names = header(file.readUInt16LE(62)).content;
  for (let index = 0; index < file.readUInt16LE(60); index++) {
    const { name, content } = header(index);
    if (names.toString('latin1', name, names.indexOf(0, name)) === wanted) return content;
  }
  return Buffer.alloc(0);
}

async function moduleFiles(tree: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const entry of await readdir(join(tree, 'kernel'), { recursive: true })) {
    const [, name] = /^(.+)\.ko(\.xz|\.gz|\.zst)?$/.exec(basename(entry)) ?? [];
    if (name) files.set(moduleName(name), join(tree, 'kernel', entry));
  }
  return files;
}

async function builtInModules(tree: string): Promise<Set<string>> {
  const text = await readFile(join(tree, 'modules.builtin'), 'utf8').catch(() => '');
  return new Set(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => moduleName(basename(line, '.ko'))),
  );
}
