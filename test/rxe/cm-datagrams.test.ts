import { describe, expect, it } from 'vitest';
import { GRH_BYTES, PRIVATE_DATA_LIMITS, type CmId } from '../../lib/index.js';
import { addressA, addressB, channel, listener, queueOf, resolved } from '../support/cm.js';
import { pattern } from '../support/device.js';

const DEADLINE = { timeoutMs: 20_000 };
const GROUP = '239.7.7.7';

async function peers() {
  const { id, port } = listener(channel(), addressB, 'udp');
  const client = await resolved(port, { portSpace: 'udp' });
  client.createQp();
  const connecting = client.connect({ data: Buffer.from('where?') });
  const server = await id.getRequest(DEADLINE);
  expect(server.request!.data!.toString()).toBe('where?');
  server.createQp();
  await server.accept({ data: Buffer.from('here') });
  return { client, server, event: await connecting };
}

describe('datagrams', () => {
  it('go where the event says', async () => {
    const { client, server, event } = await peers();
    expect(event.data!.toString()).toBe('here');
    expect(event).toMatchObject({ type: 'established', remoteQpn: server.qp!.qpNum });
    expect(event.datagram).toMatchObject({ remoteQkey: 0x01234567, address: { dgid: `::ffff:${addressB}` } });
    const [source, sink] = [await client.regMsgs(100), await server.regMsgs(200)];
    pattern(100, 1).copy(source.buffer);
    server.postRecv({ sge: { mr: sink } });
    const ah = await client.pd.createAh(event.datagram!.address);
    client.postSend({
      opcode: 'sendWithImm',
      sge: { mr: source },
      immData: 7,
      ud: { ah, remoteQpn: event.remoteQpn, remoteQkey: event.datagram!.remoteQkey },
    });
    expect(await server.getRecvComp(DEADLINE)).toMatchObject({
      status: 'success',
      byteLen: GRH_BYTES + 100,
      immData: 7,
      srcQp: client.qp!.qpNum,
    });
    expect(sink.buffer.subarray(GRH_BYTES, GRH_BYTES + 100)).toEqual(pattern(100, 1));
    await expect(client.disconnect()).rejects.toMatchObject({
      code: 'ERR_RDMA_INVALID_STATE',
      message: expect.stringContaining('for datagrams') as string,
    });
  });

  it('are asked for and refused, or there is nobody', async () => {
    const { id, port } = listener(channel(), addressB, 'udp');
    const client = await resolved(port, { portSpace: 'udp' });
    client.createQp();
    const connecting = client.connect();
    const server = await id.getRequest(DEADLINE);
    server.reject();
    await expect(connecting).rejects.toMatchObject({ code: 'ECONNREFUSED', reason: 'rejected', status: 2 });
    const lost = await resolved(9, { portSpace: 'udp' });
    lost.createQp();
    await expect(lost.connect()).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      reason: 'unsupported',
      message: expect.stringContaining('nobody listens') as string,
    });
  });

  it('have private data of their own lengths', async () => {
    const most = PRIVATE_DATA_LIMITS.udp;
    const { id, port } = listener(channel(), addressB, 'udp');
    const client = await resolved(port, { portSpace: 'udp' });
    client.createQp();
    await expect(client.connect({ privateData: Buffer.alloc(most.connect + 1) })).rejects.toMatchObject({
      code: 'ERR_RDMA_LIMIT',
      message: expect.stringContaining(`carries (${most.connect})`) as string,
    });
    const connecting = client.connect({ privateData: pattern(most.connect, 1) });
    const server = await id.getRequest(DEADLINE);
    expect(server.request!.privateData.subarray(0, most.connect)).toEqual(pattern(most.connect, 1));
    server.createQp();
    await server.accept({ privateData: pattern(most.accept, 2) });
    expect((await connecting).privateData.subarray(0, most.accept)).toEqual(pattern(most.accept, 2));
  });

  it('are sent with a queue pair of one’s own', async () => {
    const { id, port } = listener(channel(), addressB, 'udp');
    const client = await resolved(port, { portSpace: 'udp' });
    const cq = queueOf(client);
    const qp = client.pd.createQp({ type: 'ud', cq });
    const connecting = client.connect({ qp });
    const server = await id.getRequest(DEADLINE);
    const serverCq = queueOf(server);
    const serverQp = server.pd.createQp({ type: 'ud', cq: serverCq });
    await server.accept({ qp: serverQp });
    expect(await connecting).toMatchObject({
      remoteQpn: serverQp.qpNum,
      datagram: { remoteQkey: 0x01234567 },
    });
    expect([qp.state, serverQp.state]).toEqual(['rts', 'rts']);
  });
});

describe('a multicast group', () => {
  async function member(
    address: string,
    options = {},
  ): Promise<{ id: CmId; group: Awaited<ReturnType<CmId['joinMulticast']>> }> {
    const id = channel().createId('udp');
    id.bindAddr(address);
    id.createQp();
    return { id, group: await id.joinMulticast(GROUP, options) };
  }

  it('is joined, sent to, and left', async () => {
    const sender = await member(addressA);
    const receiver = await member(addressB);
    expect(sender.group).toMatchObject({ remoteQpn: 0xffffff, address: GROUP });
    const [source, sink] = [await sender.id.regMsgs(64), await receiver.id.regMsgs(256)];
    pattern(64, 9).copy(source.buffer);
    const ah = await sender.group.createAh();
    const send = () =>
      sender.id.postSend({
        opcode: 'send',
        sge: { mr: source },
        ud: { ah, remoteQpn: sender.group.remoteQpn, remoteQkey: sender.group.remoteQkey },
      });
    receiver.id.postRecv({ sge: { mr: sink } });
    send();
    expect(await receiver.id.getRecvComp(DEADLINE)).toMatchObject({
      status: 'success',
      byteLen: GRH_BYTES + 64,
    });
    expect(sink.buffer.subarray(GRH_BYTES, GRH_BYTES + 64)).toEqual(pattern(64, 9));

    receiver.group.leave();
    receiver.id.postRecv({ sge: { mr: sink } });
    await sender.id.getSendComp(DEADLINE);
    send();
    await sender.id.getSendComp(DEADLINE);
    await expect(receiver.id.getRecvComp({ timeoutMs: 300 })).rejects.toMatchObject({
      code: 'ERR_RDMA_TIMEOUT',
    });
    expect(() => receiver.group.leave()).toThrow(expect.objectContaining({ code: 'EADDRNOTAVAIL' }) as Error);
  });

  it('is joined to send to it alone', async () => {
    const receiver = await member(addressB);
    const sender = await member(addressA, { sendOnly: true });
    const [source, sink] = [await sender.id.regMsgs(8), await receiver.id.regMsgs(256)];
    receiver.id.postRecv({ sge: { mr: sink } });
    sender.id.postSend({
      opcode: 'send',
      sge: { mr: source },
      ud: {
        ah: await sender.group.createAh(),
        remoteQpn: sender.group.remoteQpn,
        remoteQkey: sender.group.remoteQkey,
      },
    });
    expect(await receiver.id.getRecvComp(DEADLINE)).toMatchObject({ byteLen: GRH_BYTES + 8 });
  });

  it('needs an identifier for datagrams, on a device, and an address of a group', async () => {
    const tcp = channel().createId('tcp');
    await expect(tcp.joinMulticast(GROUP)).rejects.toMatchObject({
      code: 'ERR_RDMA_INVALID_STATE',
      message: expect.stringContaining("port space 'udp'") as string,
    });
    const unbound = channel().createId('udp');
    await expect(unbound.joinMulticast(GROUP)).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    const bound = channel().createId('udp');
    bound.bindAddr(addressA);
    bound.createQp();
    await expect(bound.joinMulticast('10.1.2.3')).rejects.toMatchObject({
      code: 'EINVAL',
      event: 'multicastError',
      message: expect.stringMatching(/group 10\.1\.2\.3 could not be joined/) as string,
    });
    await expect(bound.joinMulticast('not-a-group')).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    expect(() => bound.leaveMulticast(GROUP)).toThrow(
      expect.objectContaining({ code: 'EADDRNOTAVAIL' }) as Error,
    );
  });
});
