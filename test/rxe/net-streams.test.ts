// A connection of node-rdma/net as a stream: whatever takes a Duplex works on it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { buffer, text } from 'node:stream/consumers';
import tls from 'node:tls';
import { createGunzip, createGzip } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pattern } from '../support/device.js';
import { closed, connectedPair } from '../support/net.js';

/** Errors of either stream are taken, as those of the connections are: a test that ends destroys one end before the other. */
async function streams(options = {}) {
  const { client, peer } = await connectedPair(options);
  const [a, b] = [client.toDuplex(), peer.toDuplex()];
  for (const stream of [a, b]) stream.on('error', () => undefined);
  return { client, peer, a, b };
}

it('carries bytes both ways, and ends', async () => {
  const { client, peer, a, b } = await streams();
  const [sent, back] = [pattern(300_000, 1), pattern(100_000, 2)];
  b.end(back);
  a.end(sent);
  const [atB, atA] = await Promise.all([collected(b), collected(a)]);
  expect(atB.equals(sent)).toBe(true);
  expect(atA.equals(back)).toBe(true);
  await Promise.all([closed(client), closed(peer)]);
  expect(client.toDuplex()).toBe(a);
});

it('pieces of every size are one stream, longer ones than a message in frames too', async () => {
  const { a, b } = await streams({ slabBytes: 1024, slots: 4, eagerLimit: 5000 });
  const sizes = [1, 0, 5000, 5001, 7, 40_000, 1019, 1020, 1021];
  const pieces = sizes.map((size, i) => pattern(size, i));
  for (const piece of pieces) a.write(piece);
  a.end();
  expect((await buffer(b)).equals(Buffer.concat(pieces))).toBe(true);
});

it('a gzip pipeline ends with the right checksum', async () => {
  const { a, b } = await streams();
  const source = Array.from({ length: 40 }, (_, i) => pattern(25_000, i));
  const hash = createHash('sha256');
  await Promise.all([
    pipeline(Readable.from(source), createGzip({ level: 1 }), a),
    pipeline(
      b,
      createGunzip(),
      new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          hash.update(chunk);
          done();
        },
      }),
    ),
  ]);
  expect(hash.digest('hex')).toBe(createHash('sha256').update(Buffer.concat(source)).digest('hex'));
});

it('a reader that does not read stops the writer', async () => {
  const { peer, a, b } = await streams({ slots: 2, slabBytes: 1024, highWaterMark: 10_000 });
  let written = 0;
  const writing = (async () => {
    for (let i = 0; i < 100; ++i) {
      if (!a.write(pattern(5000, i))) await once(a, 'drain');
      written += 5000;
    }
    a.end();
  })();
  b.pause();
  while (peer.readableLength < 10_000) await new Promise((resolve) => setTimeout(resolve, 2));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(written).toBeLessThan(250_000);
  const all = await buffer(b);
  await writing;
  expect(all.length).toBe(500_000);
  expect(all.subarray(495_000).equals(pattern(5000, 99))).toBe(true);
});

it('one half can end before the other', async () => {
  const { client, peer } = await connectedPair({ allowHalfOpen: true });
  const [a, b] = [client.toDuplex(), peer.toDuplex()];
  a.end('question');
  expect((await collected(b)).toString()).toBe('question');
  b.end('answer');
  expect((await collected(a)).toString()).toBe('answer');
  await Promise.all([closed(client), closed(peer)]);
});

describe('a failure', () => {
  it('of the peer destroys the stream with the reason', async () => {
    const { a, b } = await streams();
    const failed = once(a, 'error');
    a.resume();
    b.destroy();
    expect(await failed).toEqual([expect.objectContaining({ code: 'ECONNRESET' })]);
    expect(a.destroyed).toBe(true);
  });

  it('of a pipeline closes the connection, which the peer learns', async () => {
    const { client, a, b } = await streams();
    const failed = once(b, 'error');
    b.resume();
    const broken = new Readable({ read: () => broken.destroy(new Error('no more data')) });
    await expect(pipeline(broken, a)).rejects.toThrow('no more data');
    await closed(client);
    expect(await failed).toEqual([expect.objectContaining({ code: 'ECONNRESET' })]);
  });
});

it('HTTP is spoken over it', async () => {
  const { a, b } = await streams();
  const server = http.createServer((request, response) => {
    void buffer(request).then((body) => {
      response.setHeader('x-from', String(request.socket.remoteAddress));
      response.end(`${request.method} ${request.url} ${body.length}`);
    });
  });
  server.emit('connection', b);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  Object.assign(agent, { createConnection: () => a });
  onTestFinished(() => agent.destroy());
  for (const size of [0, 100_000]) {
    const request = http.request({ agent, method: 'POST', path: `/${size}`, host: 'peer' });
    request.end(Buffer.alloc(size, 1));
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    expect(response.statusCode).toBe(200);
    expect(response.headers['x-from']).toBe(process.env.NODE_RDMA_RXE_ADDRESS_A);
    expect(await text(response)).toBe(`POST /${size} ${size}`);
  }
});

it('TLS is spoken over it', async () => {
  const { a, b } = await streams();
  const secure = new tls.TLSSocket(b, { isServer: true, ...certificate() });
  secure.on('error', () => undefined);
  const client = tls.connect({ socket: a, rejectUnauthorized: false, servername: 'peer' });
  const data = pattern(60_000, 5);
  client.write(data);
  secure.pipe(secure);
  const back: Buffer[] = [];
  let length = 0;
  for await (const chunk of client as AsyncIterable<Buffer>) {
    back.push(chunk);
    length += chunk.length;
    if (length === data.length) break;
  }
  expect(Buffer.concat(back).equals(data)).toBe(true);
});

/** All that comes until the end. Iterating over a Duplex, as `stream/consumers` does, would destroy its other half too. */
async function collected(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  return Buffer.concat(chunks);
}

/** A key and a certificate that it has signed itself. */
function certificate(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'node-rdma-tls-'));
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  try {
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const subject = ['-subj', '/CN=peer', '-days', '2', '-keyout', keyFile, '-out', certFile];
    execFileSync('openssl', ['req', '-x509', ...curve, ...subject], { stdio: 'pipe' });
    return { key: readFileSync(keyFile), cert: readFileSync(certFile) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
