// The benchmark of the binding, for a few operations: what it needs still fits together.
import { expect, it } from 'vitest';
import { measureBinding, paths } from '../../benchmarks/binding/run.js';
import { buildBenchmarks } from '../../benchmarks/build.js';

it('measures each path in JavaScript and in C', async () => {
  await buildBenchmarks();
  const measured = measureBinding(
    { by: ['ours', 'c'], rounds: 1, samples: 3, operations: 320, counted: 0, heap: 1000, queuePairs: 128 },
    () => {},
  );
  expect(Object.keys(measured.paths)).toEqual(Object.keys(paths));
  for (const { figures } of Object.values(measured.paths)) {
    expect(figures.ours.nanoseconds).toBeGreaterThan(0);
    expect(figures.c.nanoseconds).toBeGreaterThan(0);
    expect(figures.ours.runs).toHaveLength(1);
  }
  // For so few operations they say nothing yet: the compiler has not come to them.
  expect(measured.heap.bytes.batch.bytes).toBeTypeOf('number');
  expect(measured.queuePair.all).toBeTypeOf('number');
});
