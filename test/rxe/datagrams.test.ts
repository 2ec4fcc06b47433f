import { describe, expect, it } from 'vitest';
import { GRH_BYTES, parseGrh, type AddressHandle, type SendRequest } from '../../lib/index.js';
import { completions, deviceA, deviceB, end, pattern, succeeded, type End } from '../support/device.js';

interface Peer extends End {
  /** The way to the other end. */
  ah: AddressHandle;
}

async function peers(qkeys: [number, number] = [0x11111111, 0x22222222]): Promise<{ a: Peer; b: Peer }> {
  const ends = [end(deviceA, { qp: { type: 'ud' } }), end(deviceB, { qp: { type: 'ud' } })];
  for (const [i, one] of ends.entries()) await one.qp.start({ qkey: qkeys[i]! });
  const [a, b] = ends as [End, End];
  const ah = await a.pd.createAh({ dgid: b.qp.endpoint().gid, trafficClass: 104, hopLimit: 7 });
  const back = await b.pd.createAh({ dgid: a.qp.endpoint().gid });
  return { a: { ...a, ah }, b: { ...b, ah: back } };
}

const to = (from: Peer, target: Peer): SendRequest['ud'] => {
  const { qpNum, qkey } = target.qp.endpoint();
  return { ah: from.ah, remoteQpn: qpNum, remoteQkey: qkey! };
};

describe('a queue pair for datagrams', () => {
  it('sends to whom an address handle leads, and the receiver learns from whom', async () => {
    const { a, b } = await peers();
    expect(a.qp.query()).toMatchObject({ qpState: 'rts', qkey: 0x11111111 });
    const { activeMtu } = a.context.queryPort();
    for (const size of [0, 1, 100, activeMtu - 1, activeMtu]) {
      const bytes = pattern(size, size);
      bytes.copy(a.mr.buffer);
      b.mr.buffer.fill(0xee);
      b.qp.postRecv({ wrId: size, sge: { mr: b.mr, offset: 64, length: GRH_BYTES + activeMtu } });
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: size }, ud: to(a, b)! });
      await succeeded(a.cq);
      const received = await succeeded(b.cq);
      expect(received).toMatchObject({
        wrId: BigInt(size),
        byteLen: GRH_BYTES + size,
        srcQp: a.qp.qpNum,
        opcode: 'recv',
      });
      expect(b.mr.buffer.subarray(64 + GRH_BYTES, 64 + GRH_BYTES + size)).toEqual(bytes);
      expect(b.mr.buffer[64 + GRH_BYTES + size]).toBe(0xee);
      expect(parseGrh(b.mr.buffer.subarray(64, 64 + GRH_BYTES))).toMatchObject({
        sgid: a.qp.endpoint().gid,
        dgid: b.qp.endpoint().gid,
        trafficClass: 104,
      });
    }
  });

  it('answers whom it heard, by the completion and the header alone', async () => {
    const { a, b } = await peers();
    for (const make of ['createAhFromWc', 'createAhFromWcSync'] as const) {
      b.qp.postRecv({ sge: { mr: b.mr, length: 4096 } });
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 10 }, ud: to(a, b)! });
      await succeeded(a.cq);
      const heard = await succeeded(b.cq);
      const ah = await b.pd[make](heard, b.mr.buffer.subarray(0, GRH_BYTES));
      expect(ah.vector).toMatchObject({
        dgid: a.qp.endpoint().gid,
        sgidIndex: b.context.chooseGid({ address: b.qp.endpoint().gid }).index,
        trafficClass: 104,
        sl: 0,
        portNum: 1,
      });
      pattern(100, 7).copy(b.mr.buffer, 8192);
      a.qp.postRecv({ sge: { mr: a.mr, offset: 16384, length: 4096 } });
      b.qp.postSend({
        opcode: 'send',
        sge: { mr: b.mr, offset: 8192, length: 100 },
        ud: { ah, remoteQpn: heard.srcQp!, remoteQkey: a.qp.endpoint().qkey! },
      });
      await succeeded(b.cq);
      const answer = await succeeded(a.cq);
      expect(answer).toMatchObject({ byteLen: GRH_BYTES + 100, srcQp: b.qp.qpNum });
      const at = 16384 + GRH_BYTES;
      expect(a.mr.buffer.subarray(at, at + 100)).toEqual(pattern(100, 7));
      ah.close();
    }
  });

  it('finds no way back from what is no datagram, or has no header', async () => {
    const { a, b } = await peers();
    b.qp.postRecv({ sge: { mr: b.mr, length: 4096 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 10 }, ud: to(a, b)! });
    const sent = await succeeded(a.cq);
    const heard = await succeeded(b.cq);
    const header = Buffer.from(b.mr.buffer.subarray(0, GRH_BYTES));
    const refused: [unknown, unknown, RegExp][] = [
      [undefined, header, /"completion" must be/],
      [null, header, /"completion" must be/],
      [sent, header, /"completion" must be of a datagram that was received, not send/],
      [{ ...heard, wcFlags: 0 }, header, /"completion" must be of a datagram: on RoCE/],
      [{ ...heard, sl: 16 }, header, /"completion.sl" must be/],
      [{ ...heard, slid: -1 }, header, /"completion.slid" must be/],
      [heard, undefined, /"bytes" must be a Uint8Array/],
      [heard, header.subarray(1), /"bytes" must be at least 40 bytes long/],
      [heard, Buffer.alloc(GRH_BYTES), /"bytes" must be an IPv6 header, or an IPv4 header/],
    ];
    for (const [completion, bytes, message] of refused) {
      const arguments_ = [completion, bytes] as Parameters<typeof b.pd.createAhFromWc>;
      await expect(b.pd.createAhFromWc(...arguments_)).rejects.toThrow(message);
      expect(() => b.pd.createAhFromWcSync(...arguments_)).toThrow(message);
    }
    await expect(b.pd.createAhFromWc(heard, header, { portNum: 2 })).rejects.toThrow(/"port" must be/);
    // Sent to an address that this port does not have.
    const stray = Buffer.from(header);
    if (stray[0]! >> 4 === 6) stray[39]! ^= 0x55;
    else {
      stray[39]! ^= 0x55;
      // The library looks at the checksum to tell an IPv4 header from other bytes.
      stray.writeUInt16BE(0, 30);
      let sum = 0;
      for (let i = 20; i < 40; i += 2) sum += stray.readUInt16BE(i);
      while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
      stray.writeUInt16BE(~sum & 0xffff, 30);
    }
    await expect(b.pd.createAhFromWc(heard, stray)).rejects.toThrow(
      expect.objectContaining({
        syscall: 'ibv_create_ah_from_wc',
        message: expect.stringContaining('is in the table of this port no more') as string,
      }) as Error,
    );
  });

  it('takes no receive that has no room for the header', async () => {
    const { b } = await peers();
    expect(() => b.qp.postRecv({ sge: { mr: b.mr, length: GRH_BYTES - 1 } })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_INVALID_DESCRIPTOR',
        message: expect.stringContaining('39 bytes take no datagram: the GRH before it needs 40') as string,
      }) as Error,
    );
    expect(b.qp.receiveQueue.outstanding).toBe(0);
    b.qp.postRecv({ sge: { mr: b.mr, length: GRH_BYTES } });
  });

  it('carries immediate data', async () => {
    const { a, b } = await peers();
    b.qp.postRecv({ sge: { mr: b.mr, length: 4096 } });
    a.qp.postSend({
      opcode: 'sendWithImm',
      sge: { mr: a.mr, length: 4 },
      ud: to(a, b)!,
      immData: 0xcafebabe,
    });
    await succeeded(a.cq);
    expect(await succeeded(b.cq)).toMatchObject({ immData: 0xcafebabe });
  });

  it('refuses a message longer than the MTU, which would be lost without a word', async () => {
    const { a, b } = await peers();
    const { activeMtu } = a.context.queryPort();
    expect(() =>
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: activeMtu + 1 }, ud: to(a, b)! }),
    ).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_INVALID_DESCRIPTOR',
        message: expect.stringMatching(/active MTU.*lost/) as string,
      }) as Error,
    );
  });

  it.each([
    ['without a target', () => undefined],
    ['to a QPN of 25 bits', (from: Peer) => ({ ah: from.ah, remoteQpn: 2 ** 24, remoteQkey: 0 })],
    ['with a Q_Key of 33 bits', (from: Peer) => ({ ah: from.ah, remoteQpn: 1, remoteQkey: 2 ** 32 })],
    ['with an address handle that is none', () => ({ ah: {} as never, remoteQpn: 1, remoteQkey: 0 })],
    [
      'with an address handle of another domain',
      (_from: Peer, other: Peer) => ({ ah: other.ah, remoteQpn: 1, remoteQkey: 0 }),
    ],
  ])('refuses a datagram %s', async (_name, make) => {
    const { a, b } = await peers();
    const ud = make(a, b);
    expect(() => a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 1 }, ...(ud && { ud }) })).toThrow(
      expect.objectContaining({
        code: expect.stringMatching(
          /^ERR_(OUT_OF_RANGE|INVALID_ARG_TYPE|RDMA_INVALID_DESCRIPTOR)$/,
        ) as string,
      }) as Error,
    );
    expect(a.qp.sendQueue.outstanding).toBe(0);
  });

  it('sends nothing but SEND', async () => {
    const { a, b } = await peers();
    for (const opcode of [
      'rdmaWrite',
      'rdmaWriteWithImm',
      'rdmaRead',
      'atomicFetchAndAdd',
      'atomicCmpAndSwp',
      'sendWithInv',
    ] as const) {
      const request = {
        opcode,
        sge: { mr: a.mr, length: 8 },
        compareAdd: 1,
        swap: 1,
        invalidateRkey: 1,
        ud: to(a, b)!,
        ...(opcode !== 'sendWithInv' && { remote: b.mr.remote() }),
        ...(opcode === 'rdmaWriteWithImm' && { immData: 1 }),
      };
      expect(() => a.qp.postSend(request), opcode).toThrow(
        expect.objectContaining({
          code: 'ERR_RDMA_INVALID_DESCRIPTOR',
          message: expect.stringMatching(/cannot be sent on a queue pair of this type/) as string,
        }) as Error,
      );
    }
  });

  it('drops what comes with another Q_Key', async () => {
    const { a, b } = await peers();
    b.qp.postRecv({ sge: { mr: b.mr, length: 4096 } });
    a.qp.postSend({
      opcode: 'send',
      sge: { mr: a.mr, length: 4 },
      ud: { ...to(a, b)!, remoteQkey: 0x33333333 },
    });
    await succeeded(a.cq);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(b.cq.poll()).toEqual([]);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 4 }, ud: to(a, b)! });
    expect((await succeeded(b.cq)).byteLen).toBe(GRH_BYTES + 4);
  });

  it('connects to nobody, and a connected one does not start', async () => {
    const one = end(deviceA, { qp: { type: 'ud' } });
    await expect(one.qp.connect(one.qp.endpoint())).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    const connected = one.pd.createQp({ type: 'rc', cq: one.cq });
    await expect(connected.start()).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  });
});

describe('an address handle', () => {
  it('is made on this thread or on another, and stays while a request names it', async () => {
    const { a, b } = await peers();
    const ah = a.pd.createAhSync({ dgid: b.qp.endpoint().gid });
    expect(ah.vector).toMatchObject({ sgidIndex: a.context.chooseGid().index, portNum: 1 });
    a.qp.postSend({
      opcode: 'send',
      sge: { mr: a.mr, length: 4 },
      ud: { ...to(a, b)!, ah },
      signaled: false,
    });
    expect(() => ah.close()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_BUSY' }) as Error);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 4 }, ud: to(a, b)! });
    await succeeded(a.cq);
    ah.close();
    expect(() =>
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 4 }, ud: { ...to(a, b)!, ah } }),
    ).toThrow(/is closed/);
  });

  it('needs a GID on Ethernet, one that the port can reach', async () => {
    const { pd, context } = end(deviceA);
    await expect(pd.createAh({ dlid: 5 })).rejects.toMatchObject({ code: 'ERR_RDMA_INVALID_ATTRIBUTES' });
    await expect(pd.createAh({ dgid: 'nowhere' })).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(pd.createAh(undefined as never)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    const { address } = context.queryGidTable().find(({ scope }) => scope === 'linkLocal')!;
    await expect(pd.createAh({ dgid: '10.9.0.2', gid: { address } })).rejects.toMatchObject({
      message: expect.stringContaining('IPv4 and not link-local IPv6: choose a GID of its kind') as string,
    });
    await expect(pd.createAh({ dgid: '203.0.113.77' })).rejects.toMatchObject({
      syscall: 'ibv_create_ah',
      device: deviceA,
      message: expect.stringMatching(/GID ::ffff:203|GID 203/) as string,
    });
    expect(() => pd.createAhSync({ dgid: '10.9.0.2', gid: { address: '192.0.2.1' } })).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_NO_GID' }) as Error,
    );
  });
});

it('many senders reach one receiver, each known by its number', async () => {
  const { a, b } = await peers();
  const senders = [];
  for (let i = 0; i < 8; ++i) {
    const qp = a.pd.createQp({ type: 'ud', cq: a.cq });
    await qp.start();
    senders.push(qp);
  }
  b.qp.postRecv(senders.map((_, i) => ({ wrId: i, sge: { mr: b.mr, offset: i * 256, length: 256 } })));
  for (const qp of senders)
    qp.postSend({ opcode: 'send', inline: undefined, sge: { mr: a.mr, length: 1 }, ud: to(a, b)! });
  await completions(a.cq, 8);
  const from = (await completions(b.cq, 8)).map((one) => one.srcQp).sort((x, y) => x! - y!);
  expect(from).toEqual(senders.map((qp) => qp.qpNum).sort((x, y) => x - y));
});
