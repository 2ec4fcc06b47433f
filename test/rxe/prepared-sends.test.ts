import { describe, expect, it } from 'vitest';
import { RemoteRegion, type RdmaError, type SendRequest } from '../../lib/index.js';
import {
  completions,
  connectedPair,
  end,
  deviceA,
  device,
  deviceB,
  pattern,
  succeeded,
} from '../support/device.js';

function refusal(action: () => unknown): RdmaError {
  try {
    action();
  } catch (error) {
    return error as RdmaError;
  }
  throw new Error('it was not refused');
}

describe('a prepared request', () => {
  it('carries what its region holds at each post, under the same identifier', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendWr: 8, descriptors: 4 } });
    const request = a.qp.prepareSend({
      opcode: 'send',
      wrId: (1n << 40n) + 5n,
      sge: { mr: a.mr, offset: 100, length: 300 },
    });
    for (let round = 0; round < 11; ++round) {
      pattern(300, round).copy(a.mr.buffer, 100);
      b.qp.postRecv({ sge: { mr: b.mr, offset: 1000 } });
      request.post();
      expect(await succeeded(a.cq)).toMatchObject({ wrId: (1n << 40n) + 5n, opcode: 'send' });
      expect((await succeeded(b.cq)).byteLen).toBe(300);
      expect(b.mr.buffer.subarray(1000, 1300)).toEqual(pattern(300, round));
    }
    expect(b.mr.buffer.subarray(1300, 1400)).toEqual(Buffer.alloc(100));
  });

  it('goes out between others, in the order of the posts', async () => {
    const { a, b } = await connectedPair();
    const remote = b.mr.remote();
    const write = a.qp.prepareSend({ opcode: 'rdmaWrite', wrId: 1, sge: { mr: a.mr, length: 64 }, remote });
    const add: SendRequest = {
      opcode: 'atomicFetchAndAdd',
      wrId: 2,
      sge: { mr: a.mr, offset: 64, length: 8 },
      remote: { address: remote.at(64, 8), rkey: remote.rkey },
      compareAdd: 7,
    };
    const prepared = a.qp.prepareSend(add);
    pattern(64, 3).copy(a.mr.buffer);
    write.post();
    a.qp.postSend(add);
    prepared.post();
    write.post();
    expect((await completions(a.cq, 4)).map(({ wrId }) => wrId)).toEqual([1n, 2n, 2n, 1n]);
    expect(b.mr.buffer.subarray(0, 64)).toEqual(pattern(64, 3));
    expect([a.mr.buffer.readBigUInt64LE(64), b.mr.buffer.readBigUInt64LE(64)]).toEqual([7n, 14n]);
  });

  it('gathers several elements', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendSge: 3 } });
    const sge = [0, 1000, 2000].map((offset) => ({ mr: a.mr, offset, length: 50 }));
    const request = a.qp.prepareSend({ opcode: 'send', sge });
    pattern(3000, 1).copy(a.mr.buffer);
    for (const offset of [0, 500]) {
      b.qp.postRecv({ sge: { mr: b.mr, offset, length: 150 } });
      request.post();
      await succeeded(a.cq);
      await succeeded(b.cq);
      const expected = Buffer.concat(
        sge.map((part) => pattern(3000, 1).subarray(part.offset, part.offset + 50)),
      );
      expect(b.mr.buffer.subarray(offset, offset + 150)).toEqual(expected);
    }
  });

  it('keeps the inline bytes that it was given', async () => {
    const { a, b } = await connectedPair({ qp: { maxInlineData: 64 } });
    const inline = pattern(48, 2);
    const request = a.qp.prepareSend({ opcode: 'send', inline });
    inline.fill(0);
    for (const offset of [0, 100]) {
      b.qp.postRecv({ sge: { mr: b.mr, offset, length: 64 } });
      request.post();
      await succeeded(a.cq);
      expect((await succeeded(b.cq)).byteLen).toBe(48);
      expect(b.mr.buffer.subarray(offset, offset + 48)).toEqual(pattern(48, 2));
    }
  });

  it('goes to whom a datagram was prepared for', async () => {
    const [a, b] = [end(deviceA, { qp: { type: 'ud' } }), end(deviceB, { qp: { type: 'ud' } })];
    for (const { qp } of [a, b]) await qp.start();
    const peer = b.qp.endpoint();
    const ah = await a.pd.createAh({ dgid: peer.gid, sgidIndex: a.context.chooseGid().index });
    const ud = { ah, remoteQpn: peer.qpNum, remoteQkey: peer.qkey! };
    const request = a.qp.prepareSend({ opcode: 'send', sge: { mr: a.mr, length: 10 }, ud });
    pattern(10, 5).copy(a.mr.buffer);
    b.qp.postRecv({ sge: { mr: b.mr, length: 100 } });
    request.post();
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(50);
    expect(b.mr.buffer.subarray(40, 50)).toEqual(pattern(10, 5));
    ah.close();
    expect(refusal(() => request.post())).toMatchObject({ code: 'ERR_RDMA_CLOSED', posted: 0 });
  });

  it.each<[string, (one: ReturnType<typeof end>) => SendRequest, object]>([
    ['an unknown opcode', () => ({ opcode: 'fly' as 'send' }), { code: 'ERR_OUT_OF_RANGE' }],
    [
      'a range outside the region',
      ({ mr }) => ({ opcode: 'send', sge: { mr, offset: 1, length: mr.length } }),
      { code: 'ERR_OUT_OF_RANGE' },
    ],
    [
      'more elements than the queue has',
      ({ mr }) => ({ opcode: 'send', sge: [{ mr }, { mr }] }),
      { code: 'ERR_RDMA_LIMIT' },
    ],
    [
      'no remote address for a write',
      ({ mr }) => ({ opcode: 'rdmaWrite', sge: { mr } }),
      { code: 'ERR_INVALID_ARG_TYPE' },
    ],
    [
      'more inline bytes than the queue takes',
      () => ({ opcode: 'send', inline: new Uint8Array(1 << 12) }),
      { code: 'ERR_RDMA_LIMIT' },
    ],
    ['an identifier below 0', () => ({ opcode: 'send', wrId: -1 }), { code: 'ERR_OUT_OF_RANGE' }],
    ['no object', () => 7 as unknown as SendRequest, { code: 'ERR_INVALID_ARG_TYPE' }],
  ])('is refused with %s when it is prepared', (_what, request, expected) => {
    const one = end(deviceA);
    expect(refusal(() => one.qp.prepareSend(request(one)))).toMatchObject(expected);
  });

  it('is refused once its region is closed, and so is another region in its place', async () => {
    const { a, b } = await connectedPair();
    const remote = b.mr.remote();
    const mr = a.pd.regMrSync(4096);
    const request = a.qp.prepareSend({ opcode: 'rdmaWrite', sge: { mr, length: 64 }, remote });
    request.post();
    await succeeded(a.cq);
    mr.close();
    a.pd.regMrSync(4096);
    const error = refusal(() => request.post());
    expect(error).toMatchObject({ code: 'ERR_RDMA_CLOSED', posted: 0 });
    expect(error.message).toMatch(/^memory region \w+ of 4096 bytes is closed/);
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 64 }, remote });
    await succeeded(a.cq);
    expect(a.qp.sendQueue.outstanding).toBe(0);
  });

  it('holds its region only while it is under way', async () => {
    const { a, b } = await connectedPair();
    const mr = a.pd.regMrSync(4096);
    const request = a.qp.prepareSend({ opcode: 'send', sge: { mr, length: 64 } });
    request.post(); // waits for a receive
    expect(refusal(() => mr.close())).toMatchObject({ code: 'ERR_RDMA_BUSY' });
    b.qp.postRecv({ sge: { mr: b.mr, length: 64 } });
    await succeeded(a.cq);
    mr.close();
    expect(mr.closed).toBe(true);
  });

  it('does not fit a queue that is full, and fits when there is room again', async () => {
    const { a, b } = await connectedPair({ qp: { maxSendWr: 4 } });
    const request = a.qp.prepareSend({ opcode: 'send' });
    const room = a.qp.sendQueue.free;
    for (let i = 0; i < room; ++i) request.post();
    const error = refusal(() => request.post());
    expect(error).toMatchObject({ code: 'ERR_RDMA_QUEUE_FULL', syscall: 'ibv_post_send' });
    expect(error.message).toMatch(/^1 requests do not fit: queue pair \d+ has room for 0 of/);
    b.qp.postRecv(Array.from({ length: room }, () => ({})));
    await completions(a.cq, room);
    b.qp.postRecv({});
    request.post();
    await succeeded(a.cq);
  });

  it('waits for a queue pair that can send, and ends with it', async () => {
    const one = end(deviceA);
    const request = one.qp.prepareSend({ opcode: 'send' });
    expect(refusal(() => request.post())).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE', posted: 0 });
    await one.qp.connect(one.qp.endpoint());
    one.qp.postRecv({});
    request.post();
    expect((await completions(one.cq, 2)).map(({ status }) => status)).toEqual(['success', 'success']);
    one.qp.close();
    expect(refusal(() => request.post())).toMatchObject({ code: 'ERR_RDMA_CLOSED' });
  });

  it('is refused natively with a remote key of nobody, by the peer', async () => {
    const { a, b } = await connectedPair();
    const nowhere = new RemoteRegion(b.mr.address, b.mr.rkey ^ 0xff, 64);
    const request = a.qp.prepareSend({
      opcode: 'rdmaWrite',
      wrId: 9,
      sge: { mr: a.mr, length: 64 },
      remote: nowhere,
    });
    request.post();
    expect((await completions(a.cq))[0]).toMatchObject({ wrId: 9n, status: 'remAccessErr' });
  });

  it('needs a region of its own protection domain', () => {
    const one = end(deviceA);
    const mr = device().allocPd().regMrSync(64);
    const request = one.qp.prepareSend({ opcode: 'send', sge: { mr } });
    expect(refusal(() => request.post())).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  });
});
