// Long messages of node-rdma/net, which the receiver reads from where they lie.
import { describe, expect, it } from 'vitest';
import { pattern } from '../support/device.js';
import { all, closed, connectedPair } from '../support/net.js';

const MIB = 2 ** 20;

it('long and short messages keep their order, both ways at once', async () => {
  const { client, peer } = await connectedPair({ eagerLimit: 10_000, slabBytes: 4096, slots: 8 });
  const sizes = [10_001, 3, 300_000, 0, 10_000, MIB + 5, 70_000, 1];
  const messages = sizes.map((size, i) => pattern(size, i));
  const run = async (from: typeof client) => {
    for (const message of messages) void from.send(message);
    await from.end();
  };
  const [atPeer, atClient] = await Promise.all([all(peer), all(client), run(client), run(peer)]);
  for (const received of [atPeer, atClient]) {
    expect(received.map(({ length }) => length)).toEqual(sizes);
    expect(received.every((message, i) => message.equals(messages[i]!))).toBe(true);
  }
  await Promise.all([closed(client), closed(peer)]);
});

it('a message may be changed when its send has resolved, and has arrived as it was', async () => {
  const { client, peer } = await connectedPair({ eagerLimit: 1000 });
  const data = pattern(50_000, 1);
  const sending = client.send(data);
  const received = peer.receive({ timeoutMs: 20_000 });
  await sending;
  data.fill(0);
  expect((await received)!.equals(pattern(50_000, 1))).toBe(true);
});

describe('registered memory', () => {
  it('is sent from where it lies', async () => {
    const { client, peer } = await connectedPair({ eagerLimit: 1000 });
    const region = await client.alloc(200_000);
    pattern(200_000, 3).copy(region.buffer);
    const slice = region.slice(100, 150_000);
    await Promise.all([
      client.send(slice),
      client.send(region.buffer.subarray(5, 60_005)),
      client.end(region.slice(0, 10)),
      all(peer).then((messages) => {
        const whole = pattern(200_000, 3);
        const expected = [whole.subarray(100, 150_100), whole.subarray(5, 60_005), whole.subarray(0, 10)];
        expect(messages.map((message, i) => message.equals(expected[i]!))).toEqual([true, true, true]);
      }),
    ]);
  });

  it('of another domain, and memory that must not be registered where it lies, is sent all the same', async () => {
    const { client, peer } = await connectedPair({ eagerLimit: 1000 });
    const foreign = await peer.alloc(5000);
    pattern(5000, 1).copy(foreign.buffer);
    const resizable = new Uint8Array(resizableBuffer(4000));
    resizable.set(pattern(4000, 2));
    await Promise.all([
      client.send(foreign),
      client.send(resizable),
      client.end(),
      all(peer).then((messages) => {
        expect(messages.map((message, i) => message.equals(pattern(5000 - 1000 * i, i + 1)))).toEqual([
          true,
          true,
        ]);
      }),
    ]);
  });
});

it('a slow reader is waited for, with long messages that are still to be read', async () => {
  const { client, peer } = await connectedPair({
    eagerLimit: 1000,
    highWaterMark: 100_000,
    slots: 4,
    slabBytes: 1024,
  });
  const count = 12;
  let done = 0;
  for (let i = 0; i < count; ++i) void client.send(pattern(60_000, i)).then(() => ++done);
  const ended = client.end().then(() => (done = 100));
  // The peer reads ahead as much as its mark allows, and no more.
  while (peer.readableLength < 100_000) await new Promise((resolve) => setTimeout(resolve, 2));
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(done).toBeLessThanOrEqual(2);
  const messages = await all(peer);
  expect(messages.every((message, i) => message.equals(pattern(60_000, i)))).toBe(true);
  expect(messages.length).toBe(count);
  expect(await ended).toBe(100);
  await Promise.all([closed(client), closed(peer)]);
});

it('a message longer than the peer takes is refused at once', async () => {
  const { client } = await connectedPair({}, { server: { maxMessage: 300_000 } });
  expect(client.maxMessage).toBe(300_000);
  await expect(client.send(Buffer.alloc(300_001))).rejects.toMatchObject({
    code: 'EMSGSIZE',
    message: expect.stringContaining('300001 bytes is longer than the 300000') as string,
  });
  await client.send(Buffer.alloc(300_000, 1));
});

function resizableBuffer(bytes: number): ArrayBuffer {
  return Reflect.construct(ArrayBuffer, [bytes, { maxByteLength: 2 * bytes }]) as ArrayBuffer;
}
