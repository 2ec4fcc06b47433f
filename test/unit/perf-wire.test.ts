// The messages of perftest, byte for byte, and the talk over TCP. A peer that is played by hand stands in for the C program.
import { once } from 'node:events';
import net from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  decodeBinaryKey,
  decodeKey,
  decodeMtu,
  decodeReport,
  decodeVersion,
  encodeInteger,
  encodeBinaryKey,
  encodeKey,
  encodeMtu,
  encodeReport,
  encodeVersion,
  type Key,
} from '../../lib/perf/wire/messages.js';
import { acceptTcp, connectTcp } from '../../lib/perf/wire/tcp.js';
import type { Exchange } from '../../lib/perf/wire/exchange.js';

const padded = (text: string, length: number) => {
  const bytes = Buffer.alloc(length);
  bytes.write(text, 'latin1');
  return bytes;
};

describe('the version', () => {
  it('is read by C up to its NUL, as 6.06', () => {
    const bytes = encodeVersion();
    expect(bytes).toHaveLength(16);
    expect(bytes.toString('latin1', 0, bytes.indexOf(0))).toBe('6.06');
  });

  it('tells two of ours from a program of C', () => {
    expect(decodeVersion(encodeVersion())).toEqual({ text: '6.06', ours: true });
    expect(decodeVersion(padded('6.06', 16))).toEqual({ text: '6.06', ours: false });
    expect(decodeVersion(padded('5.70', 16)).ours).toBe(false);
  });

  it('is refused where it is too old', () => {
    expect(() => decodeVersion(padded('5.69', 16))).toThrow(/announces 5\.69, and 5\.70 is the oldest/);
  });

  it.each(['GET / HTTP/1.1\r\n', '', 'SSH-2.0-OpenSSH_'])('is none in %j', (text) => {
    expect(() => decodeVersion(padded(text, 16))).toThrow(/no program of perftest/);
  });
});

describe('numbers', () => {
  it('are 32 bits, most significant byte first', () => {
    expect(encodeInteger(4096).toString('hex')).toBe('00001000');
    expect(encodeInteger(64).toString('hex')).toBe('00000040');
  });

  it.each([
    [256, '3100'],
    [1024, '3300'],
    [4096, '3500'],
  ] as const)('an MTU of %i is %s', (mtu, hex) => {
    expect(encodeMtu(mtu).toString('hex')).toBe(hex);
    expect(decodeMtu(Buffer.from(hex, 'hex'))).toBe(mtu);
  });

  it.each(['3000', '3600', '4100', '0000'])('%s is no MTU', (hex) => {
    expect(() => decodeMtu(Buffer.from(hex, 'hex'))).toThrow(/as its MTU/);
  });
});

describe('a key', () => {
  const key: Key = {
    lid: 0,
    outstandingReads: 128,
    qpNum: 0x11,
    psn: 0x36b21b,
    rkey: 0x397,
    address: 0x552aaf3000n,
    gid: '::ffff:10.9.0.1',
  };
  const text =
    '0000:0080:000011:36b21b:00000397:000000552aaf3000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:09:00:01:00000000:';

  it('has 108 bytes, with a colon and a NUL at the end', () => {
    expect(encodeKey(key)).toEqual(Buffer.from(`${text}\0`, 'latin1'));
    expect(encodeKey(key)).toHaveLength(108);
  });

  it('is read back', () => {
    expect(decodeKey(Buffer.from(`${text}\0`, 'latin1'))).toEqual(key);
    const large = {
      ...key,
      qpNum: 0xffffff,
      psn: 0xffffff,
      rkey: 0xffffffff,
      address: 2n ** 64n - 1n,
      gid: 'fe80::1',
    };
    expect(decodeKey(encodeKey(large))).toEqual(large);
    expect(decodeBinaryKey(encodeBinaryKey(large))).toEqual(large);
  });

  it('is a struct of 56 bytes where it goes over RDMA', () => {
    const words = [
      '00000000',
      '00000080',
      '00000011',
      '0036b21b',
      '00000397',
      '00000000',
      '000000552aaf3000',
    ];
    const hex = [...words, '00000000000000000000ffff0a090001', '00000000', '00000000'].join('');
    expect(encodeBinaryKey(key).toString('hex')).toBe(hex);
    // What perftest has left in the padding and behind the GID says nothing.
    const theirs = Buffer.from(hex, 'hex').fill(0xdd, 20, 24).fill(0xdd, 48);
    expect(decodeBinaryKey(theirs)).toEqual(key);
  });

  it('without a GID, as on InfiniBand, is refused with what to do', () => {
    const short = padded('0001:0001:000011:36b21b:00000397:000000552aaf3000:00000000', 108);
    expect(() => decodeKey(short)).toThrow(/no address of a queue pair with a GID.*peer needs -x/);
  });

  it.each([text.replace('36b21b', '36g21b'), text.slice(1), 'done'])('%j is none', (wrong) => {
    expect(() => decodeKey(padded(wrong, 108))).toThrow(/not go on as perftest would/);
  });
});

describe('a report', () => {
  it('is five messages of eight bytes: two whole numbers, three doubles', () => {
    const report = { size: 65_536, iterations: 5000, peak: 1.5, average: 1.25, messageRate: 0.00002 };
    const fields = encodeReport(report);
    expect(fields.map((field) => field.toString('hex')).slice(0, 4)).toEqual([
      '0000000000010000',
      '0000000000001388',
      '3ff8000000000000',
      '3ff4000000000000',
    ]);
    expect(decodeReport(fields)).toEqual(report);
  });
});

/** A server of ours and the socket of a client that is played by hand. */
async function served(): Promise<{ exchange: Exchange; socket: net.Socket; port: number }> {
  let socket: net.Socket | undefined;
  let port = 0;
  const exchange = await acceptTcp({
    port: 0,
    timeout: 5000,
    onListening: (chosen) => {
      port = chosen;
      socket = net.connect(port, '127.0.0.1');
    },
  });
  onTestFinished(() => {
    exchange.destroy();
    socket!.destroy();
  });
  return { exchange, socket: socket!, port };
}

describe('the talk', () => {
  it('is begun by the client, one write for each message', async () => {
    const server = net.createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as net.AddressInfo;
    const accepted = once(server, 'connection') as Promise<[net.Socket]>;
    const exchange = await connectTcp('127.0.0.1', { port, timeout: 5000 });
    const [socket] = await accepted;
    onTestFinished(() => exchange.destroy());
    const answer = exchange.swap(Buffer.from('ping'), 5000);
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toBe('ping');
    socket.write('pong');
    expect((await answer).toString()).toBe('pong');
  });

  it('is answered by the server, which takes what comes in pieces', async () => {
    const { exchange, socket } = await served();
    const heard = exchange.swap(Buffer.from('answer'), 5000);
    socket.write('que');
    await new Promise(setImmediate);
    socket.write('stionNEXT');
    expect((await heard).toString()).toBe('questi');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toBe('answer');
    expect(exchange.heard).toBe(true);
    expect((await exchange.swap(Buffer.alloc(6), 5000)).toString()).toBe('onNEXT');
    expect(exchange.heard).toBe(false);
  });

  it('fails at once when the peer goes', async () => {
    const { exchange, socket } = await served();
    const heard = exchange.swap(Buffer.alloc(108), Infinity);
    socket.end('part of it');
    await expect(heard).rejects.toMatchObject({ code: 'ERR_RDMA_PEER_LOST' });
  });

  it('takes what was said before the peer went', async () => {
    const { exchange, socket } = await served();
    socket.end('last');
    await once(socket, 'finish');
    expect((await exchange.swap(Buffer.alloc(4), 5000)).toString()).toBe('last');
    await expect(exchange.swap(Buffer.alloc(4), 5000)).rejects.toMatchObject({ code: 'ERR_RDMA_PEER_LOST' });
    expect(exchange.gone).toBe(true);
  });

  it('fails after its time when the peer is silent, with what has come', async () => {
    const { exchange, socket } = await served();
    socket.write('abc');
    await expect(exchange.swap(Buffer.alloc(108), 100)).rejects.toMatchObject({
      code: 'ERR_RDMA_TIMEOUT',
      message: expect.stringMatching(/has said (nothing|3 of 108 bytes) for 100 ms/) as string,
    });
  });

  it('is no fault when the peer resets it after the end', async () => {
    const { exchange, socket } = await served();
    exchange.end();
    socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
  });

  it('lets one client in', async () => {
    const { port } = await served();
    const second = net.connect(port, '127.0.0.1');
    await expect(once(second, 'connect')).rejects.toThrow(/ECONNREFUSED/);
  });

  it('says what to do where nobody listens', async () => {
    const probe = net.createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as net.AddressInfo;
    probe.close();
    await once(probe, 'close');
    await expect(connectTcp('127.0.0.1', { port, timeout: 5000 })).rejects.toMatchObject({
      code: 'ERR_RDMA_NO_PEER',
      message: expect.stringMatching(/cannot connect to 127\.0\.0\.1.*Start the other end first/) as string,
    });
  });

  it('says that the port is taken', async () => {
    const taken = net.createServer().listen(0);
    onTestFinished(() => void taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as net.AddressInfo;
    await expect(acceptTcp({ port, timeout: 5000 })).rejects.toMatchObject({
      code: 'ERR_RDMA_NO_PEER',
      message: expect.stringMatching(/cannot listen on TCP port \d+.*Choose another/) as string,
    });
  });

  it('ends when it is aborted, in every state', async () => {
    const stop = new AbortController();
    const waiting = acceptTcp({ port: 0, timeout: 5000, signal: stop.signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await expect(acceptTcp({ port: 0, timeout: 5000, signal: stop.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await expect(
      connectTcp('127.0.0.1', { port: 9, timeout: 5000, signal: stop.signal }),
    ).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});
