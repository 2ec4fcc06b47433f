/**
 * Takes the kernel proper out of a compressed image. QEMU starts it directly (by the PVH entry point): decompressing it
 * inside an emulated machine takes eight seconds, outside less than one, and only the first time.
 */
import { createHash } from 'node:crypto';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureCached } from './cache.js';
import { RxeError } from './errors.js';
import { decompress } from './kernel/decompress.js';

const formats = [
  // The kernel's build appends the length to what does not carry it.
  { magic: Buffer.from('fd377a585a00', 'hex'), extension: '.xz', appended: 4 },
  { magic: Buffer.from('28b52ffd', 'hex'), extension: '.zst', appended: 4 },
  { magic: Buffer.from('1f8b', 'hex'), extension: '.gz', appended: 0 },
];

/** The path of the kernel in the cache; undefined if it is of a kind that must be started from its image. */
export async function uncompressedKernel(vmlinuz: string): Promise<string | undefined> {
  const { size, mtimeMs } = await stat(vmlinuz);
  const key = createHash('sha256').update(`${vmlinuz}\0${size}\0${mtimeMs}`).digest('hex').slice(0, 16);
  const folder = await ensureCached(`kernels/vmlinux/${key}`, async (aside) => {
    const kernel = await extract(await readFile(vmlinuz), join(aside, 'payload'));
    // An empty file remembers that there is nothing to gain.
    await writeFile(join(aside, 'vmlinux'), kernel && hasPvhEntry(kernel) ? kernel : '');
  });
  const path = join(folder, 'vmlinux');
  return (await stat(path)).size > 0 ? path : undefined;
}

async function extract(image: Buffer, scratch: string): Promise<Buffer | undefined> {
  const payload = payloadOf(image);
  const format = formats.find(({ magic }) => payload?.subarray(0, magic.length).equals(magic));
  if (!payload || !format) return undefined;
  const file = scratch + format.extension;
  await writeFile(file, payload.subarray(0, payload.length - format.appended));
  try {
    return await decompress(file);
  } catch (error) {
    if (error instanceof RxeError && error.code === 'ERR_RXE_NO_KERNEL') return undefined;
    throw error;
  } finally {
    await rm(file, { force: true });
  }
}

/** The compressed part of an x86 boot image (Documentation/x86/boot.rst of the kernel: offsets of the setup header). */
export function payloadOf(image: Buffer): Buffer | undefined {
  if (image.length < 0x250 || image.toString('latin1', 0x202, 0x206) !== 'HdrS') return undefined;
  const setupSectors = image[0x1f1] || 4;
  const start = (setupSectors + 1) * 512 + image.readUInt32LE(0x248);
  const length = image.readUInt32LE(0x24c);
  return length > 0 && start + length <= image.length ? image.subarray(start, start + length) : undefined;
}

/** Whether an ELF kernel carries the note XEN_ELFNOTE_PHYS32_ENTRY, by which QEMU starts it. */
export function hasPvhEntry(kernel: Buffer): boolean {
  const isElf64 = kernel.length > 64 && kernel.toString('latin1', 0, 4) === '\x7fELF' && kernel[4] === 2;
  if (!isElf64) return false;
  const table = Number(kernel.readBigUInt64LE(32));
  const [entrySize, count] = [kernel.readUInt16LE(54), kernel.readUInt16LE(56)];
  const noteSegment = 4;
  for (let i = 0; i < count; i += 1) {
    const entry = table + i * entrySize;
    if (kernel.readUInt32LE(entry) !== noteSegment) continue;
    const start = Number(kernel.readBigUInt64LE(entry + 8));
    if (hasNote(kernel.subarray(start, start + Number(kernel.readBigUInt64LE(entry + 32))))) return true;
  }
  return false;
}

function hasNote(notes: Buffer): boolean {
  const phys32Entry = 18;
  for (let at = 0; at + 12 <= notes.length;) {
    const [nameLength, length, type] = [0, 4, 8].map((field) => notes.readUInt32LE(at + field)) as [
      number,
      number,
      number,
    ];
    if (type === phys32Entry && notes.toString('latin1', at + 12, at + 15) === 'Xen') return true;
    at += 12 + aligned(nameLength) + aligned(length);
  }
  return false;
}

function aligned(length: number): number {
  return (length + 3) & ~3;
}
