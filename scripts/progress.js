// @ts-check
// Tells on standard error what a long job is doing: one line a step, with its time; signs of life while it lasts.
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

export const root = fileURLToPath(new URL('..', import.meta.url));
const logFolder = path.join(root, 'build', 'log');
const LIFE_EVERY_MS = 15_000;
const TAIL_LINES = 80;

/** A step that failed in a way that its message explains; no stack is needed. */
export class StepError extends Error {}

/**
 * @typedef {object} Step
 * @property {(line: string) => void} say shows that the step lives; the newest line wins
 * @property {(command: string, args: string[], options?: { env?: NodeJS.ProcessEnv, holds?: number }) => Promise<string>} run
 *   runs a command with its output in the step's log; resolves to what it wrote to standard output. The command inherits
 *   `holds`, a descriptor, and so the lock on it.
 */

/**
 * Runs one step.
 * @template T
 * @param {string} title
 * @param {(step: Step) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const began = performance.now();
  const elapsed = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  const terminal = process.stderr.isTTY;
  const clear = () => terminal && process.stderr.write('\r\x1b[K');
  let news = '';

  const live = () => {
    const text = `  … ${title} (${elapsed()})${news && `: ${news}`}`;
    if (!terminal) process.stderr.write(`${text}\n`);
    else process.stderr.write(`\r\x1b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
  };
  const timer = setInterval(live, terminal ? 200 : LIFE_EVERY_MS);
  if (terminal) live();

  const log = path.join(logFolder, `${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.log`);
  mkdirSync(logFolder, { recursive: true });
  const descriptor = openSync(log, 'w'); // kept open: node-gyp may delete the folder under it
  /** @type {Step} */
  const handle = {
    say: (line) => (news = stripVTControlCharacters(line).trim()),
    run: (command, args, options) =>
      runLogged(command, args, { log, descriptor, say: handle.say, ...options }),
  };
  try {
    const result = await work(handle);
    clear();
    process.stderr.write(`  ✓ ${title} (${elapsed()})\n`);
    return result;
  } catch (error) {
    clear();
    process.stderr.write(`  ✗ ${title} (${elapsed()})\n`);
    throw error;
  } finally {
    clearInterval(timer);
    closeSync(descriptor);
  }
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {{ log: string, descriptor: number, say: (line: string) => void, env?: NodeJS.ProcessEnv, holds?: number }} options
 * @returns {Promise<string>}
 */
function runLogged(command, args, { log, descriptor, say, env = process.env, holds }) {
  writeSync(descriptor, `$ ${[command, ...args].join(' ')}\n`);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'pipe', holds ?? 'ignore'],
    });
    let stdout = '';
    let output = '';
    const heed = (/** @type {string} */ text) => {
      output += text;
      writeSync(descriptor, text);
      const line = text.split(/[\r\n]+/).findLast((part) => part.trim());
      if (line) say(line);
    };
    child.stdout?.setEncoding('utf8').on('data', (text) => ((stdout += text), heed(text)));
    child.stderr?.setEncoding('utf8').on('data', heed);
    child.on('error', (error) => reject(new StepError(`${command} does not start: ${error.message}`)));
    child.on('close', (status, signal) => {
      if (status === 0) return resolve(stdout);
      const how = signal ? `was ended by ${signal}` : `failed with status ${status}`;
      const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
      reject(
        new StepError(
          `${tail}\n\n${command} ${how}. All of its output: ${path.relative(process.cwd(), log)}`,
        ),
      );
    });
  });
}

/**
 * Runs a script's main function; what it throws ends the process with status 1.
 * @param {() => Promise<number | void>} main resolves to the exit status, 0 by default
 */
export async function runMain(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    process.stderr.write(
      `\n${error instanceof StepError ? error.message : /** @type {Error} */ (error).stack}\n`,
    );
    process.exitCode = 1;
  }
}

/**
 * Runs a command on the caller's own terminal. Ctrl-C reaches it by itself; SIGTERM is passed on.
 * @param {string[]} command
 * @param {{ env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<number>} its exit status, 128 and the number for a signal
 */
export function runInForeground([command, ...args], { env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(/** @type {string} */ (command), args, { cwd: root, env, stdio: 'inherit' });
    const wait = () => {};
    const pass = () => child.kill('SIGTERM');
    process.on('SIGINT', wait).on('SIGTERM', pass);
    child.on('error', (error) => reject(new StepError(`${command} does not start: ${error.message}`)));
    child.on('close', (status, signal) => {
      process.off('SIGINT', wait).off('SIGTERM', pass);
      resolve(status ?? 128 + (signal ? constants.signals[signal] : 0));
    });
  });
}
