// Any sequence of calls, legal or not, against a model of verbs. NODE_RDMA_STEPS is how many steps; NODE_RDMA_SEED repeats a run, and
// NODE_RDMA_SHRINK=1 looks for the fewest steps that show a failure, which takes long.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { resources } from '../process/run.js';
import { tally, World, type Choices } from '../support/verbs-model.js';

const STEPS = Number(process.env.NODE_RDMA_STEPS ?? 3000);
/** At the most; half of it on average, and as few as show a failure. */
const MOST_PER_WORLD = 250;
const seed = process.env.NODE_RDMA_SEED;

/** What is done more often than the rest, so that there is something to do the rest to. */
const often = {
  ...{ allocPd: 5, createCq: 5, regMr: 10, createQp: 20, connect: 40 },
  ...{ postReceive: 60, send: 40, write: 15, read: 15, fetchAdd: 10 },
};

/** What each world has at first, on both sides: two connections. */
const atFirst = ['allocPd', 'createCq', 'regMr', 'regMr', 'createQp', 'createQp'].flatMap((name, i) =>
  [0, 1].map((a): [string, Choices] => [name, { a, b: 39, c: 9000 + i, d: 30 }]),
);
const connections = [0, 1].map((): [string, Choices] => ['connect', { a: 0, b: 0, c: 0, d: 0 }]);

it('any sequence of calls does what verbs say, and leaves nothing behind', { timeout: 600_000 }, async () => {
  const before = resources('own');
  const first = new World();
  const names = Object.keys(first.steps);
  first.close();
  const choice = fc.noBias(fc.nat(1_000_000));
  const kinds = names.map((name) => ({
    weight: (often as Record<string, number>)[name] ?? 1,
    arbitrary: fc.constant(name),
  }));
  const step = fc.tuple(
    fc.oneof(...kinds),
    fc.record<Choices>({ a: choice, b: choice, c: choice, d: choice }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: MOST_PER_WORLD, size: 'max' }),
      async (steps) => {
        const world = new World();
        try {
          for (const [name, choices] of [...atFirst, ...connections, ...steps]) {
            await world.steps[name]!(choices);
          }
          world.compare();
        } catch (error) {
          (error as Error).message += `\nLast of all:\n${world.trace.slice(-40).join('\n')}`;
          throw error;
        } finally {
          world.close();
        }
      },
    ),
    {
      numRuns: Math.ceil(STEPS / (MOST_PER_WORLD / 2)),
      ...(seed !== undefined && { seed: Number(seed) }),
      endOnFailure: process.env.NODE_RDMA_SHRINK === undefined,
    },
  );
  for (const [what, times] of Object.entries(tally)) expect(times, what).toBeGreaterThan(STEPS / 2000);
  expect(resources('own')).toEqual(before);
});
