// What goes wrong with connections, in words, and within a bounded time.
import { execFileSync } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionError, PRIVATE_DATA_LIMITS, type CmId } from '../../lib/index.js';
import { addressA, addressB, channel, connected, listener, queueOf, resolved } from '../support/cm.js';
import { deviceA } from '../support/device.js';

const netdevA = process.env.NODE_RDMA_RXE_NETDEV_A!;

/** Runs a command now, and another one when the test ends. */
function until(now: string[], afterwards: string[]): void {
  execFileSync(now[0]!, now.slice(1));
  onTestFinished(() => void execFileSync(afterwards[0]!, afterwards.slice(1)));
}

const failing = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

describe('an address', () => {
  it('that no RDMA device has is refused with those that there are', () => {
    until(
      ['ip', 'address', 'add', '198.51.100.1/32', 'dev', 'lo'],
      ['ip', 'address', 'del', '198.51.100.1/32', 'dev', 'lo'],
    );
    const text = new RegExp(
      `no interface with an RDMA device. Addresses with one: .*${addressA} \\(${deviceA} on ${netdevA}\\)`,
    );
    expect(() => channel().createId('tcp').bindAddr('198.51.100.1')).toThrow(failing('ENODEV', text));
  });

  it('that no interface has is refused', () => {
    expect(() => channel().createId('tcp').bindAddr('203.0.113.9')).toThrow(
      failing('EADDRNOTAVAIL', /No interface of this machine has that address/),
    );
  });

  it('to which no RDMA device leads is not resolved, with those that there are', async () => {
    until(['ip', 'link', 'add', 'plain', 'type', 'dummy'], ['ip', 'link', 'del', 'plain']);
    execFileSync('ip', ['address', 'add', '198.51.100.1/24', 'dev', 'plain']);
    execFileSync('ip', ['link', 'set', 'plain', 'up']);
    const id = channel().createId('tcp');
    const error = await id
      .resolveAddr('198.51.100.7', 1)
      .catch((reason: unknown) => reason as ConnectionError);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toEqual(failing('ENODEV', /198\.51\.100\.7:1: .*Addresses with one: .*10\.9\.0\.1/));
    expect(error).toMatchObject({ event: 'addrError', status: -19 });
    await expect(id.resolveAddr(addressB, 1)).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  });

  it('that was not asked for yet is found at once, whatever the deadline', async () => {
    execFileSync('ip', ['neigh', 'flush', 'dev', netdevA]);
    const id = channel().createId('tcp');
    const seen: string[] = [];
    id.events.on('event', ({ type }) => seen.push(type));
    const began = performance.now();
    await id.resolveAddr(addressB, 1, { source: addressA, timeoutMs: 20_000 });
    expect(performance.now() - began).toBeLessThan(5000);
    expect(seen).toEqual(['addrResolved']);
  });

  it('that nobody answers for is given up in time', async () => {
    const id = channel().createId('tcp');
    const began = performance.now();
    await expect(id.resolveAddr('10.9.0.77', 1, { source: addressA, timeoutMs: 1000 })).rejects.toMatchObject(
      {
        code: expect.stringMatching(/^(ETIMEDOUT|EHOSTUNREACH|ERR_RDMA_TIMEOUT)$/) as string,
      },
    );
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it.each(['localhost', '', '10.9.0', '10.9.0.1:80'])('"%s" is no address', async (address) => {
    const id = channel().createId('tcp');
    expect(() => id.bindAddr(address)).toThrow(
      failing('ERR_OUT_OF_RANGE', /"address" must be an IPv4 or IPv6 address/),
    );
    await expect(id.resolveAddr(address, 1)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
  });
});

describe('a connect', () => {
  it('to nobody says so', async () => {
    const client = await resolved(9);
    client.createQp();
    await expect(client.connect()).rejects.toEqual(
      failing('ECONNREFUSED', new RegExp(`${addressB}:9 rejected: nobody listens`)),
    );
  });

  it('to a black hole ends by its own deadline, and what is left closes at once', async () => {
    const { port } = listener();
    const client = await resolved(port);
    client.createQp();
    until(
      ['tc', 'qdisc', 'add', 'dev', netdevA, 'root', 'netem', 'loss', '100%'],
      ['tc', 'qdisc', 'del', 'dev', netdevA, 'root'],
    );
    const began = performance.now();
    await expect(client.connect({ timeoutMs: 300 })).rejects.toEqual(
      failing('ERR_RDMA_TIMEOUT', /connecting took longer than 300 ms/),
    );
    expect(client.state).toBe('failed');
    await client.closeAsync({ cascade: true });
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(250);
    expect(took).toBeLessThan(5000);
  });

  it('is aborted', async () => {
    const { port } = listener();
    const client = await resolved(port);
    client.createQp();
    const abort = new AbortController();
    const connecting = client.connect({ signal: abort.signal });
    abort.abort(new Error('changed my mind'));
    await expect(connecting).rejects.toMatchObject({
      name: 'AbortError',
      cause: { message: 'changed my mind' },
    });
    const aborted = await resolved(port);
    aborted.createQp();
    await expect(aborted.connect({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    });
    expect(aborted.state).toBe('routeResolved'); // it has not begun
  });

  it('that is accepted after it was given up is ended again', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    client.createQp();
    const abort = new AbortController();
    const connecting = client.connect({ signal: abort.signal });
    const server = await id.getRequest({ timeoutMs: 20_000 });
    abort.abort();
    await expect(connecting).rejects.toMatchObject({ name: 'AbortError' });
    server.createQp();
    const accepted = await server.accept().then(
      () => true,
      () => false,
    );
    if (accepted) await server.disconnected({ timeoutMs: 20_000 });
    expect(['disconnected', 'failed']).toContain(server.state);
  });
});

describe('an established connection', () => {
  it('whose path changes says so, which is no failed connect', async () => {
    const { client } = await connected();
    const ended = client.disconnected({ timeoutMs: 20_000 });
    until(
      ['ip', 'neigh', 'replace', addressB, 'lladdr', '02:00:00:00:00:77', 'dev', netdevA, 'nud', 'reachable'],
      ['ip', 'neigh', 'del', addressB, 'dev', netdevA],
    );
    await expect(ended).rejects.toEqual(
      failing('ERR_RDMA_PATH_CHANGED', /path to 10\.9\.0\.2:\d+ has changed/),
    );
  });
});

describe('an identifier refuses', () => {
  const steps: [string, (id: CmId) => unknown, RegExp][] = [
    [
      'to listen before it is bound',
      (id) => id.listen(),
      /is new: listen\(\) needs one that is bound to an address/,
    ],
    [
      'to resolve a route first',
      (id) => id.resolveRoute(),
      /resolveRoute\(\) needs one that is resolved to an address/,
    ],
    ['to connect at once', (id) => id.connect(), /connect\(\) needs one that is resolved with its route/],
    ['to accept what is no request', (id) => id.accept(), /accept\(\) needs one that is a request/],
    ['to reject what is no request', (id) => id.reject(), /reject\(\) needs one that is a request/],
    [
      'to disconnect what is not connected',
      (id) => id.disconnect(),
      /disconnect\(\) needs one that is connected/,
    ],
    [
      'to wait for the end of nothing',
      (id) => id.disconnected(),
      /disconnected\(\) needs one that is connected/,
    ],
    [
      'to give requests without listening',
      (id) => id.getRequest(),
      /getRequest\(\) needs one that is listening/,
    ],
    ['a queue pair before it has a device', (id) => id.createQp(), /is bound to no device/],
    ['a protection domain before it has a device', (id) => id.pd, /is bound to no device/],
    ['attributes before it has a device', (id) => id.initQpAttr('rtr'), /bound to no device/],
    ['to send without a queue pair', (id) => id.postSend([]), /has no queue pair: createQp\(\) first/],
    ['to receive without a queue pair', (id) => id.getRecvComp(), /has no queue pair/],
  ];
  it.each(steps)('%s', async (_name, step, message) => {
    const id = channel().createId('tcp');
    await expect(Promise.resolve().then(() => step(id))).rejects.toEqual(
      failing('ERR_RDMA_INVALID_STATE', message),
    );
    expect(id.state).toBe('idle');
    id.bindAddr(addressA); // nothing was lost
  });

  it('a connect without a queue pair, a second queue pair, and one of the wrong type', async () => {
    const client = await resolved(1);
    await expect(client.connect()).rejects.toEqual(
      failing('ERR_RDMA_INVALID_STATE', /createQp\(\) first, or give one/),
    );
    const ud = client.pd.createQp({ type: 'ud', cq: queueOf(client) });
    await expect(client.connect({ qp: ud })).rejects.toEqual(
      failing('ERR_OUT_OF_RANGE', /an RC queue pair, not UD/),
    );
    client.createQp();
    expect(() => client.createQp()).toThrow(failing('ERR_RDMA_INVALID_STATE', /has queue pair \d+ already/));
    const rc = client.pd.createQp({ type: 'rc', cq: queueOf(client) });
    await expect(client.connect({ qp: rc })).rejects.toEqual(
      failing('ERR_RDMA_INVALID_STATE', /cannot take another one/),
    );
    expect(client.state).toBe('routeResolved');
  });

  const options: [string, object, string][] = [
    ['more READs than the device has', { initiatorDepth: 200 }, 'ERR_RDMA_LIMIT'],
    ['a depth that is no number', { responderResources: '1' }, 'ERR_INVALID_ARG_TYPE'],
    ['a retry count of 8', { retryCount: 8 }, 'ERR_OUT_OF_RANGE'],
    ['an RNR retry count of 8', { rnrRetryCount: 8 }, 'ERR_OUT_OF_RANGE'],
    ['an RNR timer of 32', { minRnrTimer: 32 }, 'ERR_OUT_OF_RANGE'],
    ['a deadline of 0', { timeoutMs: 0 }, 'ERR_OUT_OF_RANGE'],
    ['a signal that is none', { signal: {} }, 'ERR_INVALID_ARG_TYPE'],
    ['a queue pair that is none', { qp: {} }, 'ERR_INVALID_ARG_TYPE'],
    ['private data that is a string', { privateData: 'x' }, 'ERR_INVALID_ARG_TYPE'],
    ['both kinds of private data', { privateData: Buffer.of(1), data: Buffer.of(1) }, 'ERR_INVALID_ARG_TYPE'],
    [
      'private data that is too long',
      { privateData: Buffer.alloc(PRIVATE_DATA_LIMITS.tcp.connect + 1) },
      'ERR_RDMA_LIMIT',
    ],
    [
      'data whose length does not fit',
      { data: Buffer.alloc(PRIVATE_DATA_LIMITS.tcp.connect) },
      'ERR_RDMA_LIMIT',
    ],
  ];
  it.each(options)('to connect with %s', async (_name, wrong, code) => {
    const client = await resolved(1);
    client.createQp();
    await expect(client.connect(wrong)).rejects.toMatchObject({ code });
    expect(client.state).toBe('routeResolved');
  });

  it('options that do not exist or do not fit', () => {
    const id = channel().createId('tcp');
    expect(() => id.setOption('tos', 256)).toThrow(failing('ERR_OUT_OF_RANGE', /0 to 255/));
    expect(() => id.setOption('ackTimeout', 32)).toThrow(failing('ERR_OUT_OF_RANGE', /0 to 31/));
    expect(() => id.setOption('nonsense' as 'tos', 1)).toThrow(
      failing('ERR_OUT_OF_RANGE', /one of tos, reuseAddr/),
    );
    expect(() => id.notify('pathMig' as 'commEst')).toThrow(failing('ERR_OUT_OF_RANGE', /commEst/));
    expect(() => id.initQpAttr('err' as 'rts')).toThrow(failing('ERR_OUT_OF_RANGE', /init/));
    expect(() => id.migrate({} as never)).toThrow(failing('ERR_INVALID_ARG_TYPE', /an EventChannel/));
    expect(() => channel().createId('sctp' as 'tcp')).toThrow(
      failing('ERR_OUT_OF_RANGE', /one of ipoib, tcp, udp, ib/),
    );
  });

  it('anything once it is closed', async () => {
    const id = channel().createId('tcp');
    id.close();
    id.close();
    expect(id.state).toBe('idle');
    expect(() => id.bindAddr(addressA)).toThrow(failing('ERR_RDMA_CLOSED', /is closed/));
    await expect(id.resolveAddr(addressB, 1)).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect(() => id.setOption('tos', 1)).toThrow(failing('ERR_RDMA_CLOSED', /is closed/));
    expect(() => id.context).toThrow(failing('ERR_RDMA_CLOSED', /is closed/));
  });
});
