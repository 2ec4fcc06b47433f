// @ts-check
// inside.js ROUNDS SHARE [NAME…]: runs where the two devices are, and prints the figures of all rounds as JSON. One measures after the
// other, and so in each round. SHARE of the usual number of messages; NAME: those measures only.
import { release, cpus } from 'node:os';
import { measureNet, measureRing } from './bench.js';
import { measureC, measureRstream } from './others.js';
import { measures } from './plan.js';
import { measureConnects } from './storm.js';

const [rounds = 5, share = 1] = process.argv.slice(2, 4).map(Number);
const wanted = process.argv.slice(4);

/** @type {Record<string, Record<string, number[]>>} */
const figures = {};
for (let round = 0; round <= rounds; ++round) {
  for (const { name, by, unit, ...work } of measures) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    process.stderr.write(`round ${round} of ${rounds}: ${name}\n`);
    const messages = Math.max(Math.round(work.messages * share), 1);
    for (const who of by) {
      const seconds = await measure(who, { ...work, messages });
      // The first round is there to warm up. What does not run here has no figure.
      if (round === 0 || seconds === undefined) continue;
      const figure = (unit === 'MB/s' ? (messages * work.bytes) / 1e6 : messages) / seconds;
      ((figures[name] ??= {})[who] ??= []).push(figure);
    }
  }
}
const connects =
  wanted.length === 0 || wanted.includes('connects')
    ? await measureConnects({ inTurn: Math.ceil(500 * share), atOnce: Math.ceil(200 * share) })
    : undefined;
console.log(
  JSON.stringify({
    date: new Date().toISOString(),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    processors: cpus().length,
    kernel: release(),
    node: process.version,
    engine: process.env.NODE_RDMA_RXE_ENGINE ?? null,
    figures,
    connects,
  }),
);

/**
 * @param {import('./plan.js').Who} who
 * @param {import('./bench.js').Work} work
 * @returns {Promise<number | undefined>}
 */
function measure(who, work) {
  switch (who) {
    case 'ring':
      return measureRing(work);
    case 'c':
      return measureC(work);
    case 'rstream':
      return measureRstream(work);
    default:
      return measureNet(who, work);
  }
}
