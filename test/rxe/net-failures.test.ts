// What goes wrong with connections of node-rdma/net: each has an error with a code, within a bounded time, and frees everything.
import { execFileSync } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connect, createServer, NetError, type Connection } from '../../lib/net/index.js';
import { encodeHello, FrameType, writeFrameHeader } from '../../lib/net/protocol.js';
import { addressA, addressB, channel, listener, resolved } from '../support/cm.js';
import { all, closed, connectedPair, connecting, event, listening } from '../support/net.js';

const netdevA = process.env.NODE_RDMA_RXE_NETDEV_A!;
const hello = { slots: 12, reserve: 8, slabBytes: 4096, eagerLimit: 4096, maxMessage: 2 ** 20 };

const failing = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

/** Runs a command now, and another one when the test ends. */
function until(now: string, afterwards: string): void {
  const [file, ...args] = now.split(' ');
  execFileSync(file!, args);
  onTestFinished(() => {
    const [undo, ...rest] = afterwards.split(' ');
    execFileSync(undo!, rest);
  });
}

/** From now on the wire carries nothing from the end A. */
function loseAll(): void {
  until(`tc qdisc add dev ${netdevA} root netem loss 100%`, `tc qdisc del dev ${netdevA} root`);
}

describe('a connect', () => {
  it('to nobody is refused', async () => {
    const error = await connect({ host: addressB, port: 9, localAddress: addressA }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(NetError);
    expect(error).toMatchObject({
      code: 'ECONNREFUSED',
      syscall: 'connect',
      remoteAddress: addressB,
      remotePort: 9,
      message: expect.stringMatching(/connect ECONNREFUSED .*nobody listens/) as string,
    });
  });

  it('to a black hole ends in time', async () => {
    const server = await listening();
    loseAll();
    const began = performance.now();
    await expect(connecting(server, { timeoutMs: 300 })).rejects.toEqual(
      failing('ETIMEDOUT', /connect ETIMEDOUT/),
    );
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('is aborted', async () => {
    const server = await listening();
    await expect(connecting(server, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    });
    const abort = new AbortController();
    const attempt = connecting(server, { signal: abort.signal });
    setImmediate(() => abort.abort());
    await expect(attempt).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('to a server that closes meanwhile ends, whichever way', async () => {
    const server = await listening();
    const attempts = Array.from({ length: 5 }, () =>
      connecting(server).then(closed, (error: unknown) => error as NetError),
    );
    await new Promise((resolve) => setTimeout(resolve, 2));
    const closing = server.close();
    server.closeAllConnections();
    for (const outcome of await Promise.all(attempts)) {
      if (outcome !== undefined)
        expect(outcome.code).toMatch(/^(ECONNREFUSED|ECONNRESET|ETIMEDOUT|EPIPE|E\w+)$/);
    }
    server.closeAllConnections();
    await closing;
    expect(server.listening).toBe(false);
  });

  it('beyond the limit of the server is refused, with the reason', async () => {
    const server = await listening({ maxConnections: 1 });
    await connecting(server);
    const dropped = event(server, 'drop');
    await expect(connecting(server)).rejects.toEqual(
      failing('ECONNREFUSED', /the server refuses: it has its 1 connections/),
    );
    expect((await dropped)[0]).toEqual(failing('ECONNREFUSED', /a client was refused/));
  });

  it.each([
    ['without a host', { port: 1 }, 'ERR_INVALID_ARG_TYPE'],
    ['to a port that is none', { host: addressB, port: 70_000 }, 'ERR_OUT_OF_RANGE'],
    ['with slabs that are too small', { host: addressB, port: 1, slabBytes: 100 }, 'ERR_OUT_OF_RANGE'],
    ['with no slots', { host: addressB, port: 1, slots: 0 }, 'ERR_OUT_OF_RANGE'],
    ['to a name that nobody knows', { host: 'no.such.name.invalid', port: 1 }, 'ENOTFOUND'],
  ])('%s is refused', async (_name, options, code) => {
    await expect(connect(options as never)).rejects.toMatchObject({ code });
  });
});

describe('a server', () => {
  it('that cannot listen says why', async () => {
    const { port } = (await listening()).address()!;
    await expect(createServer().listen({ host: addressB, port })).rejects.toEqual(
      failing('EADDRINUSE', /listen EADDRINUSE/),
    );
    await expect(createServer().listen({ host: '203.0.113.9' })).rejects.toMatchObject({
      code: 'EADDRNOTAVAIL',
    });
    await expect(createServer().listen({ port: -1 })).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(createServer().close()).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    const server = await listening();
    await expect(server.listen()).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  });

  it('is closed by a signal, and tells when all is over', async () => {
    const abort = new AbortController();
    const server = createServer();
    await server.listen({ host: addressB, signal: abort.signal });
    const over = event(server, 'close');
    abort.abort();
    await over;
    expect(server.address()).toBeNull();
  });
});

describe('a peer that is destroyed', () => {
  it('resets the connection: who reads is told, and so is who sends', async () => {
    const { client, peer } = await connectedPair({ slots: 2, slabBytes: 256, highWaterMark: 256 });
    const sends = Array.from({ length: 50 }, () => client.send(Buffer.alloc(200)));
    await peer.receive({ timeoutMs: 20_000 });
    const reading = all(client);
    peer.destroy();
    await expect(reading).rejects.toEqual(failing('ECONNRESET', /closed the connection without ending it/));
    const outcomes = await Promise.allSettled(sends);
    expect(outcomes.at(-1)).toMatchObject({ status: 'rejected', reason: { code: 'ECONNRESET' } });
    await expect(client.send('more')).rejects.toMatchObject({ code: 'ECONNRESET' });
    await closed(client);
  });

  it('with an error of its own tells that to its own', async () => {
    const { peer } = await connectedPair();
    const reading = all(peer);
    peer.destroy(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
    await expect(peer.send('x')).rejects.toThrow('enough');
  });

  it('what had come before can still be read', async () => {
    const { client, peer } = await connectedPair();
    for (let i = 0; i < 10; ++i) await peer.send(`message ${i}`);
    while (client.bytesRead < 90) await new Promise((resolve) => setTimeout(resolve, 2));
    peer.destroy();
    await closed(client);
    for (let i = 0; i < 10; ++i) expect(await client.receive()).toEqual(Buffer.from(`message ${i}`));
    await expect(client.receive()).rejects.toMatchObject({ code: 'ECONNRESET' });
  });
});

it('a link that drops is noticed at both ends, also by the one that only receives', async () => {
  const { client, peer } = await connectedPair({
    keepAliveInterval: 50,
    keepAliveTimeout: 20_000,
    ackTimeout: 8,
  });
  await client.send('before');
  expect(await peer.receive({ timeoutMs: 20_000 })).toEqual(Buffer.from('before'));
  const [atClient, atPeer] = [client.receive(), peer.receive()].map((waiting) =>
    waiting.catch((error: unknown) => error),
  );
  loseAll();
  expect(await atClient).toMatchObject({ code: expect.stringMatching(/^(ETIMEDOUT|ECONNRESET)$/) as string });
  expect(await atPeer).toMatchObject({ code: expect.stringMatching(/^(ETIMEDOUT|ECONNRESET)$/) as string });
  await Promise.all([closed(client), closed(peer)]);
});

it('a peer that does not read is alive', async () => {
  const { client, peer } = await connectedPair({
    slots: 2,
    slabBytes: 256,
    highWaterMark: 256,
    keepAliveInterval: 20,
    keepAliveTimeout: 200,
  });
  for (let i = 0; i < 20; ++i) void client.send(Buffer.alloc(200, i));
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect([client.readyState, peer.readyState]).toEqual(['open', 'open']);
  void client.end();
  expect((await all(peer)).length).toBe(20);
});

it('silence is told when it lasts', async () => {
  const { client } = await connectedPair();
  const began = performance.now();
  client.setTimeout(60);
  await event(client, 'timeout');
  expect(performance.now() - began).toBeGreaterThan(50);
  expect(client.readyState).toBe('open');
});

describe('who speaks another protocol', () => {
  it.each([
    ['nothing', undefined, /does not speak the protocol/],
    ['something else', Buffer.from('GET / HTTP/1.1'), /does not speak the protocol/],
    ['another version', Buffer.concat([Buffer.from('nRDM'), Buffer.of(9, 0)]), /speaks version 9/],
  ])('is refused by a server with the reason: %s', async (_name, data, reason) => {
    const server = await listening();
    const dropped = event(server, 'drop');
    const client = await resolved(server.address()!.port);
    client.createQp();
    const error = await client
      .connect(data === undefined ? {} : { data })
      .catch((refusal: unknown) => refusal);
    expect(error).toMatchObject({ code: 'ECONNREFUSED', reason: 'consumerDefined' });
    expect((error as { data: Buffer }).data.toString()).toMatch(reason);
    expect((await dropped)[0]).toEqual(failing('ERR_RDMA_PROTOCOL', reason));
  });

  it('is left by a client that finds it listening', async () => {
    const { id, port } = listener();
    const serving = id.getRequest({ timeoutMs: 20_000 }).then(async (request) => {
      request.createQp();
      await request.accept({ data: Buffer.from('welcome') });
      await request.disconnected({ timeoutMs: 20_000 });
    });
    await expect(connect({ host: addressB, port, localAddress: addressA })).rejects.toEqual(
      failing('ERR_RDMA_PROTOCOL', /has accepted, but it does not speak the protocol/),
    );
    await serving;
  });
});

describe('a peer that sends garbage is disconnected, and harms no other connection:', () => {
  const frame = (
    type: number,
    payload: Buffer,
    { data = 0, control = 0, fetched = 0, length = payload.length } = {},
  ) => {
    const bytes = Buffer.alloc(16 + payload.length);
    writeFrameHeader(new DataView(bytes.buffer, bytes.byteOffset), 0, {
      type,
      flags: 0,
      length,
      data,
      control,
      fetched,
    });
    payload.copy(bytes, 16);
    return bytes;
  };
  const number = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const announcement = (length: bigint) => {
    const bytes = Buffer.alloc(24);
    bytes.writeBigUInt64LE(length, 8);
    return bytes;
  };

  it.each([
    ['nothing', Buffer.alloc(0), /a frame of 0 bytes/],
    ['noise', Buffer.alloc(100, 0xa5), /a frame of 100 bytes that says/],
    ['an unknown frame', frame(99, Buffer.alloc(0)), /a frame of type 99/],
    ['a wrong length', frame(FrameType.DATA, number(5), { length: 3 }), /says 3 of itself/],
    ['half a length', frame(FrameType.DATA, Buffer.alloc(3)), /half a length/],
    ['an empty frame', frame(FrameType.DATA, Buffer.alloc(0)), /an empty frame/],
    ['a gigantic message', frame(FrameType.DATA, number(0xffffffff)), /4294967295 bytes in frames/],
    [
      'credits that it does not have',
      frame(FrameType.UPDATE, Buffer.alloc(0), { data: 5 }),
      /back more slots/,
    ],
    [
      'an answer to nothing',
      frame(FrameType.UPDATE, Buffer.alloc(0), { fetched: 1 }),
      /read more than was announced/,
    ],
    [
      'an announcement of too much',
      frame(FrameType.ANNOUNCE, announcement(2n ** 60n)),
      /a message of 1152921504606847000 bytes/,
    ],
    ['an announcement of nothing', frame(FrameType.ANNOUNCE, announcement(0n)), /an empty message/],
    ['half an announcement', frame(FrameType.ANNOUNCE, Buffer.alloc(9)), /announcement in the middle/],
    ['an end in the middle', Buffer.alloc(0), /its end in the middle of a message/],
    ['memory that it does not have', frame(FrameType.ANNOUNCE, announcement(100n)), /may not be reached so/],
    ['more than fits', Buffer.alloc(20_000), /./],
  ])('%s', async (name, bytes, reason) => {
    const server = await listening({ slots: 4, slabBytes: 4096 });
    const bystanders = event(server, 'connection');
    const bystander = await connecting(server);
    const [friend] = (await bystanders) as [Connection];
    const accepted = event(server, 'connection');
    const id = await resolved(server.address()!.port, { on: channel() });
    id.createQp();
    const memory = await id.regMsgs(32_768);
    id.postRecv([0, 1, 2].map((i) => ({ sge: { mr: memory, offset: 24_000 + i * 512, length: 512 } })));
    await id.connect({ data: encodeHello(hello) });
    const [victim] = (await accepted) as [Connection];
    const failed = event(victim, 'error');
    const send = (what: Buffer) => {
      what.copy(memory.buffer);
      id.postSend({ opcode: 'send', sge: { mr: memory, offset: 0, length: what.length } });
    };
    if (name === 'an end in the middle') {
      send(frame(FrameType.DATA, number(100)));
      await id.getSendComp({ timeoutMs: 20_000 });
      send(frame(FrameType.END, Buffer.alloc(0)));
    } else {
      send(bytes);
    }
    const [error] = (await failed) as [NetError];
    expect(error.message).toMatch(reason);
    expect(error.code).toMatch(/^(ERR_RDMA_PROTOCOL|EACCES|ECONNRESET)$/);
    await closed(victim);
    await id.disconnected({ timeoutMs: 20_000 });
    await bystander.send('still here');
    expect(await friend.receive({ timeoutMs: 20_000 })).toEqual(Buffer.from('still here'));
  });
});
