// Programs that run with a device that records what a provider is asked for: see recording-provider/recorder.c.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'vite';
import type * as surface from '../../lib/index.js';

const root = path.join(import.meta.dirname, '../..');
const source = path.join(import.meta.dirname, 'recording-provider');
const folder = path.join(root, 'build/recording-provider');
const library = path.join(root, 'build/recording');

type Surface = typeof surface;

/** A call that the provider got: its name, and every field of what it was given. */
export type Recorded = { call: string } & Record<string, unknown>;

/** Makes the provider by the C compiler, and the library as plain JavaScript, since a program of its own runs it. */
export async function prepareRecording(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  execFileSync('cc', [
    ...['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror'],
    ...['-Wl,-soname,libibverbs.so.1', `-Wl,--version-script=${path.join(source, 'versions.map')}`],
    ...['-o', path.join(folder, 'libibverbs.so.1'), path.join(source, 'recorder.c')],
  ]);
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: path.join(root, 'lib/index.ts'),
      outDir: library,
      minify: false,
      target: 'es2022',
      rolldownOptions: { output: { entryFileNames: 'index.mjs' } },
    },
  });
}

let runs = 0;

/**
 * Runs `program`, which sees nothing but what it is given, in a process whose only device is the recorder.
 *
 * @returns what was recorded, and what the program returned, as JSON
 */
export function record<T>(
  program: (rdma: Surface) => T,
  environment: Record<string, string> = {},
): { calls: Recorded[]; result: Awaited<T> } {
  const file = path.join(folder, `calls-${process.pid}-${++runs}.jsonl`);
  const script = `
    const rdma = await import(${JSON.stringify(path.join(library, 'index.mjs'))});
    const program = ${program.toString()};
    const result = await program(rdma);
    const plain = (_key, value) => (typeof value === 'bigint' ? String(value) : value);
    process.stdout.write(JSON.stringify({ result }, plain));
    process.exit(0);
  `;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, ...environment, LD_LIBRARY_PATH: folder, RECORD_TO: file },
    timeout: 60_000,
  });
  if (run.status !== 0) throw new Error(`status ${run.status}, signal ${run.signal}: ${run.stderr}`);
  const calls = readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Recorded);
  rmSync(file);
  return { calls, ...(JSON.parse(run.stdout) as { result: Awaited<T> }) };
}
