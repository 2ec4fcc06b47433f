import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import {
  collectModules,
  loadOrder,
  parseModuleInfo,
  type ModuleInfo,
  type Wish,
} from '../../lib/rxe/kernel/modules.js';

/** A relocatable ELF file with nothing in it but the section `.modinfo` and the section names. */
function moduleFile(...entries: string[]): Buffer {
  const names = Buffer.from('\0.shstrtab\0.modinfo\0');
  const modinfo = Buffer.from(entries.map((entry) => `${entry}\0`).join(''));
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeBigUInt64LE(BigInt(64 + names.length + modinfo.length), 40);
  header.writeUInt16LE(64, 58);
  header.writeUInt16LE(3, 60);
  header.writeUInt16LE(1, 62);
  const section = (name: number, offset: number, size: number) => {
    const entry = Buffer.alloc(64);
    entry.writeUInt32LE(name, 0);
    entry.writeBigUInt64LE(BigInt(offset), 24);
    entry.writeBigUInt64LE(BigInt(size), 32);
    return entry;
  };
  return Buffer.concat([
    header,
    names,
    modinfo,
    section(0, 0, 0),
    section(1, 64, names.length),
    section(11, 64 + names.length, modinfo.length),
  ]);
}

/** A kernel where each module depends on those listed; one that is `built-in` has no file. */
function kernelOf(modules: Record<string, string[] | 'built-in'>) {
  const known = new Map(Object.entries(modules));
  return (name: string): Promise<ModuleInfo | 'absent' | 'built-in'> => {
    const entry = known.get(name) ?? 'absent';
    return Promise.resolve(typeof entry === 'string' ? entry : { dependsOn: entry, wants: [] });
  };
}

const required = (...names: string[]): Wish[] => names.map((name) => [name, 'required']);

describe('what a module says of itself', () => {
  test('its dependencies, with the names as the kernel spells them', () => {
    const file = moduleFile('license=GPL', 'depends=ib-uverbs,ib_core', 'name=rdma_rxe');
    expect(parseModuleInfo(file)).toEqual({ dependsOn: ['ib_uverbs', 'ib_core'], wants: [] });
  });

  test('none, when depends is empty', () => {
    expect(parseModuleInfo(moduleFile('depends=', 'name=veth')).dependsOn).toEqual([]);
  });

  test('soft dependencies that go before, and only those', () => {
    const file = moduleFile('depends=', 'softdep=pre: crc32 crypto-crc32c post: later', 'softdep=post: last');
    expect(parseModuleInfo(file).wants).toEqual(['crc32', 'crypto_crc32c']);
  });

  test('a file that is no module is refused', () => {
    expect(() => parseModuleInfo(Buffer.from('not an ELF file'.padEnd(100)))).toThrow(
      /not a 64-bit ELF file/,
    );
  });
});

describe('load order', () => {
  test('each module once, after all that it depends on', async () => {
    const kernel = kernelOf({ rxe: ['uverbs', 'core'], uverbs: ['core'], core: [], tunnel: ['core'] });
    expect(await loadOrder(required('rxe', 'tunnel', 'core'), kernel)).toEqual([
      'core',
      'uverbs',
      'rxe',
      'tunnel',
    ]);
  });

  test('what is built in satisfies, and is not loaded', async () => {
    const kernel = kernelOf({ rxe: ['core'], core: 'built-in', overlay: 'built-in' });
    expect(await loadOrder(required('overlay', 'rxe'), kernel)).toEqual(['rxe']);
  });

  test('an optional module that is missing, or lacks a dependency, is left out', async () => {
    const kernel = kernelOf({ rxe: [], netem: ['missing'] });
    const wishes: Wish[] = [
      ['tbf', 'optional'],
      ['netem', 'optional'],
      ['rxe', 'required'],
    ];
    expect(await loadOrder(wishes, kernel)).toEqual(['rxe']);
  });

  test('modules that need each other do not loop', async () => {
    expect(await loadOrder(required('a'), kernelOf({ a: ['b'], b: ['a'] }))).toEqual(['b', 'a']);
  });

  test('a kernel without rdma_rxe has an error of its own, whatever else it lacks', async () => {
    const order = loadOrder(required('9pnet_virtio', 'rdma_rxe'), kernelOf({ veth: [] }));
    await expect(order).rejects.toMatchObject({ code: 'ERR_RXE_NO_RXE', message: /no rdma_rxe/ });
  });

  test('other missing modules are named, all of them', async () => {
    const order = loadOrder(required('9p', 'veth', 'rdma_rxe'), kernelOf({ rdma_rxe: [] }));
    await expect(order).rejects.toMatchObject({ code: 'ERR_RXE_NO_KERNEL', message: /\(9p, veth\)/ });
  });
});

describe('collecting from a module tree', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'modules-'));
    await mkdir(join(folder, 'tree/kernel/drivers'), { recursive: true });
    await mkdir(join(folder, 'out'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('finds modules by name, uncompresses them, and knows what is built in', async () => {
    const core = moduleFile('depends=');
    const rxe = moduleFile('depends=ib_core,crc16');
    await writeFile(join(folder, 'tree/kernel/drivers/ib-core.ko.gz'), gzipSync(core));
    await writeFile(join(folder, 'tree/kernel/drivers/rdma_rxe.ko'), rxe);
    await writeFile(join(folder, 'tree/modules.builtin'), 'kernel/lib/crc16.ko\n');

    const names = await collectModules(join(folder, 'tree'), required('rdma_rxe'), join(folder, 'out'));

    expect(names).toEqual(['ib_core.ko', 'rdma_rxe.ko']);
    expect(await readFile(join(folder, 'out/ib_core.ko'))).toEqual(core);
    expect(await readFile(join(folder, 'out/rdma_rxe.ko'))).toEqual(rxe);
  });

  test('a damaged compressed module is an error that names the file', async () => {
    await writeFile(join(folder, 'tree/kernel/drivers/rdma_rxe.ko.gz'), 'not gzip');
    const names = collectModules(join(folder, 'tree'), required('rdma_rxe'), join(folder, 'out'));
    await expect(names).rejects.toMatchObject({ message: /cannot decompress .*rdma_rxe\.ko\.gz/ });
  });
});
