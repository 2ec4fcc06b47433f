// Sends files: with a progress bar, a checksum, and from where an earlier attempt stopped.
//   node file-transfer.mjs serve ADDRESS FOLDER [PORT]
//   node file-transfer.mjs ADDRESS PORT FILE...
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { connect, createServer } from 'node-rdma/net';

const PIECE = 2 ** 20;
const [first, ...rest] = process.argv.slice(2);
if (rest.length < 2)
  throw new Error('usage: node file-transfer.mjs serve ADDRESS FOLDER [PORT] | ADDRESS PORT FILE...');

const json = (value) => JSON.stringify(value);
const sizeOf = async (file) => (await stat(file).catch(() => ({ size: 0 }))).size;

async function checksum(file) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: PIECE }), hash);
  return hash.digest('hex');
}

async function receiveFile(connection, { name, size, sha256 }, folder) {
  const file = join(folder, basename(name));
  const part = `${file}.part`;
  let length = await sizeOf(part);
  if (length > size) await rm(part).then(() => (length = 0));
  await connection.send(json({ from: length }));
  const out = createWriteStream(part, { flags: 'a' });
  while (length < size) {
    const piece = await connection.receive();
    if (piece === undefined)
      throw new Error(`${name}: the client has ended after ${length} of ${size} bytes`);
    length += piece.length;
    if (!out.write(piece)) await new Promise((resolve) => out.once('drain', resolve));
  }
  await new Promise((resolve) => out.end(resolve));
  const right = (await checksum(part)) === sha256;
  if (right) await rename(part, file);
  else await rm(part);
  await connection.send(json(right ? { done: sha256 } : { failed: 'the checksum is wrong' }));
  console.log(right ? `${name}: ${size} bytes, ${sha256}` : `${name}: the checksum is wrong`);
}

async function serve(host, folder, port = 7471) {
  const server = createServer(async (connection) => {
    connection.on('error', ({ message }) => console.error(message));
    try {
      for await (const request of connection) await receiveFile(connection, JSON.parse(request), folder);
    } catch ({ message }) {
      console.error(message);
      connection.destroy();
    }
  });
  await server.listen({ host, port: Number(port) });
  console.log(`listening on ${host}:${server.address().port}`);
}

async function sendFile(connection, file) {
  const [size, sha256] = [await sizeOf(file), await checksum(file)];
  await connection.send(json({ name: basename(file), size, sha256 }));
  const { from } = JSON.parse(await connection.receive());
  if (from > 0) console.log(`${basename(file)}: going on from byte ${from}`);
  const bar = progressBar(basename(file), size);
  const handle = await open(file);
  // In memory that is registered already the pieces go without a copy. Two: one is read while the other one is sent.
  const memory = await connection.alloc(2 * PIECE);
  const sent = [Promise.resolve(), Promise.resolve()];
  try {
    for (let at = from, turn = 0; at < size; turn = 1 - turn) {
      await sent[turn];
      const { bytesRead } = await handle.read(memory.buffer, turn * PIECE, PIECE, at);
      sent[turn] = connection.send(memory.slice(turn * PIECE, bytesRead));
      at += bytesRead;
      bar(at);
    }
    await Promise.all(sent);
  } finally {
    await handle.close();
  }
  const answer = JSON.parse(await connection.receive());
  memory.close();
  if (answer.done !== sha256) throw new Error(`${file}: ${answer.failed}`);
  console.log(`${basename(file)}: ${size} bytes, ${sha256}`);
}

/** Shown where somebody looks. */
function progressBar(name, size) {
  const began = performance.now();
  return (done) => {
    if (!process.stderr.isTTY) return;
    const full = Math.round((30 * done) / size);
    const speed = (done / 1e3 / (performance.now() - began)).toFixed(1);
    const end = done === size ? '\n' : '';
    process.stderr.write(`\r${name} [${'#'.repeat(full)}${'.'.repeat(30 - full)}] ${speed} MB/s ${end}`);
  };
}

if (first === 'serve') {
  await serve(...rest);
} else {
  const localAddress = process.env.NODE_RDMA_RXE_ADDRESS_A;
  const connection = await connect({ host: first, port: Number(rest[0]), localAddress });
  for (const file of rest.slice(1)) await sendFile(connection, file);
  await connection.end();
}
