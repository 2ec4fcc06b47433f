/** The first file system of a machine: a cpio archive (format newc, which is all that Linux reads), not compressed. */

export interface ArchiveEntry {
  /** Without a leading slash. Folders come before what is in them. */
  name: string;
  /** As in stat: the type and the permissions. */
  mode: number;
  content?: Buffer;
}

export const folderMode = 0o040755;
export const programMode = 0o100755;
export const fileMode = 0o100644;

export function archive(entries: readonly ArchiveEntry[]): Buffer {
  const pieces = entries.flatMap((entry, i) => encode(entry, i + 1));
  return Buffer.concat([...pieces, ...encode({ name: 'TRAILER!!!', mode: 0 }, 0)]);
}

function encode({ name, mode, content = Buffer.alloc(0) }: ArchiveEntry, inode: number): Buffer[] {
  const links = mode === folderMode ? 2 : 1;
  const time = 0;
  const nameLength = Buffer.byteLength(name) + 1;
  const devices = [0, 0, 0, 0];
  const checksum = 0;
  const fields = [inode, mode, 0, 0, links, time, content.length, ...devices, nameLength, checksum];
  const header = '070701' + fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return [padded(Buffer.from(`${header}${name}\0`)), padded(content)];
}

/** Header with name, and content, each end at a multiple of 4. */
function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}
