// The path MTU follows the link, and the smaller of both ends' is used. The wire's MTU is changed for each test.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GRH_BYTES } from '../../lib/index.js';
import { connect, deviceA, deviceB, end, pattern, succeeded, type End } from '../support/device.js';

const netdevs = { a: process.env.NODE_RDMA_RXE_NETDEV_A!, b: process.env.NODE_RDMA_RXE_NETDEV_B! };

/** MTUs of the two ends of the wire, in bytes, until the test ends. */
function linkMtu(a: number, b: number): void {
  const before = (netdev: string) => Number(readFileSync(`/sys/class/net/${netdev}/mtu`, 'utf8'));
  const [beforeA, beforeB] = [before(netdevs.a), before(netdevs.b)];
  onTestFinished(() => setMtu(beforeA, beforeB));
  setMtu(a, b);
}

function setMtu(a: number, b: number): void {
  const input = `link set ${netdevs.a} mtu ${a}\nlink set ${netdevs.b} mtu ${b}\n`;
  execFileSync('ip', ['-batch', '-'], { input });
}

/** Messages round about the path MTU, by each operation, each byte checked at the far end. */
async function exchange(a: End, b: End, pathMtu: number): Promise<void> {
  for (const size of [1, pathMtu - 1, pathMtu, pathMtu + 1, 3 * pathMtu + 5]) {
    const bytes = pattern(size, size);
    bytes.copy(a.mr.buffer);
    b.mr.buffer.fill(0xee);
    b.qp.postRecv({ sge: { mr: b.mr, length: 16384 } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: size } });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(size);
    expect(Buffer.compare(b.mr.buffer.subarray(0, size), bytes), `SEND of ${size}`).toBe(0);
    expect(b.mr.buffer[size]).toBe(0xee);

    b.mr.buffer.fill(0xee);
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: size }, remote: b.mr.remote(100, size) });
    await succeeded(a.cq);
    expect(Buffer.compare(b.mr.buffer.subarray(100, 100 + size), bytes), `WRITE of ${size}`).toBe(0);
    expect(b.mr.buffer[100 + size]).toBe(0xee);

    a.mr.buffer.fill(0x11, 20_000);
    a.qp.postSend({
      opcode: 'rdmaRead',
      sge: { mr: a.mr, offset: 20_000, length: size },
      remote: b.mr.remote(100, size),
    });
    await succeeded(a.cq);
    expect(Buffer.compare(a.mr.buffer.subarray(20_000, 20_000 + size), bytes), `READ of ${size}`).toBe(0);
    expect(a.mr.buffer[20_000 + size]).toBe(0x11);
  }
}

// A host's own links are not ours to change.
describe.skipIf(process.env.NODE_RDMA_RXE_ENGINE === 'host')('the path MTU', () => {
  it.each([
    [4200, 4200, 4096],
    [1500, 4200, 1024],
    [4200, 1500, 1024],
    [2200, 4200, 2048],
  ])('between links of %i and %i bytes is %i', async (mtuA, mtuB, expected) => {
    linkMtu(mtuA, mtuB);
    const [a, b] = [end(deviceA), end(deviceB)];
    expect(Math.min(a.context.queryPort().activeMtu, b.context.queryPort().activeMtu)).toBe(expected);
    await connect(a, b);
    expect([a.qp.query().pathMtu, b.qp.query().pathMtu]).toEqual([expected, expected]);
    await exchange(a, b, expected);
  });

  it('stays when the link shrinks, which then carries short messages only; closing ends the others', async () => {
    linkMtu(4200, 4200);
    const [a, b] = [end(deviceA), end(deviceB)];
    await connect(a, b, { timeout: 10, retryCnt: 2 });
    setMtu(1500, 1500);
    expect(a.context.queryPort().activeMtu).toBe(1024);
    expect(a.qp.query().pathMtu).toBe(4096);
    b.qp.postRecv([1, 2].map((wrId) => ({ wrId, sge: { mr: b.mr, length: 16384 } })));
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 1000 } });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(1000);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 4096 } });
    await new Promise((resolve) => setTimeout(resolve, 100));
    // rxe 6.1 tries for ever, whatever the retries.
    for (const { error } of a.cq.poll()) expect(error).toBeDefined();
    expect(b.cq.poll()).toEqual([]);
    a.qp.close();
    a.mr.close();
    expect(a.mr.buffer).toHaveLength(0);
  });

  it('may be chosen smaller than the links allow', async () => {
    linkMtu(4200, 4200);
    const [a, b] = [end(deviceA), end(deviceB)];
    await connect(a, b, { pathMtu: 512 });
    expect([a.qp.query().pathMtu, b.qp.query().pathMtu]).toEqual([512, 512]);
    await exchange(a, b, 512);
  });

  it('may not be chosen larger than the peer’s', async () => {
    linkMtu(4200, 1500);
    const [a, b] = [end(deviceA), end(deviceB)];
    await expect(a.qp.connect(b.qp.endpoint(), { pathMtu: 4096 })).rejects.toMatchObject({
      code: 'ERR_RDMA_LIMIT',
      message: expect.stringMatching(/4096 is above the active MTU 1024 of the peer \(4096 here\)/) as string,
    });
    expect(a.qp.state).toBe('reset');
  });

  it('of datagrams is the active MTU of the port as it is now', async () => {
    linkMtu(4200, 4200);
    const ud = { qp: { type: 'ud' as const } };
    const [a, b] = [end(deviceA, ud), end(deviceB, ud)];
    await Promise.all([a.qp.start(), b.qp.start()]);
    const { gid, qpNum, qkey } = b.qp.endpoint();
    const ah = await a.pd.createAh({ dgid: gid });
    const bytes = pattern(4096, 3);
    bytes.copy(a.mr.buffer);
    b.qp.postRecv({ sge: { mr: b.mr, length: 8192 } });
    const to = { ah, remoteQpn: qpNum, remoteQkey: qkey! };
    expect(() => a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 4097 }, ud: to })).toThrow(/4096/);
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 4096 }, ud: to });
    await succeeded(a.cq);
    expect((await succeeded(b.cq)).byteLen).toBe(GRH_BYTES + 4096);
    expect(Buffer.compare(b.mr.buffer.subarray(GRH_BYTES, GRH_BYTES + 4096), bytes)).toBe(0);

    // A port's MTU may fall while the queue pair lives.
    linkMtu(1500, 1500);
    a.qp.query();
    expect(() => a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 1025 }, ud: to })).toThrow(/1024/);
  });
});
