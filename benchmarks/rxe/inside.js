// @ts-check
// inside.js ROUNDS SHARE [NAME…]: runs where the two devices are, and prints the figures of all rounds as JSON. One program after the
// other measures the same thing, and so in each round. SHARE of the usual number of messages; NAME: those measures only.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { built } from '../build.js';
import { machine, python } from '../common.js';
import { measures } from './plan.js';

const [rounds = 7, share = 1] = process.argv.slice(2, 4).map(Number);
const wanted = process.argv.slice(4);
const devices = [process.env.NODE_RDMA_RXE_DEVICE_A ?? '', process.env.NODE_RDMA_RXE_DEVICE_B ?? ''];
const script = (/** @type {string} */ name) => path.join(import.meta.dirname, name);

/** @type {Record<import('./plan.js').Who, string[]>} */
const programs = {
  c: [built('device'), ...devices],
  ring: [process.execPath, script('bench.js'), 'ring', ...devices],
  objects: [process.execPath, script('bench.js'), 'objects', ...devices],
  pyverbs: [python, script('bench.py'), ...devices],
};

/** A program that waits for commands. */
class Program {
  /** @param {string[]} command */
  constructor([file = '', ...args]) {
    this.name = path.basename(file);
    this.child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.answers = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  /**
   * @param {string} command
   * @returns {Promise<number>}
   */
  async measure(command) {
    this.child.stdin.write(`${command}\n`);
    const { value, done } = await this.answers.next();
    if (done) throw new Error(`${this.name} has ended without an answer to: ${command}`);
    return Number(value);
  }

  stop() {
    this.child.stdin.end();
  }
}

const running = new Map(Object.entries(programs).map(([who, command]) => [who, new Program(command)]));
/** @type {Record<string, Record<string, number[]>>} */
const figures = {};
for (let round = 0; round <= rounds; ++round) {
  for (const { name, command, messages, unit, bytes, by } of measures) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    process.stderr.write(`round ${round} of ${rounds}: ${name}\n`);
    const scaled = unit === 'ms' ? messages : Math.max(Math.round(messages * share), 1);
    for (const who of by) {
      const program = /** @type {Program} */ (running.get(who));
      const figure = await program.measure(command.replace('{messages}', String(scaled)));
      // The first round is there to warm up.
      if (round > 0)
        ((figures[name] ??= {})[who] ??= []).push(unit === 'MiB/s' ? (figure * bytes) / 2 ** 20 : figure);
    }
  }
}
for (const program of running.values()) program.stop();
console.log(JSON.stringify({ ...machine(), engine: process.env.NODE_RDMA_RXE_ENGINE ?? null, figures }));
