/** Builds the kernel of the `uml` engine from the distribution's packaged kernel source. */
import { createHash } from 'node:crypto';
import { access, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { packageFolder } from '../../package.js';
import { cachePath, ensureCached } from '../cache.js';
import { requireSpace, withArchive, type DebianOptions } from '../debian.js';
import { RxeError } from '../errors.js';
import { findProgram } from '../search.js';
import { runTool } from '../tool.js';
import { builtUmlKernels, inspectUmlKernel, umlDirectory, type UmlKernel } from './uml.js';

export interface BuildOptions extends DebianOptions {
  /** Major and minor number; there must be a package `linux-source-VERSION`. 6.1 by default. */
  version?: string;
  /** Compilers at once; one for each CPU by default. */
  jobs?: number;
  /** Leaves the built source tree in the cache, and says where. */
  keep?: boolean;
  /** While the kernel is compiled, about how much of it is done: 0 to 1. */
  onCompile?: (fraction: number) => void;
  /** Ends the build; nothing of it is left. */
  signal?: AbortSignal;
}

export interface BuildResult extends UmlKernel {
  /** False where there was a kernel of that version and configuration already. */
  built: boolean;
  /** The source tree that was kept. */
  source?: string;
}

/** The configuration fragment. */
const fragmentFile = join(packageFolder, 'lib/rxe/kernel/rxe.config');

/** Bytes of source and objects while building: 1.6 measured with 6.1, 1.9 with 6.12. */
const buildSpace = 2.6e9;

/** How many files `make` reports with this configuration: measured, and only the scale of the progress shown. */
const expectedSteps = 1770;

/**
 * Builds a UML kernel into the cache; a current one is not built again. About 18 minutes of CPU time, 2.6 GB of room
 * while it lasts, 10 MB afterwards.
 */
export async function buildUmlKernel(options: BuildOptions = {}): Promise<BuildResult> {
  const { version = '6.1', onProgress } = options;
  const fragment = await readFile(fragmentFile, 'utf8');
  const config = createHash('sha256').update(fragment).digest('hex').slice(0, 10);

  const current = (await builtUmlKernels()).find(
    (kernel) => kernel.config === config && kernel.release.startsWith(`${version}.`),
  );
  if (current) return { ...current, built: false };
  await requireBuildTools();

  return withArchive(async (archive) => {
    const found = await archive.find(`linux-source-${version}`);
    let source: string | undefined;
    const place = await ensureCached(
      `${umlDirectory}/${found.name}_${found.version}-${config}`,
      async (aside) => {
        await requireSpace(aside, buildSpace, 'building a kernel');
        const scratch = join(aside, 'scratch');
        await mkdir(scratch);
        await archive.unpack(found, scratch);
        const tree = await unpackSource(scratch, found.name, options);
        await configure(tree, fragment, options);
        await compile(tree, options);
        await copyFile(join(tree, 'linux'), join(aside, 'linux'));
        await tool('strip', [join(aside, 'linux')], aside, options);
        const { release } = await inspectUmlKernel(join(aside, 'linux'), 'the kernel just built');
        await writeFile(join(aside, 'kernel.json'), JSON.stringify({ release, config }));
        if (options.keep) {
          source = cachePath(`kernels/source/${found.name}_${found.version}`);
          await rm(source, { recursive: true, force: true });
          await mkdir(cachePath('kernels/source'), { recursive: true });
          await rename(tree, source);
        }
        onProgress?.('tidying up');
        await rm(scratch, { recursive: true });
      },
      { onWait: () => onProgress?.('waiting for another process that builds the same kernel') },
    );
    const kernel = await inspectUmlKernel(join(place, 'linux'), 'the cache');
    return { ...kernel, built: true, source };
  }, options);
}

async function unpackSource(scratch: string, name: string, options: BuildOptions): Promise<string> {
  const archive = join(scratch, 'usr/src', `${name}.tar.xz`);
  options.onProgress?.('unpacking the source (a minute)');
  await tool('tar', ['-xJf', archive, '-C', scratch], scratch, options);
  await rm(archive);
  return join(scratch, name);
}

async function configure(tree: string, fragment: string, options: BuildOptions): Promise<void> {
  options.onProgress?.('configuring');
  await setTimerFrequency(join(tree, 'arch/um/Kconfig'));
  await tool('make', ['ARCH=um', 'defconfig'], tree, options);
  const file = join(tree, '.config');
  // Of two lines for one option the later counts.
  await writeFile(file, fragment, { flag: 'a' });
  await tool('make', ['ARCH=um', 'olddefconfig'], tree, options);

  const lost = lostOptions(fragment, await readFile(file, 'utf8'));
  if (lost.includes('CONFIG_RDMA_RXE')) {
    throw new RxeError(
      'ERR_RXE_BUILD',
      `this kernel source does not take the configuration: ${lost.join(', ')}`,
    );
  }
  if (lost.length > 0) options.onProgress?.(`options that this kernel does not have: ${lost.join(', ')}`);
}

/** The options that a fragment switches on and a finished configuration does not have. */
export function lostOptions(fragment: string, config: string): string[] {
  const finished = new Set(config.split('\n'));
  return fragment
    .split('\n')
    .filter((line) => line.startsWith('CONFIG_') && !finished.has(line))
    .map((line) => line.slice(0, line.indexOf('=')));
}

/**
 * UML's timer ticks 100 times a second, and no option says otherwise. With 1000 a process that polls gives the one CPU
 * away ten times sooner.
 */
async function setTimerFrequency(kconfig: string): Promise<void> {
  const text = await readFile(kconfig, 'utf8');
  await writeFile(kconfig, text.replace(/^(config HZ\n\s+int\n\s+default) 100$/m, '$1 1000'));
}

async function compile(tree: string, options: BuildOptions): Promise<void> {
  const { jobs = availableParallelism(), onCompile, onProgress } = options;
  onProgress?.(`compiling with ${jobs} ${jobs === 1 ? 'job' : 'jobs'}`);
  let steps = 0;
  // If this process is killed, make ends by itself: at the next line that it can no longer write to our pipe.
  await tool('make', ['ARCH=um', `-j${jobs}`, 'linux'], tree, options, (line) => {
    if (!isCompileStep(line)) return;
    steps += 1;
    onCompile?.(Math.min(steps / expectedSteps, 0.99));
  });
  onCompile?.(1);
}

/** Lines such as `  CC      net/core/dev.o`. */
export function isCompileStep(line: string): boolean {
  return /^ {2}(CC|AS|AR|LD) /.test(line);
}

/** Runs a step of the build; if it fails, the error has the end of what it said. */
async function tool(
  command: string,
  args: string[],
  cwd: string,
  { signal }: BuildOptions,
  onLine?: (line: string) => void,
): Promise<void> {
  const { status, stdout, stderr } = await runTool(command, args, {
    cwd,
    env: buildEnvironment(),
    signal,
    onLine,
  });
  if (status === 0) return;
  const said = (stderr.trim() || stdout.trim()).split('\n').slice(-15).join('\n');
  if (/No space left on device/.test(said)) {
    throw new RxeError(
      'ERR_RXE_NO_SPACE',
      `no space left in ${cwd}; building a kernel needs ${buildSpace / 1e9} GB`,
    );
  }
  throw new RxeError('ERR_RXE_BUILD', `${command} ${args.join(' ')} failed with status ${status}:\n${said}`);
}

/** Only what the tools need: variables such as ARCH, CFLAGS or MAKEFLAGS would change what is built. */
function buildEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, KBUILD_BUILD_USER: 'node-rdma', KBUILD_BUILD_HOST: 'localhost' };
}

const buildTools: readonly (readonly [program: string, debianPackage: string])[] = [
  ['bc', 'bc'],
  ['bison', 'bison'],
  ['flex', 'flex'],
  ['gcc', 'gcc'],
  ['ld', 'binutils'],
  ['make', 'make'],
  ['tar', 'tar'],
  ['xz', 'xz-utils'],
];

async function requireBuildTools(): Promise<void> {
  const missing = new Set<string>();
  for (const [program, debianPackage] of buildTools) {
    if (!(await findProgram(program))) missing.add(debianPackage);
  }
  if (!(await isThere('/usr/include/stdlib.h'))) missing.add('libc6-dev');
  if (missing.size === 0) return;
  throw new RxeError(
    'ERR_RXE_NO_TOOLS',
    `to build a kernel, first install what is missing: apt-get install --no-install-recommends ${[...missing].join(' ')}`,
  );
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
