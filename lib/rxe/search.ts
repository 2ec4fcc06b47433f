import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Where administrators' programs are; an ordinary user's PATH often lacks them. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The path of a program, as a shell would find it. */
export async function findProgram(name: string): Promise<string | undefined> {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...systemFolders,
  ];
  for (const folder of folders) {
    const path = join(folder, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}
