// Datagrams of node-rdma/net: sockets over UD, found by address and port, and groups.
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSocket, type RemoteInfo, type Socket } from '../../lib/net/index.js';
import { address6A, address6B, addressA, addressB, channel } from '../support/cm.js';
import { pattern } from '../support/device.js';

const GROUP = '239.7.7.8';
const failing = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

async function socket(host: string, port = 0): Promise<Socket> {
  const made = createSocket({ slots: 16 });
  onTestFinished(() => made.close());
  return made.bind({ host, port });
}

const message = async (at: Socket) =>
  (await once(at, 'message', { signal: AbortSignal.timeout(20_000) })) as [Buffer, RemoteInfo];

describe('a datagram', () => {
  it.each([
    ['IPv4', addressA, addressB],
    ['IPv6', address6A, address6B],
  ])('goes there, tells from where, and its answer comes back: %s', async (family, from, to) => {
    const [a, b] = [await socket(from), await socket(to)];
    const came = message(b);
    await a.send(pattern(500, 1), { host: to, port: b.address().port });
    const [data, remote] = await came;
    expect(data).toEqual(pattern(500, 1));
    expect(remote).toEqual({ address: from, family, port: a.address().port, size: 500 });
    const answer = message(a);
    await b.send('here', { host: remote.address, port: remote.port });
    expect(await answer).toEqual([
      Buffer.from('here'),
      { address: to, family, port: b.address().port, size: 4 },
    ]);
  });

  it('of no bytes and of as many as a packet carries', async () => {
    const [a, b] = [await socket(addressA), await socket(addressB)];
    const to = { host: addressB, port: b.address().port };
    for (const size of [0, a.maxBytes]) {
      const came = message(b);
      await a.send(pattern(size, 2), to);
      expect((await came)[0]).toEqual(pattern(size, 2));
    }
    await expect(a.send(Buffer.alloc(a.maxBytes + 1), to)).rejects.toEqual(
      failing('EMSGSIZE', /a packet carries here/),
    );
  });

  it('to nobody is refused, and a later one finds who came meanwhile', async () => {
    const a = await socket(addressA);
    const b = await socket(addressB);
    const { port } = b.address();
    await b.close();
    await expect(a.send('x', { host: addressB, port })).rejects.toEqual(
      failing('ECONNREFUSED', /nobody listens/),
    );
    const again = await socket(addressB, port);
    const came = message(again);
    await a.send('x', { host: addressB, port });
    expect((await came)[0].toString()).toBe('x');
  });

  it('of many at once arrive', async () => {
    const [a, b] = [await socket(addressA), await socket(addressB)];
    const to = { host: addressB, port: b.address().port };
    const seen = new Set<number>();
    b.on('message', (data) => seen.add(data[0]!));
    for (let burst = 0; burst < 5; ++burst) {
      await Promise.all(Array.from({ length: 10 }, (_, i) => a.send(Buffer.of(burst * 10 + i), to)));
      await until(() => seen.size === (burst + 1) * 10);
    }
  });

  it('that is none of ours is left alone', async () => {
    const b = await socket(addressB);
    let came = 0;
    b.on('message', () => ++came);
    const id = channel().createId('udp');
    await id.resolveAddr(addressB, b.address().port, { source: addressA });
    await id.resolveRoute();
    id.createQp();
    const { remoteQpn, datagram } = await id.connect();
    const memory = await id.regMsgs(100);
    const ah = await id.pd.createAh(datagram!.address);
    const send = async (bytes: Buffer) => {
      memory.buffer.set(bytes);
      id.postSend({
        opcode: 'send',
        sge: { mr: memory, length: bytes.length },
        ud: { ah, remoteQpn, remoteQkey: datagram!.remoteQkey },
      });
      await id.getSendComp({ timeoutMs: 20_000 });
    };
    for (const bytes of [Buffer.alloc(3), Buffer.alloc(100, 0xa5)]) await send(bytes);
    const a = await socket(addressA);
    const genuine = message(b);
    await a.send('genuine', { host: addressB, port: b.address().port });
    expect((await genuine)[0].toString()).toBe('genuine');
    expect(came).toBe(1);
  });
});

it('a group is sent to, joined and left', async () => {
  const b = await socket(addressB);
  const { port } = b.address();
  const a = await socket(addressA);
  await b.addMembership(GROUP);
  const first = message(b);
  await a.send('to all', { host: GROUP, port });
  expect(await first).toEqual([
    Buffer.from('to all'),
    { address: addressA, family: 'IPv4', port: a.address().port, size: 6 },
  ]);

  const seen: string[] = [];
  b.on('message', (data) => seen.push(data.toString()));
  await a.send('to another port', { host: GROUP, port: port === 1 ? 2 : port - 1 });
  await b.dropMembership(GROUP);
  await a.send('to those who stayed', { host: GROUP, port });
  const last = message(b);
  await a.send('to you', { host: addressB, port });
  await last;
  expect(seen).toEqual(['to you']);
  await expect(b.dropMembership(GROUP)).rejects.toEqual(failing('EADDRNOTAVAIL', /no member/));
});

describe('a socket', () => {
  it('refuses what it cannot do', async () => {
    const made = createSocket();
    expect(() => made.address()).toThrow(failing('ERR_RDMA_INVALID_STATE', /bind\(\) first/));
    await expect(made.bind({ host: '203.0.113.9' })).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
    await expect(made.send('x', { host: addressB, port: 0 })).rejects.toMatchObject({
      code: 'ERR_OUT_OF_RANGE',
    });
    await expect(made.send(7 as never, { host: addressB, port: 1 })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_TYPE',
    });
    await made.bind({ host: addressA });
    await expect(made.bind({ host: addressA })).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    const taken = createSocket();
    await expect(taken.bind({ host: addressA, port: made.address().port })).rejects.toEqual(
      failing('EADDRINUSE', /bind EADDRINUSE/),
    );
    const over = once(made, 'close');
    await made.close();
    await over;
    await expect(made.send('x', { host: addressB, port: 1 })).rejects.toMatchObject({
      code: 'ERR_RDMA_CLOSED',
    });
    await taken.close();
    expect(() => createSocket({ slots: 0 })).toThrow(failing('ERR_OUT_OF_RANGE', /slots/));
  });
});

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('it did not come to be');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
