// A key-value store whose clients read its memory themselves: a get is one RDMA READ, in which the server's program has no part.
//   node key-value.mjs serve ADDRESS [PORT]
//   node key-value.mjs ADDRESS PORT set KEY VALUE | get KEY...
import { connect, createServer, RemoteMemory } from 'node-rdma/net';

// The table is a row of entries. One is: version (4 bytes), lengths of key and value (2 and 2), key, value, and in its last 4 bytes the
// version once more. A reader that finds two versions, or an odd one, has met a writer and reads again.
const ENTRY = 256;
const ENTRIES = 4096;
/** A key is in one of so many entries from its own place on: one READ has them all. */
const REACH = 8;

function placeOf(key) {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(key)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % (ENTRIES - REACH);
}

function entryOf(bytes) {
  const version = bytes.readUInt32LE(0);
  if (version % 2 === 1 || version !== bytes.readUInt32LE(ENTRY - 4)) return 'being written';
  const [keyLength, valueLength] = [bytes.readUInt16LE(4), bytes.readUInt16LE(6)];
  const key = bytes.toString('utf8', 8, 8 + keyLength);
  return { version, key, value: bytes.toString('utf8', 8 + keyLength, 8 + keyLength + valueLength) };
}

function set(table, key, value) {
  const [keyBytes, valueBytes] = [Buffer.from(key), Buffer.from(value)];
  if (8 + keyBytes.length + valueBytes.length > ENTRY - 4) return 'too long';
  const first = placeOf(key);
  const places = Array.from({ length: REACH }, (_, i) =>
    table.subarray((first + i) * ENTRY, (first + i + 1) * ENTRY),
  );
  const entry =
    places.find((place) => entryOf(place).key === key) ??
    places.find((place) => entryOf(place).version === 0);
  if (entry === undefined) return 'no room';
  const version = entry.readUInt32LE(0);
  entry.writeUInt32LE(version + 1, 0);
  entry.writeUInt16LE(keyBytes.length, 4);
  entry.writeUInt16LE(valueBytes.length, 6);
  keyBytes.copy(entry, 8);
  valueBytes.copy(entry, 8 + keyBytes.length);
  entry.writeUInt32LE(version + 2, ENTRY - 4);
  entry.writeUInt32LE(version + 2, 0);
  return 'stored';
}

async function serve(host, port = 7471) {
  const server = createServer(async (connection) => {
    connection.on('error', ({ message }) => console.error(message));
    await connection.send(connection.export(table).toBuffer());
    for await (const request of connection) {
      const { key, value } = JSON.parse(request);
      await connection.send(set(table.buffer, key, value));
    }
  });
  await server.listen({ host, port: Number(port) });
  const table = await server.alloc(ENTRIES * ENTRY, { rights: ['read'] });
  console.log(`listening on ${host}:${server.address().port}`);
}

async function get(connection, table, key) {
  for (;;) {
    const bytes = await connection.read(table, { offset: placeOf(key) * ENTRY, length: REACH * ENTRY });
    const entries = Array.from({ length: REACH }, (_, i) =>
      entryOf(bytes.subarray(i * ENTRY, (i + 1) * ENTRY)),
    );
    const found = entries.find((entry) => entry.key === key);
    if (found !== undefined || !entries.includes('being written')) return found?.value;
  }
}

const [first, ...rest] = process.argv.slice(2);
if (first === 'serve' && rest.length > 0) {
  await serve(...rest);
} else {
  const [port, what, ...words] = rest;
  if (words.length === 0)
    throw new Error(
      'usage: node key-value.mjs serve ADDRESS [PORT] | ADDRESS PORT set KEY VALUE | get KEY...',
    );
  const localAddress = process.env.NODE_RDMA_RXE_ADDRESS_A;
  const connection = await connect({ host: first, port: Number(port), localAddress });
  const table = RemoteMemory.from(await connection.receive());
  if (what === 'set') {
    await connection.send(JSON.stringify({ key: words[0], value: words[1] }));
    console.log(String(await connection.receive()));
  } else {
    const values = await Promise.all(words.map((key) => get(connection, table, key)));
    words.forEach((key, i) => console.log(`${key}: ${values[i] ?? '(not there)'}`));
  }
  await connection.end();
}
