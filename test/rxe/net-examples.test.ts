// The examples of node-rdma/net, both ends as programs of their own.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { addressA, addressB } from '../support/cm.js';
import { pattern } from '../support/device.js';
import { listeningOnCm, startWorker, written } from '../support/programs.js';

const file = (name: string) => `${import.meta.dirname}/../../examples/net/${name}.mjs`;
const PORT = 7480;

async function serve(name: string, ...args: (string | number)[]): Promise<void> {
  await listeningOnCm(startWorker(file(name), ['serve', addressB, ...args]), PORT);
}

async function client(name: string, ...args: (string | number)[]): Promise<string> {
  const ended = await startWorker(file(name), [addressB, PORT, ...args]).ended;
  expect(ended, ended.stderr).toMatchObject({ status: 0, stderr: '' });
  return ended.stdout;
}

it('echo', async () => {
  await serve('echo', PORT);
  expect(await client('echo', 'one', 'two', 'three')).toBe('one\ntwo\nthree\n');
});

it('a file transfer goes on where it stopped, and is checked', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'node-rdma-files-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const target = join(folder, 'target');
  mkdirSync(target);
  const bytes = pattern(2_500_000, 7);
  const sum = createHash('sha256').update(bytes).digest('hex');
  writeFileSync(join(folder, 'data.bin'), bytes);
  writeFileSync(join(target, 'data.bin.part'), bytes.subarray(0, 1_000_000));
  await serve('file-transfer', target, PORT);
  expect(await client('file-transfer', join(folder, 'data.bin'))).toBe(
    `data.bin: going on from byte 1000000\ndata.bin: 2500000 bytes, ${sum}\n`,
  );
  expect(readFileSync(join(target, 'data.bin')).equals(bytes)).toBe(true);
  expect(existsSync(join(target, 'data.bin.part'))).toBe(false);
});

it('a key-value store', async () => {
  await serve('key-value', PORT);
  expect(await client('key-value', 'set', 'colour', 'green')).toBe('stored\n');
  expect(await client('key-value', 'get', 'colour', 'shape')).toBe('colour: green\nshape: (not there)\n');
});

it('publish and subscribe', async () => {
  const group = ['239.7.7.20', PORT];
  const subscriber = startWorker(file('publish-subscribe'), ['subscribe', addressB, ...group, 2]);
  await written(subscriber, 'subscribed');
  const publisher = await startWorker(file('publish-subscribe'), [
    'publish',
    addressA,
    ...group,
    'one',
    'two',
  ]).ended;
  expect(publisher, publisher.stderr).toMatchObject({ status: 0 });
  expect((await subscriber.ended).stdout).toBe(
    `subscribed to 239.7.7.20:${PORT}\n${addressA}: one\n${addressA}: two\n`,
  );
});

it('HTTP', async () => {
  await serve('http', PORT);
  expect(await client('http', '/', '/more')).toBe(
    `200 GET / from ${addressA}\n200 GET /more from ${addressA}\n`,
  );
});
