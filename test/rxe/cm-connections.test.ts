import { describe, expect, it } from 'vitest';
import { ConnectionError, openDevice, PRIVATE_DATA_LIMITS, type CmId } from '../../lib/index.js';
import {
  address6A,
  address6B,
  addressA,
  addressB,
  channel,
  connected,
  listener,
  meet,
  queueOf,
  resolved,
} from '../support/cm.js';
import { ALL_REMOTE, device, deviceA, deviceB, pattern } from '../support/device.js';

const DEADLINE = { timeoutMs: 20_000 };

/** Sends bytes from one end to the other. */
async function say(from: CmId, to: CmId, bytes: Buffer): Promise<Buffer> {
  const [source, sink] = [await from.regMsgs(bytes.length), await to.regMsgs(bytes.length + 1)];
  bytes.copy(source.buffer);
  to.postRecv({ sge: { mr: sink } });
  from.postSend({ opcode: 'send', sge: { mr: source } });
  const [sent, received] = [await from.getSendComp(DEADLINE), await to.getRecvComp(DEADLINE)];
  expect([sent.error, received.error]).toEqual([undefined, undefined]);
  const copy = Buffer.from(sink.buffer.subarray(0, received.byteLen));
  source.close();
  sink.close();
  return copy;
}

describe('a connection', () => {
  it('is asked for, accepted, used in both directions, and ended', async () => {
    const { client, server, event } = await connected({
      connect: { data: Buffer.from('may I?'), initiatorDepth: 3, responderResources: 5 },
      accept: { data: Buffer.from('you may') },
    });
    expect(server.request!.data!.toString()).toBe('may I?');
    expect(server.request).toMatchObject({
      type: 'connectRequest',
      remoteQpn: client.qp!.qpNum,
      connection: { retryCount: 6, rnrRetryCount: 6, responderResources: 3, initiatorDepth: 5 },
    });
    expect(event.data!.toString()).toBe('you may');
    expect(event.remoteQpn).toBe(server.qp!.qpNum);
    expect([client.state, server.state]).toEqual(['connected', 'connected']);
    expect([client.qp!.state, server.qp!.state]).toEqual(['rts', 'rts']);
    expect(client.localAddress!.address).toBe(addressA);
    expect(client.peerAddress).toEqual(server.localAddress);
    expect(server.peerAddress).toEqual(client.localAddress);
    expect(client.context.device.name).toBe(deviceA);
    expect(server.context.device.name).toBe(deviceB);
    expect(client.route.dgid).toBe(`::ffff:${addressB}`);

    expect(await say(client, server, pattern(5000, 1))).toEqual(pattern(5000, 1));
    expect(await say(server, client, pattern(100, 2))).toEqual(pattern(100, 2));

    const ended = server.disconnected(DEADLINE);
    await client.disconnect();
    await ended;
    expect([client.state, server.state]).toEqual(['disconnected', 'disconnected']);
    expect([client.qp!.state, server.qp!.state]).toEqual(['err', 'err']);
    await server.disconnect(); // nothing is left to do
  });

  it('reads and writes the memory of the peer as deep as was agreed', async () => {
    const { client, server } = await connected({ connect: { initiatorDepth: 4 } });
    expect(client.qp!.query().maxRdAtomic).toBe(4);
    expect(server.qp!.query().maxDestRdAtomic).toBe(4);
    const [local, remote] = [await client.regMsgs(4096), await server.regRead(4096)];
    pattern(4096, 7).copy(remote.buffer);
    client.postSend(
      Array.from({ length: 8 }, (_, i) => ({
        opcode: 'rdmaRead' as const,
        sge: { mr: local, offset: i * 512, length: 512 },
        remote: remote.remote(i * 512, 512),
      })),
    );
    for (let i = 0; i < 8; ++i) expect((await client.getSendComp(DEADLINE)).error).toBeUndefined();
    expect(local.buffer).toEqual(pattern(4096, 7));
  });

  it('makes a peer wait 640 µs and not 655 ms where no receive is posted', async () => {
    const { client, server } = await connected();
    expect([client.qp!.query().minRnrTimer, server.qp!.query().minRnrTimer]).toEqual([12, 12]);
    const other = await connected({ connect: { minRnrTimer: 1 }, accept: { minRnrTimer: 31 } });
    expect([other.client.qp!.query().minRnrTimer, other.server.qp!.query().minRnrTimer]).toEqual([1, 31]);
  });

  it('is made over IPv6', async () => {
    const { id, port } = listener(channel(), address6B);
    const client = await resolved(port, { from: address6A, to: address6B });
    const { server } = await meet(client, id);
    expect(client.peerAddress).toMatchObject({ family: 'IPv6', address: address6B, port });
    expect(await say(client, server, pattern(10, 3))).toEqual(pattern(10, 3));
  });

  it('is found by name and service, and by a wildcard listener', async () => {
    const on = channel();
    const any = on.createId('tcp');
    any.bindAddr('0.0.0.0');
    any.listen();
    const client = on.createId('tcp');
    await client.resolve(addressB, any.localAddress!.port, { source: addressA });
    client.createQp();
    const connecting = client.connect();
    const server = await any.getRequest(DEADLINE);
    expect(server.context.device.name).toBe(deviceB);
    server.createQp();
    await Promise.all([connecting, server.accept()]);
    expect(client.state).toBe('connected');
  });

  it('is made with queue pairs of one’s own, on contexts of one’s own', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    const own = [device(deviceA), device(deviceB)].map((context) => {
      const pd = context.allocPd();
      const cq = context.createCq();
      return { pd, cq, qp: pd.createQp({ type: 'rc', cq }) };
    });
    const connecting = client.connect({ qp: own[0]!.qp, data: Buffer.from('own') });
    const server = await id.getRequest(DEADLINE);
    expect(server.request!.remoteQpn).toBe(own[0]!.qp.qpNum);
    const [event] = await Promise.all([
      connecting,
      server.accept({ qp: own[1]!.qp, data: Buffer.from('too') }),
    ]);
    expect(event).toMatchObject({ type: 'connectResponse', remoteQpn: own[1]!.qp.qpNum });
    expect(event.data!.toString()).toBe('too');
    expect(own.map(({ qp }) => [qp.state, qp.query().minRnrTimer])).toEqual([
      ['rts', 12],
      ['rts', 12],
    ]);
    const memory = own.map(({ pd }) => pd.regMrSync(64));
    memory[0]!.buffer.write('through');
    own[1]!.qp.postRecv({ sge: { mr: memory[1]! } });
    own[0]!.qp.postSend({ opcode: 'send', sge: { mr: memory[0]!, length: 7 } });
    await own[1]!.cq.wait(DEADLINE);
    expect(own[1]!.cq.poll()[0]).toMatchObject({ status: 'success', byteLen: 7 });
    expect(memory[1]!.buffer.toString('utf8', 0, 7)).toBe('through');
    const [from, to] = [own[0]!, own[1]!].map(({ pd }) => pd.regMrSync(64, { access: ALL_REMOTE }));
    to!.buffer.write('read');
    own[0]!.qp.postSend({ opcode: 'rdmaRead', sge: { mr: from!, length: 4 }, remote: to!.remote(0, 4) });
    await own[0]!.cq.wait(DEADLINE);
    expect(own[0]!.cq.poll().map(({ status }) => status)).not.toContain('remAccessErr');
    while (own[0]!.qp.sendQueue.outstanding > 0) {
      await own[0]!.cq.wait(DEADLINE);
      own[0]!.cq.poll();
    }
    expect(from!.buffer.toString('utf8', 0, 4)).toBe('read');
    const ended = server.disconnected(DEADLINE);
    await client.disconnect();
    await ended;
    expect(own.map(({ qp }) => qp.state)).toEqual(['err', 'err']);
  });

  it('is established by hand, step by step', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    const context = device(deviceA);
    const cq = context.createCq();
    const qp = context.allocPd().createQp({ type: 'rc', cq });
    expect(client.initQpAttr('init')).toMatchObject({ qpState: 'init', portNum: 1, pkeyIndex: 0 });
    await expect(client.establish()).rejects.toMatchObject({ code: expect.stringMatching(/^E/) as string });
    const connecting = client.connect({ qp });
    const server = await id.getRequest(DEADLINE);
    server.createQp();
    await Promise.all([connecting, server.accept()]);
    expect(client.initQpAttr('rtr')).toMatchObject({ qpState: 'rtr', destQpNum: server.qp!.qpNum });
    await expect(server.establish()).rejects.toMatchObject({ code: 'EINVAL', syscall: 'rdma_establish' });
  });

  it('can wait long for its end, or not', async () => {
    const { client } = await connected();
    await expect(client.disconnected({ timeoutMs: 30 })).rejects.toMatchObject({ code: 'ERR_RDMA_TIMEOUT' });
    expect(client.state).toBe('connected');
    const abort = new AbortController();
    const waiting = client.disconnected({ signal: abort.signal });
    await expect(client.disconnect()).rejects.toMatchObject({ code: 'ERR_RDMA_BUSY' });
    abort.abort('enough');
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', cause: 'enough' });
    await client.disconnect();
    await client.disconnected();
  });

  it('tells listeners of its events', async () => {
    const seen: string[] = [];
    const { id, port } = listener();
    const client = channel().createId('tcp');
    client.events.on('event', ({ type }) => seen.push(type));
    client.events.on('established', (event) => seen.push(`${event.type} alone`));
    client.events.on('close', () => seen.push('close'));
    await client.resolveAddr(addressB, port, { source: addressA });
    await client.resolveRoute();
    const { server } = await meet(client, id);
    const ended = client.disconnected(DEADLINE);
    await server.disconnect();
    await ended;
    client.close({ cascade: true });
    expect(seen).toEqual([
      'addrResolved',
      'routeResolved',
      'established alone',
      'established',
      'disconnected',
      'close',
    ]);
  });
});

describe('private data', () => {
  it('comes whole at its limits, with zeros behind what was sent', async () => {
    const { connect, accept } = PRIVATE_DATA_LIMITS.tcp;
    const most = await connected({
      connect: { privateData: pattern(connect, 1) },
      accept: { privateData: pattern(accept, 2) },
    });
    expect(most.server.request!.privateData.subarray(0, connect)).toEqual(pattern(connect, 1));
    expect(most.event.privateData.subarray(0, accept)).toEqual(pattern(accept, 2));
    const some = await connected({ connect: { privateData: Buffer.from('abc') } });
    expect(some.server.request!.privateData).toEqual(
      Buffer.concat([Buffer.from('abc'), Buffer.alloc(some.server.request!.privateData.length - 3)]),
    );
    expect(some.event.privateData.every((byte) => byte === 0)).toBe(true);
  });

  it('has its length where it was given as data, also an empty one', async () => {
    const { connect, accept } = PRIVATE_DATA_LIMITS.tcp;
    const { server, event } = await connected({
      connect: { data: pattern(connect - 1, 5) },
      accept: { data: pattern(accept - 1, 6) },
    });
    expect(server.request!.data).toEqual(pattern(connect - 1, 5));
    expect(event.data).toEqual(pattern(accept - 1, 6));
    const trailing = await connected({
      connect: { data: Buffer.of(1, 0, 0) },
      accept: { data: Buffer.alloc(0) },
    });
    expect(trailing.server.request!.data).toEqual(Buffer.of(1, 0, 0));
    expect(trailing.event.data).toEqual(Buffer.alloc(0));
  });
});

describe('a request', () => {
  it('is refused with private data, which the other end learns with the reason', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    client.createQp();
    const connecting = client.connect();
    const server = await id.getRequest(DEADLINE);
    server.reject({ data: Buffer.from('no, since it is late') });
    const error = await connecting.catch((reason: unknown) => reason as ConnectionError);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({
      code: 'ECONNREFUSED',
      event: 'rejected',
      status: 28,
      reason: 'consumerDefined',
      message: expect.stringContaining("peer's program has refused") as string,
    });
    expect((error as ConnectionError).data!.toString()).toBe('no, since it is late');
    expect(client.state).toBe('failed');
    expect(client.qp!.state).toBe('err');
    await expect(client.connect()).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    await expect(server.accept()).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  });

  it('that nobody takes is refused, beyond the backlog and when the listener closes', async () => {
    const on = channel();
    const id = on.createId('tcp');
    id.bindAddr(addressB);
    id.listen(1);
    const { port } = id.localAddress!;
    const [first, second] = await Promise.all([resolved(port), resolved(port)]);
    first.createQp();
    second.createQp();
    // On two processors, either may be the first to come.
    const refusals: unknown[] = [];
    const refused = [first, second].map((client) =>
      client.connect(DEADLINE).catch((reason: unknown) => refusals.push(reason)),
    );
    await Promise.race(refused);
    expect(refusals).toEqual([expect.objectContaining({ code: 'ECONNREFUSED' })]);
    id.close();
    await Promise.all(refused);
    expect(refusals[1]).toMatchObject({ code: 'ECONNREFUSED', reason: 'consumerDefined' });
  });

  it('whose peer has given up is not accepted, and closes', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    client.createQp();
    const connecting = client.connect();
    const server = await id.getRequest(DEADLINE);
    client.close({ cascade: true });
    await expect(connecting).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    expect(() => server.createQp()).toThrow(
      expect.objectContaining({
        code: 'EINVAL',
        message: expect.stringContaining('The peer may have given up') as string,
      }) as Error,
    );
    server.close({ cascade: true });
  });
});

describe('a listener', () => {
  it('gives requests as they come, until it is closed', async () => {
    const { id, port } = listener();
    const names: string[] = [];
    const serving = (async () => {
      for await (const request of id.requests()) {
        names.push(request.request!.data!.toString());
        request.createQp();
        await request.accept();
      }
    })();
    for (const name of ['one', 'two', 'three']) {
      const client = await resolved(port);
      client.createQp();
      await client.connect({ data: Buffer.from(name) });
    }
    id.close();
    await serving;
    expect(names).toEqual(['one', 'two', 'three']);
  });

  it('waits with a deadline and a signal, and its end ends the wait', async () => {
    const { id } = listener();
    await expect(id.getRequest({ timeoutMs: 20 })).rejects.toMatchObject({ code: 'ERR_RDMA_TIMEOUT' });
    await expect(id.getRequest({ signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
      name: 'AbortError',
    });
    const waiting = id.getRequest();
    id.close();
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });

  it('refuses an address that is taken, unless both say that they share it', () => {
    const { port } = listener();
    const on = channel();
    const second = on.createId('tcp');
    expect(() => second.bindAddr(addressB, port)).toThrow(
      expect.objectContaining({
        code: 'EADDRINUSE',
        message: expect.stringMatching(/choose another port, or 0/) as string,
      }) as Error,
    );
    const [a, b] = [on.createId('tcp'), on.createId('tcp')];
    for (const id of [a, b]) id.setOption('reuseAddr', true);
    a.bindAddr(addressB, 0);
    b.bindAddr(addressB, a.localAddress!.port);
    expect(b.localAddress).toEqual(a.localAddress);
  });
});

describe('an identifier', () => {
  it('moves to another channel, with its connection', async () => {
    const { client, server } = await connected();
    const [old, fresh] = [client.channel, channel()];
    client.migrate(fresh);
    expect(client.channel).toBe(fresh);
    const ended = client.disconnected(DEADLINE);
    await server.disconnect();
    await ended;
    old.close();
    expect(() => fresh.close()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_BUSY' }) as Error);
  });

  it('moves while it listens', async () => {
    const { id, port } = listener();
    const fresh = channel();
    id.migrate(fresh);
    const client = await resolved(port);
    client.createQp();
    const connecting = client.connect();
    const server = await id.getRequest(DEADLINE);
    expect(server.channel).toBe(fresh);
    server.createQp();
    await Promise.all([connecting, server.accept()]);
  });

  it('takes a traffic class and an acknowledge timeout, which its queue pair then has', async () => {
    const { id, port } = listener();
    const on = channel();
    const client = on.createId('tcp');
    client.setOption('tos', 104);
    client.setOption('ackTimeout', 16);
    client.setOption('afOnly', false);
    await client.resolveAddr(addressB, port, { source: addressA });
    await client.resolveRoute();
    await meet(client, id);
    expect(client.qp!.query()).toMatchObject({ timeout: 16, ahAttr: { trafficClass: 104 } });
  });

  it('offers ECE options, which the peer learns and may refuse', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    expect(client.getRemoteEce()).toEqual({ vendorId: 0, options: 0 });
    expect(() => client.setLocalEce({ vendorId: 0, options: 0 })).toThrow(
      expect.objectContaining({ code: 'EINVAL' }) as Error,
    );
    client.setLocalEce({ vendorId: 0x15b3, options: 5 });
    const qp = client.pd.createQp({ type: 'rc', cq: queueOf(client) });
    const connecting = client.connect({ qp });
    const server = await id.getRequest(DEADLINE);
    expect(server.getRemoteEce()).toEqual({ vendorId: 0x15b3, options: 5 });
    server.reject({ ece: true });
    await expect(connecting).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      reason: 'vendorOption',
      status: 35,
    });
  });

  it('shares a protection domain and completion queues with others of its device', async () => {
    const { id, port } = listener();
    const clients = await Promise.all([resolved(port), resolved(port)]);
    const { context } = clients[0];
    expect(clients[1].context).toBe(context);
    const pd = context.allocPd();
    const cq = context.createCq();
    for (const client of clients) {
      client.createQp({ pd, cq });
      const connecting = client.connect();
      const server = await id.getRequest(DEADLINE);
      server.createQp();
      await Promise.all([connecting, server.accept()]);
    }
    expect(clients.map(({ qp }) => qp!.sendCq)).toEqual([cq, cq]);
    for (const client of clients) client.close({ cascade: true });
    cq.close();
    pd.close();
  });

  it('takes its receives from a shared receive queue', async () => {
    const { id, port } = listener();
    const client = await resolved(port);
    client.createQp();
    const connecting = client.connect();
    const server = await id.getRequest(DEADLINE);
    const srq = server.createSrq({ maxWr: 16 });
    server.createQp({ recvCq: server.context.createCq({ cqe: 64 }) });
    expect(server.qp!.srq).toBe(srq);
    await Promise.all([connecting, server.accept()]);
    const [source, sink] = [await client.regMsgs(16), await server.regMsgs(16)];
    srq.postRecv({ sge: { mr: sink } });
    client.postSend({ opcode: 'send', sge: { mr: source } });
    expect(await server.getRecvComp(DEADLINE)).toMatchObject({ status: 'success', byteLen: 16 });
    const { recvCq } = server.qp!;
    server.close({ cascade: true });
    recvCq.close();
  });

  it('names what it was opened on: a context of openDevice() is not the connection manager’s', async () => {
    const client = await resolved(1);
    const own = openDevice(deviceA);
    const pd = own.allocPd();
    expect(() => client.createQp({ pd })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_FOREIGN_OBJECT',
        message: expect.stringContaining('id.context.allocPd()') as string,
      }) as Error,
    );
    own.close({ cascade: true });
  });
});
