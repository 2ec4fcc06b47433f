import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package: the nearest that has a description, whether this is a source or a part of what was made of them. */
export const packageFolder = nearest(dirname(fileURLToPath(import.meta.url)));

function nearest(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : nearest(dirname(folder));
}

/** As `package.json` has it. */
export function packageVersion(): string {
  const description = readFileSync(join(packageFolder, 'package.json'), 'utf8');
  return (JSON.parse(description) as { version: string }).version;
}
