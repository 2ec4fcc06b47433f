import { expect } from 'vitest';
import { getAddressInfo, GRH_BYTES, PRIVATE_DATA_LIMITS, type CmId } from '../../../lib/index.js';
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
} from '../../support/cm.js';
import { deviceA, deviceB, pattern } from '../../support/device.js';
import { capability, fails } from './cases.js';

const IN_TIME = { timeoutMs: 20_000 };
const GROUP = '239.4.5.6';

/** A message from one end to the other, checked. */
async function says(from: CmId, to: CmId, bytes: Buffer): Promise<void> {
  const [source, sink] = [await from.regMsgs(bytes.length), await to.regMsgs(bytes.length + 8)];
  bytes.copy(source.buffer);
  to.postRecv({ sge: { mr: sink } });
  from.postSend({ opcode: 'send', sge: { mr: source } });
  expect(await from.getSendComp(IN_TIME)).toMatchObject({ status: 'success' });
  expect(await to.getRecvComp(IN_TIME)).toMatchObject({ status: 'success', byteLen: bytes.length });
  expect(sink.buffer.subarray(0, bytes.length)).toEqual(bytes);
}

async function ends(client: CmId, server: CmId): Promise<void> {
  const ended = server.disconnected(IN_TIME);
  await client.disconnect();
  await ended;
  expect([client.state, server.state]).toEqual(['disconnected', 'disconnected']);
  expect([client.qp?.state, server.qp?.state]).toEqual(['err', 'err']);
}

const connections = capability('connection manager');

connections('connect, messages both ways, disconnect', 'rdmacm_sync_traffic', async () => {
  const { client, server } = await connected();
  expect([client.context.device.name, server.context.device.name]).toEqual([deviceA, deviceB]);
  await says(client, server, pattern(3000, 1));
  await says(server, client, pattern(300, 2));
  await ends(client, server);
});

connections('by events, with an acknowledge timeout of its own', 'rdmacm_async_traffic', async () => {
  const { id, port } = listener();
  const client = channel().createId('tcp');
  const seen: string[] = [];
  client.events.on('event', ({ type }) => seen.push(type));
  client.setOption('ackTimeout', 17);
  await client.resolveAddr(addressB, port, { source: addressA });
  await client.resolveRoute();
  const { server } = await meet(client, id);
  expect(client.qp!.query().timeout).toBe(17);
  await says(client, server, pattern(64, 3));
  await ends(client, server);
  expect(seen.slice(0, 3)).toEqual(['addrResolved', 'routeResolved', 'established']);
});

connections('a request is refused, with data for the peer', 'rdmacm_async_reject_traffic', async () => {
  const { id, port } = listener();
  const client = await resolved(port);
  client.createQp();
  const connecting = client.connect();
  const server = await id.getRequest(IN_TIME);
  server.reject({ data: Buffer.from('not today') });
  const error = (await connecting.catch((reason: unknown) => reason)) as { data: Buffer };
  expect(error).toMatchObject({ code: 'ECONNREFUSED', event: 'rejected', reason: 'consumerDefined' });
  expect(error.data.toString()).toBe('not today');
  expect(client.state).toBe('failed');
});

connections('queue pairs of the program', 'rdmacm_async_traffic_external_qp', async () => {
  const { id, port } = listener();
  const client = await resolved(port);
  const cq = queueOf(client);
  const qp = client.pd.createQp({ type: 'rc', cq });
  const connecting = client.connect({ qp });
  const server = await id.getRequest(IN_TIME);
  const serverCq = queueOf(server);
  const serverQp = server.pd.createQp({ type: 'rc', cq: serverCq });
  const [event] = await Promise.all([connecting, server.accept({ qp: serverQp })]);
  expect(event).toMatchObject({ type: 'connectResponse', remoteQpn: serverQp.qpNum });
  expect([qp.query().qpState, serverQp.query().qpState]).toEqual(['rts', 'rts']);
  const [source, sink] = [client.pd.regMrSync(32), server.pd.regMrSync(32)];
  source.buffer.write('external');
  serverQp.postRecv({ sge: { mr: sink } });
  qp.postSend({ opcode: 'send', sge: { mr: source, length: 8 } });
  await serverCq.wait(IN_TIME);
  expect(serverCq.poll()).toMatchObject([{ status: 'success', byteLen: 8 }]);
  expect(sink.buffer.toString('latin1', 0, 8)).toBe('external');
});

connections('datagrams go where the event says', 'rdmacm_async_udp_traffic', async () => {
  const { id, port } = listener(channel(), addressB, 'udp');
  const client = await resolved(port, { portSpace: 'udp' });
  client.createQp();
  const connecting = client.connect();
  const server = await id.getRequest(IN_TIME);
  server.createQp();
  await server.accept();
  const { remoteQpn, datagram } = await connecting;
  expect(remoteQpn).toBe(server.qp!.qpNum);
  const [source, sink] = [await client.regMsgs(100), await server.regMsgs(200)];
  pattern(100, 4).copy(source.buffer);
  server.postRecv({ sge: { mr: sink } });
  const ah = await client.pd.createAh(datagram!.address);
  client.postSend({
    opcode: 'send',
    sge: { mr: source },
    ud: { ah, remoteQpn, remoteQkey: datagram!.remoteQkey },
  });
  expect(await server.getRecvComp(IN_TIME)).toMatchObject({
    status: 'success',
    byteLen: GRH_BYTES + 100,
    srcQp: client.qp!.qpNum,
  });
  expect(sink.buffer.subarray(GRH_BYTES, GRH_BYTES + 100)).toEqual(pattern(100, 4));
});

connections('READ', 'rdmacm_async_read', async () => {
  const { client, server } = await connected();
  const [local, remote] = [await client.regMsgs(4096), await server.regRead(4096)];
  pattern(4096, 5).copy(remote.buffer);
  client.postSend({ opcode: 'rdmaRead', sge: { mr: local }, remote: remote.remote() });
  expect(await client.getSendComp(IN_TIME)).toMatchObject({ status: 'success', opcode: 'rdmaRead' });
  expect(local.buffer).toEqual(pattern(4096, 5));
});

connections('WRITE', 'rdmacm_async_write', async () => {
  const { client, server } = await connected();
  const [local, remote] = [await client.regMsgs(4096), await server.regWrite(4096)];
  pattern(4096, 6).copy(local.buffer);
  client.postSend({ opcode: 'rdmaWrite', sge: { mr: local }, remote: remote.remote() });
  expect(await client.getSendComp(IN_TIME)).toMatchObject({ status: 'success', opcode: 'rdmaWrite' });
  expect(remote.buffer).toEqual(pattern(4096, 6));
});

async function member(address: string, options = {}) {
  const id = channel().createId('udp');
  id.bindAddr(address);
  id.createQp();
  return { id, group: await id.joinMulticast(GROUP, options) };
}
type Member = Awaited<ReturnType<typeof member>>;

async function tells({ id, group }: Member, seed: number): Promise<void> {
  const mr = await id.regMsgs(48);
  pattern(48, seed).copy(mr.buffer);
  const { remoteQpn, remoteQkey } = group;
  id.postSend({ opcode: 'send', sge: { mr }, ud: { ah: await group.createAh(), remoteQpn, remoteQkey } });
  expect(await id.getSendComp(IN_TIME)).toMatchObject({ status: 'success' });
}

async function hears({ id }: Member, from: Member, seed: number, sent: () => Promise<void>): Promise<void> {
  const mr = await id.regMsgs(256);
  id.postRecv({ sge: { mr } });
  await sent();
  expect(await id.getRecvComp(IN_TIME)).toMatchObject({
    byteLen: GRH_BYTES + 48,
    srcQp: from.id.qp!.qpNum,
  });
  expect(mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 48)).toEqual(pattern(48, seed));
}

connections('a group is joined, and hears what is sent to it', 'rdmacm_async_multicast_traffic', async () => {
  const [sender, receiver] = [await member(addressA), await member(addressB)];
  await hears(receiver, sender, 7, () => tells(sender, 7));
});

connections('a group is joined to send only', 'rdmacm_async_ex_multicast_traffic', async () => {
  const [sender, receiver] = [await member(addressA, { sendOnly: true }), await member(addressB)];
  await hears(receiver, sender, 8, () => tells(sender, 8));
});

connections('a group that was left is silent', 'rdmacm_async_ex_leave_multicast_traffic', async () => {
  const [sender, receiver, other] = [await member(addressA), await member(addressB), await member(addressB)];
  const mr = await receiver.id.regMsgs(256);
  receiver.group.leave();
  receiver.id.postRecv({ sge: { mr } });
  // The other member is how one knows that the datagram has come.
  await hears(other, sender, 9, () => tells(sender, 9));
  await expect(receiver.id.getRecvComp({ timeoutMs: 50 })).rejects.toMatchObject({
    code: 'ERR_RDMA_TIMEOUT',
  });
  fails(() => receiver.group.leave(), { code: 'EADDRNOTAVAIL' });
});

connections('an address is found by name and service', 'rdmacm_async_resolve_addrinfo', async () => {
  const { id, port } = listener();
  const [found] = await getAddressInfo(addressB, port);
  expect(found!.destination).toMatchObject({ family: 'IPv4', address: addressB, port });
  const client = channel().createId('tcp');
  await client.resolve(addressB, port, { source: addressA });
  const { server } = await meet(client, id);
  await says(client, server, pattern(16, 10));
});

connections('private data comes whole at its limits, and not beyond', [], async () => {
  const { connect, accept } = PRIVATE_DATA_LIMITS.tcp;
  const { server, event } = await connected({
    connect: { privateData: pattern(connect, 1) },
    accept: { privateData: pattern(accept, 2) },
  });
  expect(server.request!.privateData.subarray(0, connect)).toEqual(pattern(connect, 1));
  expect(event.privateData.subarray(0, accept)).toEqual(pattern(accept, 2));
  const { port } = listener();
  const client = await resolved(port);
  client.createQp();
  await expect(client.connect({ privateData: Buffer.alloc(connect + 1) })).rejects.toMatchObject({
    code: 'ERR_RDMA_LIMIT',
  });
});

connections('where nobody listens one is told so', [], async () => {
  const client = await resolved(9);
  client.createQp();
  await expect(client.connect()).rejects.toMatchObject({
    code: 'ECONNREFUSED',
    event: 'rejected',
    reason: 'invalidServiceId',
    status: 8,
  });
});

connections('IPv6', [], async () => {
  const { id, port } = listener(channel(), address6B);
  const client = await resolved(port, { from: address6A, to: address6B });
  const { server } = await meet(client, id);
  expect(client.peerAddress).toMatchObject({ family: 'IPv6', address: address6B, port });
  await says(client, server, pattern(32, 11));
});

connections('a port that is free, and one address for two', [], () => {
  const on = channel();
  const [one, other, third] = [on.createId('tcp'), on.createId('tcp'), on.createId('tcp')];
  for (const id of [one, other]) id.setOption('reuseAddr', true);
  one.bindAddr(addressB);
  const { port } = one.localAddress!;
  expect(port).toBeGreaterThan(0);
  other.bindAddr(addressB, port);
  fails(() => third.bindAddr(addressB, port), { code: 'EADDRINUSE' });
});

connections('an identifier moves to another channel, with its events', [], async () => {
  const { id, port } = listener();
  const client = await resolved(port);
  const fresh = channel();
  client.migrate(fresh);
  expect(client.channel).toBe(fresh);
  const { server } = await meet(client, id);
  await says(client, server, pattern(8, 12));
});

connections('the class of traffic of a connection', [], async () => {
  const { id, port } = listener();
  const client = channel().createId('tcp');
  client.setOption('tos', 104);
  await client.resolveAddr(addressB, port, { source: addressA });
  await client.resolveRoute();
  await meet(client, id);
  expect(client.qp!.query().ahAttr.trafficClass).toBe(104);
});
