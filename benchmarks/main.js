// @ts-check
// npm run bench [-- --only binding|rxe --engine uml|qemu --rounds N --share X --skip-instructions]: sets up, measures the binding on a provider that does
// nothing and the data path on a device, and writes benchmarks/results/.
import { mkdirSync, readFileSync, writeFileSync, existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { root, runMain, step, StepError } from '../scripts/progress.js';
import { groupsToRun, setUp } from '../scripts/setup.js';

const results = path.join(root, 'benchmarks', 'results');

await runMain(async () => {
  const { only, engine, rounds, share, skipInstructions } = readOptions();
  await setUp('bench', ...(only === 'binding' ? [] : groupsToRun(engine)));
  // What they import is made by the set-up.
  const { buildBenchmarks } = await import('./build.js');
  const { machine } = await import('./common.js');
  await buildBenchmarks();

  if (only !== 'rxe') {
    const { measureBinding, usual } = await import('./binding/run.js');
    const measured = await step('the binding, on a provider that does nothing', async ({ say }) =>
      measureBinding(
        { ...usual, rounds: rounds ?? usual.rounds, ...(skipInstructions && { counted: 0 }) },
        say,
      ),
    );
    write('binding', { ...machine(), ...measured });
  }
  if (only !== 'binding') {
    const { measureOnDevice } = await import('./rxe/run.js');
    const measured = await step('the data path, on a device', (handle) =>
      measureOnDevice(handle, { engine: engine ?? 'auto', rounds: rounds ?? 7, share: share ?? 1 }),
    );
    write(`rxe-${measured.engine ?? 'device'}`, measured);
  }
  const { summarize } = await import('./summary.js');
  const summary = summarize(['binding', 'rxe-uml', 'rxe-qemu', 'rxe-device'].flatMap(read));
  writeFileSync(path.join(results, 'summary.md'), summary);
  console.log(summary);
});

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        engine: { type: 'string' },
        rounds: { type: 'string' },
        share: { type: 'string' },
        'skip-instructions': { type: 'boolean', default: false },
      },
    });
    const number = (/** @type {string | undefined} */ text) =>
      text === undefined ? undefined : Number(text);
    if (values.only !== undefined && !['binding', 'rxe'].includes(values.only))
      throw new Error('--only is binding or rxe');
    return {
      only: values.only,
      engine: values.engine,
      rounds: number(values.rounds),
      share: number(values.share),
      skipInstructions: values['skip-instructions'],
    };
  } catch (error) {
    const usage =
      'npm run bench -- [--only binding|rxe] [--engine host|uml|qemu] [--rounds N] [--share X] [--skip-instructions]';
    throw new StepError(`${/** @type {Error} */ (error).message}\nUsage: ${usage}`);
  }
}

/**
 * @param {string} name
 * @param {object} result
 */
function write(name, result) {
  mkdirSync(results, { recursive: true });
  writeFileSync(path.join(results, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
}

/**
 * @param {string} name
 * @returns {any[]} the result of that name, unless it was never measured
 */
function read(name) {
  const file = path.join(results, `${name}.json`);
  return existsSync(file) ? [JSON.parse(readFileSync(file, 'utf8'))] : [];
}
