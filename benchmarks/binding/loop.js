// @ts-check
// loop.js PATH OPERATIONS SAMPLES: prints nanoseconds per operation of each sample, as a JSON array. It runs for a while before: what
// the compiler of the JavaScript needs to make fast code of a path is not counted.
import { context, paths } from './paths.js';

const warmUp = 60_000;

const [name = '', operations, samples] = process.argv.slice(2);
const run = paths[name];
if (run === undefined) throw new Error(`There is no path ${name}`);
run(warmUp);
const figures = Array.from({ length: Number(samples) }, () => {
  const began = performance.now();
  run(Number(operations));
  return ((performance.now() - began) * 1e6) / Number(operations);
});
console.log(JSON.stringify(figures));
context.close({ cascade: true });
