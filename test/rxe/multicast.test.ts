import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GRH_BYTES, type AddressHandle } from '../../lib/index.js';
import { addressB } from '../support/cm.js';
import { deviceA, deviceB, end, pattern, succeeded, type End } from '../support/device.js';

const GROUP = '239.8.7.6';
const MULTICAST_QPN = 0xffffff;
const QKEY = 0x11223344;

async function member(name: string | undefined): Promise<End> {
  const one = end(name, { qp: { type: 'ud' } });
  await one.qp.init({ qkey: QKEY });
  await one.qp.start();
  return one;
}

/** Another queue pair of the same end. */
async function sibling(one: End): Promise<End> {
  const qp = one.pd.createQp({ type: 'ud', cq: (one = { ...one, cq: one.context.createCq() }).cq });
  await qp.init({ qkey: QKEY });
  await qp.start();
  return { ...one, qp };
}

/** The host of b listens to the group: without that its network stack drops what is sent to it. */
async function listen(): Promise<void> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.bind(0);
  await once(socket, 'listening');
  socket.addMembership(GROUP, addressB);
}

function send(from: End, ah: AddressHandle, bytes: Buffer): Promise<unknown> {
  bytes.copy(from.mr.buffer);
  from.qp.postSend({
    opcode: 'send',
    sge: { mr: from.mr, length: bytes.length },
    ud: { ah, remoteQpn: MULTICAST_QPN, remoteQkey: QKEY },
  });
  return succeeded(from.cq);
}

/** Groups as rxe knows them. */
const mapped = (address: string) => `::ffff:${address}`;

describe('a multicast group', () => {
  it('brings what is sent to it to each of its members, and to nobody else', async () => {
    await listen();
    const from = await member(deviceA);
    const [first, outsider] = [await member(deviceB), await member(deviceB)];
    const second = await sibling(first);
    for (const one of [first, second]) one.qp.attachMcast(mapped(GROUP));
    const everyone = [first, second, outsider];
    everyone.forEach((one, i) =>
      one.qp.postRecv({ sge: { mr: one.mr, offset: 1024 * (1 + i), length: 512 } }),
    );
    const ah = await from.pd.createAh({ dgid: mapped(GROUP) });
    await send(from, ah, pattern(200, 3));
    for (const [i, one] of [first, second].entries()) {
      expect(await succeeded(one.cq)).toMatchObject({
        byteLen: GRH_BYTES + 200,
        srcQp: from.qp.qpNum,
        qpNum: one.qp.qpNum,
      });
      const at = 1024 * (1 + i) + GRH_BYTES;
      expect(one.mr.buffer.subarray(at, at + 200)).toEqual(pattern(200, 3));
    }
    expect(outsider.cq.poll()).toEqual([]);

    first.qp.detachMcast(mapped(GROUP));
    for (const one of [first, second]) one.qp.postRecv({ sge: { mr: one.mr, offset: 8192, length: 512 } });
    await send(from, ah, pattern(100, 4));
    await succeeded(second.cq);
    expect(first.cq.poll()).toEqual([]);
  });

  it('does not keep a member from being closed', async () => {
    const one = await member(deviceB);
    one.qp.attachMcast(mapped(GROUP));
    one.qp.attachMcast('ff0e::1234');
    one.qp.close();
    expect(one.qp.closed).toBe(true);
  });

  it('is left only by who is in it', async () => {
    const one = await member(deviceB);
    expect(() => one.qp.detachMcast(mapped(GROUP))).toThrow(
      expect.objectContaining({
        code: 'EINVAL',
        syscall: 'ibv_detach_mcast',
        message: expect.stringContaining('Is it a member') as string,
      }) as Error,
    );
  });

  it('takes no connected queue pairs, no addresses that are none of a group', async () => {
    const connected = end(deviceA);
    expect(() => connected.qp.attachMcast(mapped(GROUP))).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_INVALID_STATE' }) as Error,
    );
    const one = await member(deviceA);
    for (const address of ['fe80::1', '::ffff:10.0.0.1', '10.0.0.1', '::']) {
      expect(() => one.qp.attachMcast(address)).toThrow(RangeError);
    }
    for (const address of ['x', 5, undefined]) {
      expect(() => one.qp.attachMcast(address as never)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^ERR_/) as string }) as Error,
      );
    }
    expect(() => one.qp.attachMcast(mapped(GROUP), -1)).toThrow(RangeError);
    one.qp.close();
    expect(() => one.qp.attachMcast(mapped(GROUP))).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_CLOSED' }) as Error,
    );
  });
});
