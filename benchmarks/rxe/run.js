// @ts-check
// The data path on a device, against C and pyverbs.
import path from 'node:path';
import { onDevice } from '../../scripts/setup.js';
import { StepError } from '../../scripts/progress.js';
import { median } from '../common.js';
import { measures } from './plan.js';

/** Seconds after which something hangs. */
const deadline = 900;

/**
 * @param {import('../../scripts/progress.js').Step} step
 * @param {{ engine: string, rounds: number, share: number }} options
 */
export async function measureOnDevice({ run }, { engine, rounds, share }) {
  const inside = [
    process.execPath,
    path.join(import.meta.dirname, 'inside.js'),
    String(rounds),
    String(share),
  ];
  const [program = '', ...args] = onDevice(inside, ['--engine', engine, '--timeout', String(deadline)]);
  const printed = (await run(program, args)).trim().split('\n').at(-1) ?? '';
  if (!printed.startsWith('{'))
    throw new StepError(`the programs on the device have printed no result: ${printed}`);
  const { figures, ...where } = JSON.parse(printed);
  return {
    ...where,
    measures: measures
      .filter(({ name }) => figures[name])
      .map(({ name, title, unit, least, most, by }) => ({
        name,
        title,
        unit,
        ...(least !== undefined && { least }),
        ...(most !== undefined && { most }),
        of: Object.fromEntries(
          by.map((who) => [who, { median: median(figures[name][who]), runs: figures[name][who] }]),
        ),
      })),
  };
}
