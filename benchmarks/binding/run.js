// @ts-check
// How fast the binding itself is: the same loops in JavaScript, C and Python on a provider that does nothing.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { StepError } from '../../scripts/progress.js';
import { built } from '../build.js';
import { median, python } from '../common.js';

const folder = import.meta.dirname;

/** @typedef {'ours' | 'c' | 'pyverbs'} Who */

/** @type {Record<Who, string[]>} */
const programs = {
  ours: [process.execPath, path.join(folder, 'loop.js')],
  c: [built('loop')],
  pyverbs: [python, path.join(folder, 'loop.py')],
};
/** @typedef {'batch' | 'single' | 'prepared' | 'objects' | 'empty'} Path */

/**
 * What is measured, with the targets in nanoseconds.
 * Instructions are counted where it is `counted`: under callgrind Node alone takes ten seconds to start.
 * @type {Record<Path, { title: string, target: number, counted?: boolean }>}
 */
export const paths = {
  batch: { title: 'ring, batches of 32, RDMA WRITE, post and poll', target: 40, counted: true },
  single: { title: 'ring, one at a time, post and poll', target: 150 },
  prepared: { title: 'prepared request, one at a time, post and poll', target: 120 },
  objects: { title: 'qp.postSend({…}) and cq.poll() as objects', target: 300, counted: true },
  empty: { title: 'empty poll', target: 40 },
};
const names = /** @type {Path[]} */ (Object.keys(paths));

/**
 * @typedef {object} Effort
 * @property {readonly Who[]} by
 * @property {number} rounds of all programs, one after the other
 * @property {number} samples of a program in one round
 * @property {number} operations of a sample; for Python a tenth
 * @property {number} counted operations whose instructions are counted; 0 leaves them out
 * @property {number} heap operations whose memory is counted
 * @property {number} queuePairs whose memory is counted
 */

/** @type {Effort} */
export const usual = {
  by: ['ours', 'c', 'pyverbs'],
  rounds: 7,
  samples: 5,
  operations: 320_000,
  counted: 32_000,
  heap: 1_000_000,
  queuePairs: 1024,
};

/**
 * @param {Effort} effort
 * @param {(news: string) => void} say
 */
export function measureBinding(effort, say) {
  const runs = timed(effort, say);
  const figuresOf = (/** @type {Path} */ name) =>
    fromNames(effort.by, (who) => ({ nanoseconds: median(runs[name][who]), runs: runs[name][who] }));
  const measured = fromNames(names, (name) => ({
    ...paths[name],
    figures: figuresOf(name),
    instructions: paths[name].counted ? instructions(name, effort.counted, say) : null,
  }));
  say('memory');
  /** @returns {{ bytes: number, collections: number }} */
  const heapOf = (/** @type {Path} */ name) => script('heap.js', name, String(effort.heap));
  /** @type {{ heap: number, all: number }} */
  const queuePair = script('queue-pairs.js', String(effort.queuePairs));
  return {
    paths: measured,
    heap: { operations: effort.heap, bytes: fromNames(['batch', 'single', 'empty'], heapOf) },
    queuePair,
  };
}

/**
 * Nanoseconds per operation of each run. The programs take turns, so that what slows the machine down meets them all.
 * @param {Effort} effort
 * @param {(news: string) => void} say
 */
function timed({ by, rounds, samples, operations }, say) {
  const runs = fromNames(names, () => fromNames(by, () => /** @type {number[]} */ ([])));
  for (let round = 1; round <= rounds; ++round) {
    for (const name of names) {
      say(`round ${round} of ${rounds}, ${name}`);
      for (const who of by) {
        const count = who === 'pyverbs' ? Math.ceil(operations / 640) * 32 : operations;
        const figures = onNullProvider([...programs[who], name, String(count), String(samples)]);
        runs[name][who].push(/** @type {number} */ (median(figures)));
      }
    }
  }
  return runs;
}

/**
 * @template {string} Name
 * @template T
 * @param {readonly Name[]} list
 * @param {(name: Name) => T} make
 */
function fromNames(list, make) {
  return /** @type {Record<Name, T>} */ (Object.fromEntries(list.map((name) => [name, make(name)])));
}

/**
 * Instructions per operation as callgrind counts them: what twice as many operations take more.
 * @param {Path} name
 * @param {number} operations
 * @param {(news: string) => void} say
 */
function instructions(name, operations, say) {
  if (operations === 0) return null;
  const count = (/** @type {string[]} */ program) => {
    const of = (/** @type {number} */ many) => callgrind([...program, name, String(many), '1']);
    return (of(2 * operations) - of(operations)) / operations;
  };
  say(`instructions, ${name}`);
  const [node = '', ...rest] = programs.ours;
  // Otherwise other threads compile and collect at their own times.
  return { ours: count([node, '--single-threaded', ...rest]), c: count(programs.c) };
}

/**
 * @param {string[]} command
 * @returns {number}
 */
function callgrind(command) {
  const { stderr } = run(
    ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', ...command],
    providerEnvironment(),
  );
  const collected = /Collected : (\d+)/.exec(stderr)?.[1];
  if (collected === undefined) throw new StepError(`callgrind has counted nothing:\n${stderr}`);
  return Number(collected);
}

/**
 * @param {string} name
 * @param {string[]} args
 * @returns {any}
 */
function script(name, ...args) {
  return onNullProvider([process.execPath, '--expose-gc', path.join(folder, name), ...args]);
}

/** @param {string[]} command */
function onNullProvider(command) {
  return JSON.parse(run(command, providerEnvironment()).stdout);
}

/** The provider comes before libibverbs, and before what is to be loaded already (the runtime of a sanitizer) behind that. */
export function providerEnvironment() {
  const preloaded = [process.env.LD_PRELOAD, built('null-provider.so')].filter(Boolean).join(':');
  return { ...process.env, LD_PRELOAD: preloaded };
}

/**
 * @param {string[]} command
 * @param {NodeJS.ProcessEnv} env
 */
function run([program = '', ...args], env) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { env, encoding: 'utf8' });
  if (error) throw new StepError(`${program} does not start: ${error.message}`);
  if (status !== 0) throw new StepError(`${[program, ...args].join(' ')} failed:\n${stdout}${stderr}`);
  return { stdout, stderr };
}
