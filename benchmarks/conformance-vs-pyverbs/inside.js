// @ts-check
// The part on the device: theirs.py in a process of its own, ours.js here, and the table of both.
import Table from 'cli-table3';
import { spawnSync } from 'node:child_process';
import { release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { ours } from './ours.js';

/** Debian's own, for which it has pyverbs. */
const python = '/usr/bin/python3';
const { stdout, stderr, status } = spawnSync(python, [fileURLToPath(new URL('theirs.py', import.meta.url))], {
  encoding: 'utf8',
  timeout: 240_000,
});
const theirs = new Map(
  stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line)),
);
if (status !== 0) process.stderr.write(`theirs.py ended with ${status}: ${stderr}\n`);

const table = new Table({
  head: ['capability', 'pyverbs', 'node-rdma'],
  style: { head: [], border: [], compact: true },
});
let missing = status === 0 ? 0 : 1;
for (const [capability, work] of Object.entries(ours)) {
  const their = theirs.get(capability) ?? 'not tried';
  const our = await work().then(
    () => 'yes',
    (/** @type {any} */ error) => error.status ?? error.code ?? error.message,
  );
  table.push([capability, their, our]);
  if (their === 'not tried' || (their === 'yes' && our !== 'yes')) ++missing;
}
for (const capability of theirs.keys())
  if (!(capability in ours)) {
    table.push([capability, theirs.get(capability), 'not tried']);
    ++missing;
  }
console.log(`Linux ${release()}:\n${table.toString()}`);
console.log(
  missing === 0
    ? 'Whatever pyverbs can do here, node-rdma can.'
    : `${missing} that pyverbs can do, or that were not tried at both sides.`,
);
process.exitCode = missing === 0 ? 0 : 1;
