// Messages of node-rdma/net: whole, in their order, of all sizes, in both directions, many at a time.
import { describe, expect, it } from 'vitest';
import { pattern } from '../support/device.js';
import { all, closed, connectedPair } from '../support/net.js';

const SLAB = 1024;
const EAGER = 8192;
const small = { slots: 4, slabBytes: SLAB, eagerLimit: EAGER };

it('a message and its answer', async () => {
  const { client, peer } = await connectedPair();
  await client.send('ping');
  expect(await peer.receive({ timeoutMs: 20_000 })).toEqual(Buffer.from('ping'));
  await peer.send(Buffer.from('pong'));
  expect(await client.receive({ timeoutMs: 20_000 })).toEqual(Buffer.from('pong'));
});

it('messages of every size around the bounds keep their bounds and their order', async () => {
  const { client, peer } = await connectedPair(small);
  const room = SLAB - 16 - 4;
  const sizes = [
    0,
    1,
    2,
    room - 1,
    room,
    room + 1,
    0,
    2 * room,
    EAGER - 1,
    EAGER,
    EAGER + 1,
    3,
    40_000,
    0,
    EAGER,
    5,
  ];
  const messages = sizes.map((size, i) => pattern(size, i));
  const sending = Promise.all([...messages.map((message) => client.send(message)), client.end()]);
  const received = await all(peer);
  await sending;
  expect(received.map(({ length }) => length)).toEqual(sizes);
  received.forEach((message, i) => expect(message.equals(messages[i]!), `message ${i}`).toBe(true));
});

it('many small messages at once, both ways', async () => {
  const { client, peer } = await connectedPair({ slots: 4, slabBytes: 512 });
  const count = 500;
  const run = async (from: typeof client, seed: number) => {
    for (let i = 0; i < count; ++i) void from.send(pattern((i * 7) % 100, i + seed));
    await from.end();
  };
  const [atPeer, atClient] = await Promise.all([all(peer), all(client), run(client, 0), run(peer, 5)]);
  for (const [messages, seed] of [
    [atPeer, 0],
    [atClient, 5],
  ] as const) {
    expect(messages.length).toBe(count);
    expect(messages.every((message, i) => message.equals(pattern((i * 7) % 100, i + seed)))).toBe(true);
  }
});

it('the ends of both halves close the connection', async () => {
  const { client, peer } = await connectedPair();
  const seen: string[] = [];
  for (const [name, end] of Object.entries({ client, peer }))
    for (const event of ['end', 'error', 'close'] as const)
      end.on(event, () => seen.push(`${name} ${event}`));
  await client.end('the last one');
  expect(client.readyState).toBe('readOnly');
  expect(await all(peer)).toEqual([Buffer.from('the last one')]);
  expect(await client.receive({ timeoutMs: 20_000 })).toBeUndefined();
  await Promise.all([closed(client), closed(peer)]);
  expect(seen.sort()).toEqual(['client close', 'client end', 'peer close', 'peer end']);
  await expect(client.send('more')).rejects.toMatchObject({ code: 'EPIPE' });
  await expect(client.end('more')).rejects.toMatchObject({ code: 'EPIPE' });
});

it('one half can end, and the other one go on', async () => {
  const { client, peer } = await connectedPair({ allowHalfOpen: true });
  await client.end('question');
  expect(await all(peer)).toEqual([Buffer.from('question')]);
  expect([client.readyState, peer.readyState]).toEqual(['readOnly', 'writeOnly']);
  await peer.end('answer');
  expect(await all(client)).toEqual([Buffer.from('answer')]);
  await Promise.all([closed(client), closed(peer)]);
});

describe('back-pressure', () => {
  it('a reader that does not read stops its peer, and nothing is lost', async () => {
    const { client, peer } = await connectedPair({ slots: 4, slabBytes: 1024, highWaterMark: 4096 });
    const count = 60;
    let accepted = 0;
    for (let i = 0; i < count; ++i) void client.send(pattern(1000, i)).then(() => ++accepted);
    expect(client.writableNeedDrain).toBe(true);
    expect(client.writableLength).toBeGreaterThan(40_000);
    const drained = new Promise((resolve) => client.once('drain', () => resolve(undefined)));
    // The peer is alive, and its memory is full: what is accepted comes to a stop.
    await until(() => peer.readableLength >= 4096);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const stopped = accepted;
    expect(stopped).toBeLessThan(20);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(accepted).toBe(stopped);
    const ended = client.end();
    const messages = await all(peer);
    expect(messages.every((message, i) => message.equals(pattern(1000, i)))).toBe(true);
    expect(messages.length).toBe(count);
    await Promise.all([ended, drained]);
    expect(client.writableLength).toBe(0);
  });

  it('an empty message counts', async () => {
    const { client, peer } = await connectedPair({ slots: 2, slabBytes: 256, highWaterMark: 1000 });
    for (let i = 0; i < 2000; ++i) void client.send('');
    await until(() => peer.readableLength >= 1000);
    expect(peer.readableLength).toBeLessThan(10_000);
    void client.end();
    expect((await all(peer)).length).toBe(2000);
  });
});

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('it did not come to be');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
