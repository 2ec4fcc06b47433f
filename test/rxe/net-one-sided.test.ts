// The peer's memory, by READ, WRITE and atomics of node-rdma/net.
import { describe, expect, it } from 'vitest';
import { pattern } from '../support/device.js';
import { closed, connectedPair, connecting } from '../support/net.js';
import { RemoteMemory } from '../../lib/net/index.js';

const failing = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

it('memory is exported, read and written', async () => {
  const { client, peer } = await connectedPair();
  const region = await peer.alloc(100_000, { rights: ['read', 'write'] });
  pattern(100_000, 1).copy(region.buffer);
  await peer.send(peer.export(region).toBuffer());
  const token = RemoteMemory.from((await client.receive({ timeoutMs: 20_000 }))!);
  expect([token.length, token.rights]).toEqual([100_000, ['read', 'write']]);

  expect((await client.read(token)).equals(pattern(100_000, 1))).toBe(true);
  expect(await client.read(token, { offset: 17, length: 100 })).toEqual(
    pattern(100_000, 1).subarray(17, 117),
  );
  expect((await client.read(token, { offset: 100_000 })).length).toBe(0);

  await client.write(token, 'hello', { offset: 5 });
  expect(region.buffer.toString('utf8', 5, 10)).toBe('hello');
  await client.write(token, pattern(50_000, 2), { offset: 50_000 });
  expect(region.buffer.subarray(50_000).equals(pattern(50_000, 2))).toBe(true);
});

it('registered memory is read into and written from as it is', async () => {
  const { client, peer } = await connectedPair();
  const remote = await peer.alloc(20_000, { rights: ['read', 'write'] });
  const token = peer.export(remote, { offset: 1000, length: 10_000 });
  const own = await client.alloc(20_000);
  pattern(20_000, 4).copy(own.buffer);
  await client.write(token, own.slice(0, 10_000));
  expect(remote.buffer.subarray(1000, 11_000).equals(pattern(20_000, 4).subarray(0, 10_000))).toBe(true);
  const read = await client.read(token, { into: own.slice(10_000, 500), offset: 100 });
  expect(read.buffer).toBe(own.buffer.buffer);
  expect(own.buffer.subarray(10_000, 10_500).equals(pattern(20_000, 4).subarray(100, 600))).toBe(true);
});

it('atomics count, across connections of a server too', async () => {
  const { client, peer, server } = await connectedPair();
  const other = await connecting(server);
  const region = await server.alloc(64, { rights: ['read', 'atomic'] });
  const text = JSON.stringify({ counter: peer.export(region) });
  const { counter } = JSON.parse(text) as { counter: string };
  const before = await Promise.all(
    Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? client : other).fetchAdd(counter, 8, 1)),
  );
  expect(before.sort((a, b) => Number(a - b))).toEqual(Array.from({ length: 40 }, (_, i) => BigInt(i)));
  expect(await client.fetchAdd(counter, 8, -40n)).toBe(40n);
  expect(await client.compareSwap(counter, 8, 0, 2n ** 63n)).toBe(0n);
  expect(await client.compareSwap(counter, 8, 0, 5)).toBe(2n ** 63n);
  expect((await client.read(counter, { offset: 8, length: 8 })).readBigUInt64LE()).toBe(2n ** 63n);
});

it('a batch larger than the device takes at a time', async () => {
  const { client, peer } = await connectedPair();
  const region = await peer.alloc(200 * 64, { rights: ['read', 'write'] });
  const token = peer.export(region);
  await Promise.all(
    Array.from({ length: 200 }, (_, i) => client.write(token, pattern(64, i), { offset: i * 64 })),
  );
  const read = await Promise.all(
    Array.from({ length: 200 }, (_, i) => client.read(token, { offset: i * 64, length: 64 })),
  );
  expect(read.every((bytes, i) => bytes.equals(pattern(64, i)))).toBe(true);
});

describe('it is refused before anything is sent', () => {
  it('to reach outside the memory', async () => {
    const { client, peer } = await connectedPair();
    const token = peer.export(await peer.alloc(64, { rights: ['read', 'write', 'atomic'] }));
    await expect(client.read(token, { offset: 60, length: 5 })).rejects.toEqual(
      failing('ERR_OUT_OF_RANGE', /"length" must be at most 4 from offset 60 of the peer's 64 bytes/),
    );
    await expect(client.read(token, { offset: 65 })).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(client.write(token, Buffer.alloc(65))).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(client.fetchAdd(token, 60, 1)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(client.fetchAdd(token, 4, 1)).rejects.toEqual(failing('ERR_OUT_OF_RANGE', /aligned word/));
    expect(client.readyState).toBe('open');
  });

  it('what the token does not allow', async () => {
    const { client, peer } = await connectedPair();
    const region = await peer.alloc(64, { rights: ['read', 'write'] });
    const token = peer.export(region, { rights: ['read'] }).toString();
    await expect(client.write(token, 'x')).rejects.toEqual(failing('EACCES', /for read, not for write/));
    await expect(client.fetchAdd(token, 0, 1)).rejects.toEqual(failing('EACCES', /not for atomic/));
    expect((await client.read(token)).length).toBe(64);
    expect(() => peer.export(region, { rights: ['atomic'] })).toThrow(
      failing('ERR_RDMA_INVALID_ATTRIBUTES', /without the right of peers to atomic/),
    );
  });

  it('a token that is none, a region of another domain, one that is none', async () => {
    const { client, peer } = await connectedPair();
    await expect(client.read('bm9uc2Vuc2U')).rejects.toEqual(
      failing('ERR_OUT_OF_RANGE', /24 bytes that export/),
    );
    await expect(client.read(7 as never)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    const foreign = await client.alloc(64);
    expect(() => peer.export(foreign)).toThrow(
      failing('ERR_RDMA_FOREIGN_OBJECT', /another protection domain/),
    );
    const token = peer.export(await peer.alloc(64));
    await expect(client.read(token, { into: await peer.alloc(64) })).rejects.toMatchObject({
      code: 'ERR_RDMA_FOREIGN_OBJECT',
    });
    await expect(client.read(token, { into: {} as never })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_TYPE',
    });
    foreign.close();
    await expect(client.read(token, { into: foreign })).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    await expect(client.send(foreign)).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect(client.readyState).toBe('open');
    expect(() => peer.export({} as never)).toThrow(failing('ERR_INVALID_ARG_TYPE', /a memory region/));
  });
});

it('memory that is no more, or never was, ends the connection with the reason', async () => {
  const { client, peer } = await connectedPair();
  const region = await peer.alloc(64, { rights: ['read'] });
  const token = peer.export(region);
  region.close();
  await expect(client.read(token)).rejects.toEqual(failing('EACCES', /may not be reached so.*remAccessErr/));
  await Promise.all([closed(client), closed(peer)]);
});
