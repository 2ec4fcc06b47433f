import { describe, expect, it } from 'vitest';
import { Access, type QueuePairOptions } from '../../lib/index.js';
import {
  completions,
  connect,
  connectedPair,
  device,
  deviceA,
  deviceB,
  end,
  succeeded,
} from '../support/device.js';

describe('createQp', () => {
  it('grants at least what was asked for', () => {
    const { qp } = end(deviceA, {
      qp: { maxSendWr: 10, maxRecvWr: 20, maxSendSge: 3, maxRecvSge: 2, maxInlineData: 100 },
    });
    const { cap, qpState } = qp.query();
    expect(qpState).toBe('reset');
    expect(qp.state).toBe('reset');
    expect(cap.maxSendWr).toBeGreaterThanOrEqual(10);
    expect(cap.maxRecvWr).toBeGreaterThanOrEqual(20);
    expect(cap.maxSendSge).toBeGreaterThanOrEqual(3);
    expect(cap.maxRecvSge).toBeGreaterThanOrEqual(2);
    expect(qp.maxInlineData).toBeGreaterThanOrEqual(100);
    expect(qp.qpNum).toBeGreaterThan(0);
  });

  it('names the capability that was exceeded, and by how much', () => {
    const context = device();
    const pd = context.allocPd();
    const cq = context.createCq();
    const { maxSge, maxQpWr } = context.queryDevice();
    const refused = (options: Partial<QueuePairOptions>) => () => pd.createQp({ type: 'rc', cq, ...options });
    expect(refused({ maxSendSge: maxSge + 3 })).toThrow(
      expect.objectContaining({
        code: 'ERR_RDMA_LIMIT',
        message: expect.stringContaining(`maxSendSge ${maxSge + 3} is 3 above the ${maxSge}`) as string,
      }) as Error,
    );
    expect(refused({ maxRecvWr: maxQpWr + 1 })).toThrow(/maxRecvWr .* is 1 above/);
    expect(refused({ maxInlineData: 60_000 })).toThrow(
      expect.objectContaining({
        code: 'EINVAL',
        message: expect.stringContaining('60000') as string,
      }) as Error,
    );
    expect(refused({ maxSendWr: 0 })).toThrow(RangeError);
    expect(refused({ type: 'xrc' as never })).toThrow(/type.*rc, uc/);
    expect(refused({ cq: {} as never })).toThrow(TypeError);
    expect(() => pd.createQp(undefined as never)).toThrow(TypeError);
  });

  it('refuses completion queues and a shared receive queue of another context', () => {
    const context = device(deviceA);
    const pd = context.allocPd();
    const cq = context.createCq();
    // Of the same device: its objects have numbers that exist here too.
    for (const foreign of [device(deviceA), device(deviceB)]) {
      const other = foreign.createCq();
      const srq = foreign.allocPd().createSrq();
      for (const parts of [
        { cq: other },
        { sendCq: other, recvCq: cq },
        { sendCq: cq, recvCq: other },
        { cq, srq },
      ]) {
        expect(() => pd.createQp({ type: 'rc', ...parts })).toThrow(
          expect.objectContaining({ code: 'ERR_RDMA_FOREIGN_OBJECT' }) as Error,
        );
      }
    }
    pd.createQp({ type: 'rc', cq });
  });
});

describe('connect', () => {
  it('brings both ends to RTS with what was negotiated', async () => {
    const a = end(deviceA);
    const b = end(deviceB);
    const endpointB = b.qp.endpoint({ maxDestRdAtomic: 3 });
    expect(endpointB).toMatchObject({
      type: 'rc',
      qpNum: b.qp.qpNum,
      gid: `::ffff:${process.env.NODE_RDMA_RXE_ADDRESS_B}`,
      lid: 0,
    });
    expect(JSON.parse(JSON.stringify(endpointB))).toEqual(endpointB);
    const { gid, pathMtu } = await a.qp.connect(endpointB, {
      trafficClass: 104,
      flowLabel: 0x12345,
      timeout: 15,
      retryCnt: 5,
      rnrRetry: 4,
      minRnrTimer: 13,
    });
    expect(gid.address).toBe(process.env.NODE_RDMA_RXE_ADDRESS_A);
    expect(pathMtu).toBe(a.context.queryPort().activeMtu);
    const state = a.qp.query();
    expect(state).toMatchObject({
      qpState: 'rts',
      pathMtu,
      destQpNum: b.qp.qpNum,
      rqPsn: endpointB.psn,
      maxRdAtomic: 4, // 3, rounded up by rxe
      timeout: 15,
      retryCnt: 5,
      rnrRetry: 4,
      minRnrTimer: 13,
      portNum: 1,
    });
    expect(state.qpAccessFlags & Access.REMOTE_WRITE).not.toBe(0);
    expect(state.ahAttr).toMatchObject({
      dgid: endpointB.gid,
      sgidIndex: gid.index,
      trafficClass: 104,
      flowLabel: 0x12345,
    });
  });

  it('by default gives up on a silent peer, and waits for receives a moment', async () => {
    const { a, b } = await connectedPair();
    for (const { qp } of [a, b]) {
      expect(qp.query()).toMatchObject({ timeout: 14, retryCnt: 6, rnrRetry: 6, minRnrTimer: 12 });
    }
  });

  it('goes on from INIT, where a receive that is posted takes the first message', async () => {
    const a = end(deviceA);
    const b = end(deviceB);
    await b.qp.init();
    b.qp.postRecv({ wrId: 1, sge: { mr: b.mr, length: 100 } });
    await connect(a, b);
    a.mr.buffer.write('first');
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 5 } });
    await succeeded(a.cq);
    expect(await succeeded(b.cq)).toMatchObject({ wrId: 1n, byteLen: 5 });
    expect(b.mr.buffer.toString('latin1', 0, 6)).toBe('first\0');
  });

  it('works over IPv6 and over the link-local address', async () => {
    for (const pick of ['global', 'linkLocal'] as const) {
      const a = end(deviceA);
      const b = end(deviceB);
      const address = (which: typeof a) =>
        which.context.queryGidTable().find((entry) => entry.scope === pick)!.address;
      const endpointA = a.qp.endpoint({ gid: { address: address(a) } });
      const endpointB = b.qp.endpoint({ gid: { address: address(b) } });
      expect((await a.qp.connect(endpointB)).gid.scope).toBe(pick);
      await b.qp.connect(endpointA);
      b.qp.postRecv({ sge: { mr: b.mr } });
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 10 } });
      await succeeded(a.cq);
      expect((await succeeded(b.cq)).byteLen).toBe(10);
    }
  });

  it('takes a GID of the peer’s kind where none is asked for', async () => {
    const [a, b] = [end(deviceA), end(deviceB)];
    const global = b.context.queryGidTable().find(({ scope }) => scope === 'global')!;
    const { gid } = await a.qp.connect(b.qp.endpoint({ gid: { address: global.address } }));
    expect(gid).toMatchObject({ scope: 'global', reason: expect.stringContaining(global.gid) as string });
  });

  it('says so when the two ends’ GIDs are of different kinds', async () => {
    const [a, b] = [end(deviceA), end(deviceB)];
    const linkLocal = a.context.queryGidTable().find(({ scope }) => scope === 'linkLocal')!;
    const { gid } = b.qp.endpoint();
    await expect(
      a.qp.connect(b.qp.endpoint(), { gid: { address: linkLocal.address } }),
    ).rejects.toMatchObject({
      message: expect.stringContaining(
        `peer's GID ${gid}, which is IPv4 and not link-local IPv6: choose a GID of its kind`,
      ) as string,
    });
  });

  it('connects a queue pair to itself', async () => {
    const a = end(deviceA);
    await a.qp.connect(a.qp.endpoint());
    a.mr.buffer.write('myself');
    a.qp.postRecv({ wrId: 2, sge: { mr: a.mr, offset: 100, length: 100 } });
    a.qp.postSend({ wrId: 1, opcode: 'send', sge: { mr: a.mr, length: 6 } });
    const both = await completions(a.cq, 2);
    expect(both.map((one) => one.status)).toEqual(['success', 'success']);
    expect(a.mr.buffer.toString('latin1', 100, 106)).toBe('myself');
  });

  it('can be done again after RESET, with new packet sequence numbers', async () => {
    const { a, b } = await connectedPair();
    const before = a.qp.endpoint().psn;
    const psns = new Set([before]);
    for (let round = 0; round < 3; ++round) {
      await a.qp.modify({ qpState: 'reset' });
      await b.qp.modify({ qpState: 'reset' });
      expect(a.qp.state).toBe('reset');
      await connect(a, b);
      psns.add(a.qp.endpoint().psn);
      b.qp.postRecv({ sge: { mr: b.mr } });
      a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 1 } });
      await succeeded(a.cq);
      await succeeded(b.cq);
    }
    expect(psns.size).toBeGreaterThan(1);
  });

  it.each([
    ['nothing', undefined],
    ['a number', 5],
    ['an endpoint of another type', { type: 'uc' }],
    ['a QPN of 25 bits', { qpNum: 2 ** 24 }],
    ['a negative PSN', { psn: -1 }],
    ['an MTU that does not exist', { mtu: 1500 }],
    ['no GID', { gid: undefined }],
    ['a GID that is none', { gid: 'here' }],
  ])('refuses %s and leaves the queue pair as it was', async (_name, change) => {
    const a = end(deviceA);
    const endpoint = typeof change === 'object' ? { ...a.qp.endpoint(), ...change } : change;
    await expect(a.qp.connect(endpoint as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_(INVALID_ARG_TYPE|OUT_OF_RANGE)$/) as string,
    });
    expect(a.qp.state).toBe('reset');
  });

  it('says which GID could not reach the peer', async () => {
    const a = end(deviceA);
    const endpoint = { ...a.qp.endpoint(), gid: '::ffff:203.0.113.77' };
    await expect(a.qp.connect(endpoint)).rejects.toMatchObject({
      syscall: 'ibv_modify_qp',
      device: deviceA,
      message: expect.stringMatching(
        /INIT to RTR\. With GID \d+: .*RoCE v2, IPv4 on .*peer's GID ::ffff:203\.0\.113\.77/,
      ) as string,
    });
    expect(a.qp.query().qpState).toBe('init');
  });
});

describe('RESET', () => {
  it('lets go of what it drops without a completion', async () => {
    const { a, b } = await connectedPair({ qp: { maxRecvWr: 4, maxSendWr: 4 } });
    const receives = b.qp.receiveQueue.free;
    b.qp.postRecv(Array.from({ length: receives }, () => ({ sge: { mr: b.mr, length: 8 } })));
    expect(() => b.mr.close()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_BUSY' }) as Error);
    for (const { qp } of [a, b]) await qp.modify({ qpState: 'reset' });
    expect(b.qp.receiveQueue.outstanding).toBe(0);
    expect(b.cq.poll()).toEqual([]);
    expect(b.cq.room).toBe(b.cq.cqe);

    await connect(a, b);
    b.qp.postRecv(Array.from({ length: receives }, (_, i) => ({ wrId: i, sge: { mr: b.mr, length: 8 } })));
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).wrId).toBe(0n);
    await b.qp.modify({ qpState: 'reset' });
    b.mr.close();
  });

  it('leaves nothing to a later life of what completed before', async () => {
    const { a, b } = await connectedPair();
    const send = () => a.qp.postSend({ wrId: 1, opcode: 'send', sge: { mr: a.mr, length: 8 } });
    b.qp.postRecv([{ sge: { mr: b.mr, length: 8 } }, { sge: { mr: b.mr, length: 8 } }]);
    send();
    await succeeded(b.cq); // so a's completion is there, or soon will be, and nobody has polled it
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const { qp } of [a, b]) await qp.modify({ qpState: 'reset' });
    await connect(a, b);
    b.qp.postRecv({ wrId: 22, sge: { mr: b.mr, length: 8 } });
    a.qp.postSend({ wrId: 2, opcode: 'send', sge: { mr: a.mr, length: 8 } });
    expect((await succeeded(a.cq)).wrId).toBe(2n);
    expect((await succeeded(b.cq)).wrId).toBe(22n);
    expect([a.cq.room, b.cq.room]).toEqual([a.cq.cqe, b.cq.cqe]);
  });
});

describe('modify', () => {
  it('refuses a P_Key index that the port does not have', async () => {
    const { qp, context } = end(deviceA);
    const pkeyIndex = context.queryPort().pkeyTblLen;
    const refused = { code: 'ERR_OUT_OF_RANGE', message: expect.stringContaining('pkeyIndex') as string };
    await expect(qp.init({ pkeyIndex })).rejects.toMatchObject(refused);
    const attributes = { qpState: 'init', portNum: 1, qpAccessFlags: 0 } as const;
    await expect(qp.modify({ ...attributes, pkeyIndex })).rejects.toMatchObject(refused);
    expect(qp.query().qpState).toBe('reset');
    await qp.modify({ ...attributes, pkeyIndex: pkeyIndex - 1 });
  });

  it('refuses to skip a state, and names lacking and surplus attributes', async () => {
    const { qp } = end(deviceA);
    await expect(qp.modify({ qpState: 'rts' })).rejects.toMatchObject({
      code: 'ERR_RDMA_INVALID_STATE',
      qpn: qp.qpNum,
    });
    await expect(qp.modify({ qpState: 'init', portNum: 1 })).rejects.toMatchObject({
      code: 'ERR_RDMA_INVALID_ATTRIBUTES',
      message: expect.stringMatching(/lacks qpAccessFlags .*pkeyIndex|lacks .*pkeyIndex/) as string,
    });
    expect(() =>
      qp.modifySync({ qpState: 'init', portNum: 1, pkeyIndex: 0, qpAccessFlags: 0, timeout: 14 }),
    ).toThrow(/timeout .*cannot be set/);
    expect(qp.query().qpState).toBe('reset');
  });

  it('refuses a path MTU above that of the port before the device takes it and hangs', async () => {
    const a = end(deviceA);
    const { activeMtu } = a.context.queryPort();
    if (activeMtu === 4096) return;
    await expect(a.qp.connect(a.qp.endpoint(), { pathMtu: 4096 })).rejects.toMatchObject({
      code: 'ERR_RDMA_LIMIT',
      message: expect.stringContaining(`active MTU ${activeMtu}`) as string,
    });
  });

  it('refuses an address without a GID on Ethernet', async () => {
    const { qp } = end(deviceA);
    await qp.init();
    await expect(
      qp.modify({
        qpState: 'rtr',
        ahAttr: { dlid: 1, portNum: 1 },
        pathMtu: 1024,
        destQpNum: 1,
        rqPsn: 0,
        maxDestRdAtomic: 1,
        minRnrTimer: 12,
      }),
    ).rejects.toThrow(/RoCE addresses peers by GID only/);
  });

  it('goes through SQD and back, and changes attributes in RTS', async () => {
    const { a, b } = await connectedPair();
    await a.qp.modify({ minRnrTimer: 14 });
    expect(a.qp.query().minRnrTimer).toBe(14);
    await a.qp.modify({ qpState: 'sqd' });
    expect(a.qp.query().qpState).toBe('sqd');
    await a.qp.modify({ qpState: 'rts' });
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: b.mr.remote() });
    await succeeded(a.cq);
  });

  it('holds in SQD what is posted, and goes on with it in RTS (on rxe when more is posted)', async () => {
    const { a, b } = await connectedPair();
    await a.qp.modify({ qpState: 'sqd' });
    a.mr.buffer.write('held');
    a.qp.postSend({ wrId: 8, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: b.mr.remote() });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(b.mr.buffer.readUInt32LE()).toBe(0);
    expect(a.cq.poll()).toEqual([]);
    await a.qp.modify({ qpState: 'rts' });
    a.qp.postSend({ wrId: 9, opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: b.mr.remote(4) });
    expect((await completions(a.cq, 2)).map((one) => [one.wrId, one.status])).toEqual([
      [8n, 'success'],
      [9n, 'success'],
    ]);
    expect(b.mr.buffer.toString('latin1', 0, 8)).toBe('heldheld');
  });

  it('flushes what is outstanding on the way to ERR', async () => {
    const { b } = await connectedPair();
    b.qp.postRecv([1, 2, 3].map((wrId) => ({ wrId, sge: { mr: b.mr, length: 10 } })));
    await b.qp.modify({ qpState: 'err' });
    expect(b.qp.state).toBe('err');
    const flushed = await completions(b.cq, 3);
    expect(flushed.map((one) => [one.wrId, one.status])).toEqual([
      [1n, 'wrFlushErr'],
      [2n, 'wrFlushErr'],
      [3n, 'wrFlushErr'],
    ]);
  });

  it('keeps the queue pair open while it is under way', async () => {
    const a = end(deviceA);
    await a.qp.init();
    const connecting = a.qp.connect(a.qp.endpoint());
    expect(() => a.qp.close()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_BUSY' }) as Error);
    await connecting;
    a.qp.close();
    await expect(a.qp.modify({ qpState: 'err' })).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });
});
