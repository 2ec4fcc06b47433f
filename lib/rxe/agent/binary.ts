import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFolder } from '../../package.js';
import { RxeError } from '../errors.js';

const candidates = ['build/Release/rxe_agent', `prebuilds/linux-${process.arch}/rxe_agent`];

/** The program that runs inside a machine: built from source, or as it was shipped. */
export async function findAgent(): Promise<string> {
  const paths = candidates.map((name) => join(packageFolder, name));
  for (const path of paths) {
    try {
      await access(path, constants.R_OK | constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  throw new RxeError(
    'ERR_RXE_NO_AGENT',
    `the program that runs inside the machine is not built (looked for ${paths.join(' and ')}): run \`npx node-gyp rebuild\` in the package's folder`,
  );
}
