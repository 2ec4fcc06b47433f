// Many connections of node-rdma/net, and what is left of them: nothing.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { connect, createSocket, type Connection } from '../../lib/net/index.js';
import { addressA, addressB } from '../support/cm.js';
import { closed, connectedPair, connecting, listening } from '../support/net.js';

const small = { slots: 2, slabBytes: 1024 };

/** What the kernel holds, by kind and device. Nothing else runs meanwhile. */
function held(): string {
  return execFileSync('rdma', ['resource', 'show'], { encoding: 'utf8' });
}

const echo = async (connection: Connection) => {
  for await (const message of connection) await connection.send(message);
};

describe('nothing is left', () => {
  it('of connections that are opened and closed in a loop', async () => {
    const before = held();
    const server = await listening(small, (connection) => void echo(connection));
    for (let i = 0; i < 15; ++i) {
      const client = await connecting(server, small);
      await client.end(`message ${i}`);
      expect(await client.receive({ timeoutMs: 20_000 })).toEqual(Buffer.from(`message ${i}`));
      expect(await client.receive({ timeoutMs: 20_000 })).toBeUndefined();
      await closed(client);
    }
    await server.close();
    expect(server.connections.size).toBe(0);
    expect(held()).toEqual(before);
  });

  it('of many at once', async () => {
    const before = held();
    const server = await listening(small, (connection) => void echo(connection));
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const client = await connecting(server, { ...small, timeoutMs: 60_000 });
        await client.send(`message ${i}`);
        const answer = await client.receive({ timeoutMs: 60_000 });
        await client.end();
        await closed(client);
        return answer?.toString();
      }),
    );
    expect(answers).toEqual(Array.from({ length: 40 }, (_, i) => `message ${i}`));
    await server.close();
    expect(held()).toEqual(before);
  });

  it('of connections that are destroyed in the middle of everything', async () => {
    const before = held();
    const server = await listening({ ...small, eagerLimit: 1000 }, (connection) => {
      connection.on('error', () => undefined);
      void echo(connection).catch(() => undefined);
    });
    await Promise.all(
      Array.from({ length: 10 }, async (_, i) => {
        const client = await connecting(server, { ...small, eagerLimit: 1000 });
        client.on('error', () => undefined);
        const memory = await client.alloc(5000);
        for (let k = 0; k < 10; ++k) void client.send(k % 2 === 0 ? Buffer.alloc(3000) : memory);
        const token = client.export(memory);
        void client.read(token).catch(() => undefined);
        const dead = closed(client);
        setTimeout(() => client.destroy(), i % 5);
        await dead;
      }),
    );
    server.closeAllConnections();
    await server.close();
    expect(held()).toEqual(before);
  });

  it('of connects that fail', async () => {
    const before = held();
    await Promise.allSettled(
      Array.from({ length: 10 }, () =>
        connect({ host: addressB, port: 9, localAddress: addressA, ...small }),
      ),
    );
    expect(held()).toEqual(before);
  });

  it('of sockets for datagrams', async () => {
    const before = held();
    const [a, b] = [createSocket(), createSocket()];
    await b.bind({ host: addressB });
    await a.send('x', { host: addressB, port: b.address().port }).catch(() => undefined);
    await a.addMembership('239.7.7.9');
    await Promise.all([a.close(), b.close()]);
    expect(held()).toEqual(before);
  });
});

it('closing a server waits for its connections', async () => {
  const { client, server } = await connectedPair();
  let over = false;
  const closing = server.close().then(() => (over = true));
  await client.send('still');
  expect([over, server.listening, server.connections.size]).toEqual([false, false, 1]);
  await expect(connecting(server).catch(() => 'refused')).resolves.toBe('refused');
  client.destroy();
  await closing;
  expect(server.connections.size).toBe(0);
});

it('an end of a scope ends the connection, with all that was sent arrived', async () => {
  const { client, peer } = await connectedPair();
  for (let i = 0; i < 20; ++i) void client.send(Buffer.alloc(3000, i));
  await client[Symbol.asyncDispose]();
  expect(client.closed).toBe(true);
  const messages: Buffer[] = [];
  for await (const message of peer) messages.push(message);
  expect(messages.length).toBe(20);
});

it('a listener may wait for a connection with once()', async () => {
  const server = await listening();
  const accepted = once(server, 'connection') as Promise<[Connection]>;
  const client = await connecting(server);
  const [peer] = await accepted;
  expect([peer.remoteAddress, peer.localPort]).toEqual([addressA, server.address()!.port]);
  expect([client.remoteAddress, client.remotePort]).toEqual([addressB, server.address()!.port]);
  expect(client.address()).toMatchObject({ address: addressA, family: 'IPv4' });
});
