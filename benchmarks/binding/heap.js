// @ts-check
// heap.js PATH OPERATIONS, with --expose-gc: prints the bytes that so many operations of a path have taken on the JavaScript heap.
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { context, paths } from './paths.js';

const [name = '', operations] = process.argv.slice(2);
const run = /** @type {(operations: number) => void} */ (paths[name]);
let collections = 0;
const observer = new PerformanceObserver((list) => (collections += list.getEntries().length));
observer.observe({ entryTypes: ['gc'] });

/** @param {number} count */
function taken(count) {
  globalThis.gc?.();
  const before = getHeapStatistics().used_heap_size;
  run(count);
  return getHeapStatistics().used_heap_size - before;
}

taken(Number(operations)); // compiled, and all that is made once is there
await setImmediate();
collections = 0;
const nothing = taken(0);
// Less than nothing is what else was let go meanwhile.
const bytes = Math.max(taken(Number(operations)) - nothing, 0);
await setImmediate();
observer.disconnect();
// Two were asked for; any other has hidden what was taken.
console.log(JSON.stringify({ bytes, collections: collections - 2 }));
context.close({ cascade: true });
