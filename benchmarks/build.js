// @ts-check
// Compiles what the benchmarks have in C, into build/bench/.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { root, step } from '../scripts/progress.js';

const folder = path.join(root, 'build', 'bench');

/** @param {string} name */
export const built = (name) => path.join(folder, name);

const flags = ['-std=gnu17', '-O3', '-Wall', '-Wextra'];

export async function buildBenchmarks() {
  mkdirSync(folder, { recursive: true });
  await step('benchmarks in C', async ({ run }) => {
    const source = (/** @type {string} */ name) => path.join('benchmarks', name);
    const compile = (/** @type {string[]} */ ...args) => run('cc', [...flags, ...args]);
    await compile('-shared', '-fPIC', '-o', built('null-provider.so'), source('binding/null-provider.c'));
    await compile('-o', built('loop'), source('binding/loop.c'), '-libverbs');
    await compile('-o', built('device'), source('rxe/bench.c'), '-libverbs', '-lpthread');
  });
}
