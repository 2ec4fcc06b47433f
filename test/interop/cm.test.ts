// The connection manager against the C programs of rdmacm-utils, in both roles.
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  Access,
  GRH_BYTES,
  parseGrh,
  RemoteRegion,
  type CmConnectOptions,
  type CmId,
  type MemoryRegion,
} from '../../lib/index.js';
import { addressA, addressB, channel, resolved } from '../support/cm.js';
import { pattern } from '../support/device.js';
import { listeningOnCm, start, type Ended, type Program } from '../support/programs.js';

const DEADLINE = { timeoutMs: 60_000 };
const PACKAGE = 'rdmacm-utils';

/** As the C programs have it; with a retry count of 7 a peer that is gone would never be missed on rxe. */
const LIKE_C: CmConnectOptions = { responderResources: 1, initiatorDepth: 1, retryCount: 5, ...DEADLINE };

let nextPort = 22_000;

function listenOnB(port: number, portSpace: 'tcp' | 'udp' = 'tcp'): CmId {
  const id = channel().createId(portSpace);
  id.bindAddr(addressB, port);
  id.listen();
  return id;
}

async function serverOfC(port: number, file: string, ...args: (string | number)[]): Promise<Program> {
  const program = start(file, args, PACKAGE);
  await listeningOnCm(program, port, DEADLINE.timeoutMs);
  return program;
}

async function sent(id: CmId): Promise<void> {
  const completion = await id.getSendComp(DEADLINE);
  if (completion.error) throw completion.error;
}

async function received(id: CmId): Promise<number> {
  const completion = await id.getRecvComp(DEADLINE);
  if (completion.error) throw completion.error;
  return completion.byteLen!;
}

function succeeded(ended: Ended): void {
  expect(ended, JSON.stringify(ended)).toMatchObject({ status: 0 });
}

describe('rping', () => {
  const COUNT = 5;
  const SIZE = 100;
  const CONTROL = 16;

  /** The text of a ping, with the NUL at its end. */
  function ping(n: number): Buffer {
    const text = Buffer.alloc(SIZE);
    const head = `rdma-ping-${n}: `;
    text.write(head, 'latin1');
    for (let i = head.length, c = 65 + n; i < SIZE - 1; ++i) {
      text[i] = c;
      if (++c > 122) c = 65;
    }
    return text;
  }

  function announce(control: MemoryRegion, region: MemoryRegion): void {
    control.buffer.writeBigUInt64BE(region.address, 0);
    control.buffer.writeUInt32BE(region.rkey, 8);
    control.buffer.writeUInt32BE(SIZE, 12);
  }

  const announced = ({ buffer }: MemoryRegion) =>
    new RemoteRegion(buffer.readBigUInt64BE(0), buffer.readUInt32BE(8), buffer.readUInt32BE(12));

  async function memory(id: CmId) {
    return {
      control: await id.regMsgs(CONTROL),
      incoming: await id.regMsgs(CONTROL),
      data: await id.pd.regMr(SIZE, {
        access: Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE,
      }),
      sink: await id.regWrite(SIZE),
    };
  }

  it('as client: reads what we announce and gets it back', async () => {
    const port = nextPort++;
    const listening = listenOnB(port);
    const client = start(
      'rping',
      ['-c', '-a', addressB, '-I', addressA, '-p', port, '-C', COUNT, '-S', SIZE, '-v', '-V'],
      PACKAGE,
    );
    const id = await listening.getRequest(DEADLINE);
    expect(id.request!.privateData.every((byte) => byte === 0)).toBe(true);
    id.createQp();
    const { control, incoming, data } = await memory(id);
    const receive = () => id.postRecv({ sge: { mr: incoming } });
    const goAhead = async () => {
      id.postSend({ opcode: 'send', sge: { mr: control } });
      await sent(id);
    };
    receive();
    await id.accept(LIKE_C);
    for (let n = 0; n < COUNT; ++n) {
      expect(await received(id)).toBe(CONTROL);
      const source = announced(incoming);
      receive();
      id.postSend({ opcode: 'rdmaRead', sge: { mr: data }, remote: source });
      await sent(id);
      expect(data.buffer).toEqual(ping(n));
      await goAhead();
      expect(await received(id)).toBe(CONTROL);
      const sink = announced(incoming);
      receive();
      id.postSend({ opcode: 'rdmaWrite', sge: { mr: data }, remote: sink });
      await sent(id);
      await goAhead();
    }
    await id.disconnected(DEADLINE);
    const ended = await client.ended;
    succeeded(ended);
    expect(ended.stdout.match(/^ping data: rdma-ping-\d+: /gm)).toHaveLength(COUNT);
  });

  it('as server: reads what we announce and gives it back', async () => {
    const port = nextPort++;
    const server = await serverOfC(
      port,
      'rping',
      '-s',
      '-a',
      addressB,
      '-p',
      port,
      '-C',
      COUNT,
      '-S',
      SIZE,
      '-v',
    );
    const id = await resolved(port);
    id.createQp();
    const { control, incoming, data, sink } = await memory(id);
    const receive = () => id.postRecv({ sge: { mr: incoming } });
    const announceAndWait = async (region: MemoryRegion) => {
      announce(control, region);
      id.postSend({ opcode: 'send', sge: { mr: control } });
      await sent(id);
      expect(await received(id)).toBe(CONTROL);
      receive();
    };
    receive();
    await id.connect(LIKE_C);
    for (let n = 0; n < COUNT; ++n) {
      ping(n).copy(data.buffer);
      sink.buffer.fill(0);
      await announceAndWait(data);
      await announceAndWait(sink);
      expect(sink.buffer).toEqual(ping(n));
    }
    await id.disconnect();
    // Its exit status is not zero after a disconnect in some versions (rdma-core pull request 1622).
    const { stdout } = await server.ended;
    expect(stdout.match(/^server ping data: rdma-ping-\d+: /gm)).toHaveLength(COUNT);
  });

  it('with queue pairs of its own (-q)', async () => {
    const port = nextPort++;
    const server = await serverOfC(
      port,
      'rping',
      '-s',
      '-q',
      '-a',
      addressB,
      '-p',
      port,
      '-C',
      1,
      '-S',
      SIZE,
      '-v',
    );
    const id = await resolved(port);
    const cq = id.context.createCq();
    const qp = id.pd.createQp({ type: 'rc', cq });
    const { control, incoming, data } = await memory(id);
    await qp.modify(id.initQpAttr('init'));
    qp.postRecv({ sge: { mr: incoming } });
    await id.connect({ ...LIKE_C, qp });
    ping(0).copy(data.buffer);
    announce(control, data);
    qp.postSend({ opcode: 'send', sge: { mr: control } });
    for (let done = 0; done < 2;) {
      await cq.wait(DEADLINE);
      for (const { error } of cq.poll()) {
        expect(error).toBeUndefined();
        ++done;
      }
    }
    await id.disconnect();
    expect((await server.ended).stdout).toContain('server ping data: rdma-ping-0: ABC');
    cq.close({ cascade: true });
  });
});

describe('rdma_client and rdma_server', () => {
  async function speak(id: CmId, first: boolean): Promise<void> {
    const [out, into] = [await id.regMsgs(16), await id.regMsgs(16)];
    id.postRecv({ sge: { mr: into } });
    const send = async () => {
      id.postSend({ opcode: 'send', sge: { mr: out } });
      await sent(id);
    };
    if (id.request) await id.accept(LIKE_C);
    else await id.connect(LIKE_C);
    if (first) await send();
    expect(await received(id)).toBe(16);
    if (!first) await send();
  }

  it('rdma_client speaks with us', async () => {
    const port = nextPort++;
    const listening = listenOnB(port);
    const client = start('rdma_client', ['-s', addressB, '-p', port], PACKAGE);
    const id = await listening.getRequest(DEADLINE);
    id.createQp();
    await speak(id, false);
    await id.disconnected(DEADLINE);
    succeeded(await client.ended);
  });

  it('rdma_server speaks with us', async () => {
    const port = nextPort++;
    const server = await serverOfC(port, 'rdma_server', '-s', addressB, '-p', port);
    const id = await resolved(port);
    id.createQp();
    await speak(id, true);
    await id.disconnect();
    succeeded(await server.ended);
  });
});

describe('ucmatose', () => {
  const COUNT = 10;
  const SIZE = 100;

  async function send(id: CmId, region: MemoryRegion): Promise<void> {
    id.postSend(
      Array.from({ length: COUNT }, () => ({ opcode: 'send' as const, sge: { mr: region, length: SIZE } })),
    );
    for (let i = 0; i < COUNT; ++i) await sent(id);
  }

  async function receive(id: CmId): Promise<void> {
    for (let i = 0; i < COUNT; ++i) expect(await received(id)).toBe(SIZE);
  }

  async function ready(id: CmId): Promise<MemoryRegion> {
    id.createQp();
    const region = await id.regMsgs(SIZE);
    id.postRecv(Array.from({ length: COUNT }, () => ({ sge: { mr: region } })));
    return region;
  }

  it('as client: receives our messages and replies', async () => {
    const port = nextPort++;
    const listening = listenOnB(port);
    const client = start(
      'ucmatose',
      ['-s', addressB, '-b', addressA, '-p', port, '-C', COUNT, '-S', SIZE],
      PACKAGE,
    );
    const id = await listening.getRequest(DEADLINE);
    const region = await ready(id);
    await id.accept(LIKE_C);
    await send(id, region);
    await receive(id);
    await id.disconnect();
    const ended = await client.ended;
    succeeded(ended);
    expect(ended.stdout).toContain('data transfers complete');
  });

  it('as server, which migrates its identifiers: sends, and takes our replies', async () => {
    const port = nextPort++;
    const server = await serverOfC(
      port,
      'ucmatose',
      '-b',
      addressB,
      '-p',
      port,
      '-C',
      COUNT,
      '-S',
      SIZE,
      '-m',
    );
    const id = await resolved(port);
    const region = await ready(id);
    await id.connect(LIKE_C);
    await receive(id);
    await send(id, region);
    await id.disconnected(DEADLINE);
    const ended = await server.ended;
    succeeded(ended);
    expect(ended.stdout).toContain('data transfers complete');
  });
});

describe('udaddy', () => {
  const PORT = 7174; // it has no option for it
  const COUNT = 10;
  const SIZE = 100;

  async function ready(id: CmId): Promise<MemoryRegion> {
    id.createQp();
    const region = await id.regMsgs(GRH_BYTES + SIZE);
    id.postRecv(Array.from({ length: COUNT }, () => ({ sge: { mr: region } })));
    return region;
  }

  /** Its messages carry the number of its queue pair, for the answer. */
  async function receive(id: CmId): Promise<number> {
    let from = 0;
    for (let i = 0; i < COUNT; ++i) {
      const completion = await id.getRecvComp(DEADLINE);
      expect(completion).toMatchObject({ status: 'success', byteLen: GRH_BYTES + SIZE });
      from = completion.immData!;
      expect(from).toBe(completion.srcQp);
    }
    return from;
  }

  async function send(
    id: CmId,
    region: MemoryRegion,
    vector: { dgid: string },
    remoteQpn: number,
  ): Promise<void> {
    const ah = await id.pd.createAh(vector);
    id.postSend(
      Array.from({ length: COUNT }, () => ({
        opcode: 'sendWithImm' as const,
        sge: { mr: region, length: SIZE },
        immData: id.qp!.qpNum,
        ud: { ah, remoteQpn, remoteQkey: 0x01234567 },
      })),
    );
    for (let i = 0; i < COUNT; ++i) await sent(id);
  }

  it('as client: sends datagrams and gets ours', async () => {
    const listening = listenOnB(PORT, 'udp');
    const client = start('udaddy', ['-s', addressB, '-b', addressA, '-C', COUNT, '-S', SIZE], PACKAGE);
    const id = await listening.getRequest(DEADLINE);
    const region = await ready(id);
    await id.accept();
    const from = await receive(id);
    await send(id, region, { dgid: parseGrh(region.buffer).sgid }, from);
    succeeded(await client.ended);
    listening.close();
  });

  it('as server: takes our datagrams and answers', async () => {
    const server = await serverOfC(PORT, 'udaddy', '-b', addressB, '-C', COUNT, '-S', SIZE);
    const id = await resolved(PORT, { portSpace: 'udp' });
    const region = await ready(id);
    const { remoteQpn, datagram } = await id.connect(DEADLINE);
    expect(datagram!.remoteQkey).toBe(0x01234567);
    await send(id, region, datagram!.address as { dgid: string }, remoteQpn);
    await receive(id);
    succeeded(await server.ended);
  });
});

describe('mckey', () => {
  const GROUP = '239.9.9.9';
  const COUNT = 10;
  const SIZE = 100;

  function member(address: string): CmId {
    const id = channel().createId('udp');
    id.bindAddr(address);
    id.createQp();
    return id;
  }

  it('as sender: is heard', async () => {
    const id = member(addressB);
    const region = await id.regMsgs(GRH_BYTES + SIZE);
    id.postRecv(Array.from({ length: COUNT }, () => ({ sge: { mr: region } })));
    await id.joinMulticast(GROUP);
    const sender = start('mckey', ['-m', GROUP, '-b', addressA, '-s', '-C', COUNT, '-S', SIZE], PACKAGE);
    for (let i = 0; i < COUNT; ++i) expect(await received(id)).toBe(GRH_BYTES + SIZE);
    succeeded(await sender.ended);
  });

  it('as receiver: hears us', async () => {
    const receiver = start('mckey', ['-m', GROUP, '-b', addressB, '-C', COUNT, '-S', SIZE], PACKAGE);
    const id = member(addressA);
    const group = await id.joinMulticast(GROUP);
    const ah = await group.createAh();
    const region = await id.regMsgs(SIZE);
    pattern(SIZE, 4).copy(region.buffer);
    // Who joins a group is not told to its senders, so they send until it has heard enough.
    const ended = receiver.ended.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([ended, setTimeout(100, false)]))) {
      id.postSend({
        opcode: 'sendWithImm',
        sge: { mr: region },
        immData: id.qp!.qpNum,
        ud: { ah, remoteQpn: group.remoteQpn, remoteQkey: group.remoteQkey },
      });
      await sent(id);
    }
    const how = await receiver.ended;
    succeeded(how);
    expect(how.stdout).toContain('data transfers complete');
  });
});
