// What the options of a path become on the wire. The device at the far end sees the packets as they were sent.
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { udpSourcePort, type AddressHandle, type ConnectOptions, type QpType } from '../../lib/index.js';
import { capturing, ROCE_PORT, type Packet } from '../support/capture.js';
import { deviceA, deviceB, end, pattern, succeeded, type End } from '../support/device.js';

const netdevA = process.env.NODE_RDMA_RXE_NETDEV_A!;
const netdevB = process.env.NODE_RDMA_RXE_NETDEV_B!;
const addresses = {
  4: [process.env.NODE_RDMA_RXE_ADDRESS_A!, process.env.NODE_RDMA_RXE_ADDRESS_B!],
  6: [process.env.NODE_RDMA_RXE_ADDRESS6_A!, process.env.NODE_RDMA_RXE_ADDRESS6_B!],
} as const;
type Family = keyof typeof addresses;

/** Opcodes of the base transport header. */
const opcodes = { rc: 4, acknowledge: 17, uc: 36, ud: 100 } as const;

type PathOptions = Pick<ConnectOptions, 'flowLabel' | 'trafficClass' | 'hopLimit' | 'sl'>;

interface Way {
  type: QpType;
  a: End;
  b: End;
  /** From a to b, of datagrams. */
  ah?: AddressHandle;
}

/** Two ends, and a way from the first to the second that has the options given; the way back has those of `back`. */
async function way(type: QpType, family: Family, options: PathOptions, back: PathOptions = {}): Promise<Way> {
  const [a, b] = [end(deviceA, { qp: { type } }), end(deviceB, { qp: { type } })];
  const [addressA, addressB] = addresses[family];
  if (type === 'ud') {
    await Promise.all([a.qp.start(), b.qp.start()]);
    const ah = await a.pd.createAh({ dgid: addressB, gid: { address: addressA }, ...options });
    return { type, a, b, ah };
  }
  const toA = a.qp.endpoint({ gid: { address: addressA } });
  const toB = b.qp.endpoint({ gid: { address: addressB } });
  await a.qp.connect(toB, options);
  await b.qp.connect(toA, back);
  return { type, a, b };
}

/** One message from a to b, which arrives. */
async function send({ a, b, ah: given }: Way, ah = given): Promise<void> {
  const bytes = pattern(100, a.qp.qpNum);
  bytes.copy(a.mr.buffer);
  b.qp.postRecv({ sge: { mr: b.mr } });
  const ud = ah && { ah, remoteQpn: b.qp.qpNum, remoteQkey: b.qp.endpoint().qkey! };
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: bytes.length }, ...(ud && { ud }) });
  await succeeded(a.cq);
  const { byteLen } = await succeeded(b.cq);
  expect(b.mr.buffer.subarray(byteLen! - bytes.length, byteLen)).toEqual(bytes);
}

const allTo = (packets: Packet[], { qpNum }: { qpNum: number }, opcode: number) =>
  packets.filter((packet) => packet.destinationQp === qpNum && packet.opcode === opcode);

/** The packet that went to a queue pair, once or, on a busy machine, again after a timeout. */
function sentTo(packets: Packet[], qp: { qpNum: number }, opcode: number): Packet {
  const [first, ...repetitions] = allTo(packets, qp, opcode);
  if (first === undefined)
    throw new Error(`no packet ${opcode} to QP ${qp.qpNum}: ${JSON.stringify(packets)}`);
  for (const packet of repetitions) expect(packet).toEqual(first);
  return first;
}

/** The label that the kernel takes for a connection without one (`rdma_calc_flow_label`). */
function labelOfNumbers(from: number, to: number): number {
  const product = BigInt(from) * BigInt(to);
  const folded = product ^ (product >> 20n);
  return Number((folded ^ (folded >> 40n)) & 0xfffffn);
}

describe.each<Family>([4, 6])('over IPv%i', (family) => {
  const [addressA, addressB] = addresses[family];

  it.each(['rc', 'uc', 'ud'] as const)('%s packets carry what was asked for', async (type) => {
    const options = { trafficClass: (26 << 2) | 1, flowLabel: 0x12345, sl: 3 };
    const one = await way(type, family, options);
    const packet = sentTo(await capturing(netdevB, () => send(one)), one.b.qp, opcodes[type]);
    expect(packet).toEqual({
      family,
      source: addressA,
      destination: addressB,
      trafficClass: 105,
      hopLimit: 64,
      flowLabel: family === 6 ? 0 : undefined,
      sourcePort: type === 'ud' ? (expect.any(Number) as number) : udpSourcePort(0x12345),
      destinationPort: ROCE_PORT,
      opcode: opcodes[type],
      destinationQp: one.b.qp.qpNum,
    });
  });

  it('each end marks its own packets, acknowledgements too', async () => {
    const one = await way(
      'rc',
      family,
      { trafficClass: 8, flowLabel: 0x11 },
      { trafficClass: 184, flowLabel: 0x22 },
    );
    const packets = await capturing(netdevB, () => send(one));
    expect(sentTo(packets, one.b.qp, opcodes.rc)).toMatchObject({
      trafficClass: 8,
      sourcePort: udpSourcePort(0x11),
      source: addressA,
    });
    expect(sentTo(packets, one.a.qp, opcodes.acknowledge)).toMatchObject({
      trafficClass: 184,
      sourcePort: udpSourcePort(0x22),
      source: addressB,
    });
  });

  it('a flow label of 0 becomes one of both queue pair numbers', async () => {
    const one = await way('uc', family, { flowLabel: 0 });
    const packets = await capturing(netdevB, () => send(one));
    const label = labelOfNumbers(one.a.qp.qpNum, one.b.qp.qpNum);
    expect(sentTo(packets, one.b.qp, opcodes.uc).sourcePort).toBe(udpSourcePort(label));
  });

  it('connections spread over source ports without any option', async () => {
    const ways: Way[] = [];
    for (let i = 0; i < 4; ++i) ways.push(await way('rc', family, {}));
    const packets = await capturing(netdevB, async () => {
      for (const one of ways) await send(one);
    });
    const ports = ways.map((one) => sentTo(packets, one.b.qp, opcodes.rc).sourcePort);
    ways.forEach(({ a }, i) => expect(ports[i]).toBe(udpSourcePort(a.qp.query().ahAttr.flowLabel)));
    expect(new Set(ports).size).toBeGreaterThan(1);
  });

  it('datagrams of one queue pair leave from one port on rxe, whatever their flow labels', async () => {
    const one = await way('ud', family, { flowLabel: 1 });
    const other = await one.a.pd.createAh({ ...one.ah!.vector, flowLabel: 0x2222, trafficClass: 32 });
    const packets = await capturing(netdevB, async () => {
      await send(one);
      await send(one, other);
    });
    const [first, second] = allTo(packets, one.b.qp, opcodes.ud);
    expect([first!.trafficClass, second!.trafficClass]).toEqual([0, 32]);
    expect(first!.sourcePort).toBe(second!.sourcePort);
    expect(first!.sourcePort).toBeGreaterThanOrEqual(0xc000);
  });

  it('the hop limit is that of the route, not that of the options', async () => {
    const [rc, ud] = await withRoute(family, 'hoplimit 9', async () => [
      await way('rc', family, { hopLimit: 7 }),
      await way('ud', family, { hopLimit: 7 }),
    ]);
    expect(rc.a.qp.query().ahAttr.hopLimit).toBe(9);
    const packets = await capturing(netdevB, async () => {
      await send(rc);
      await send(ud);
    });
    for (const one of [rc, ud]) {
      expect(sentTo(packets, one.b.qp, opcodes[one.type as 'rc' | 'ud']).hopLimit).toBe(9);
    }
  });
});

/** Runs `work` while the route from a to b has a metric more. */
async function withRoute<T>(family: Family, metric: string, work: () => Promise<T>): Promise<T> {
  // Not under the sanitizers that this process may have: ip copies strings onto themselves.
  const env = { ...process.env, LD_PRELOAD: '' };
  const ip = (...words: string[]) =>
    execFileSync('ip', [`-${family}`, ...words], { encoding: 'utf8', env }).trim();
  const [addressA, addressB] = addresses[family];
  const table = /\btable (\S+)/.exec(ip('route', 'get', addressB, 'from', addressA, 'oif', netdevA))![1]!;
  const route = [addressB, 'dev', netdevA, 'src', addressA, 'table', table];
  ip('route', 'replace', ...route, ...metric.split(' '));
  try {
    return await work();
  } finally {
    ip('route', 'replace', ...route);
  }
}
