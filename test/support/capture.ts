// What really goes over the wire: the RoCE v2 packets that tcpdump sees on an end of it.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { formatGid } from '../../lib/index.js';

/** The UDP port that RoCE v2 is sent to. */
export const ROCE_PORT = 4791;

/** The headers of one packet, as far as its way through the network depends on them. */
export interface Packet {
  family: 4 | 6;
  /** Addresses as GIDs are written. */
  source: string;
  destination: string;
  /** TOS of IPv4, traffic class of IPv6: DSCP in the upper six bits, ECN in the lower two. */
  trafficClass: number;
  /** TTL of IPv4, hop limit of IPv6. */
  hopLimit: number;
  /** IPv6 only. */
  flowLabel: number | undefined;
  sourcePort: number;
  destinationPort: number;
  /** Of the base transport header: what it does. */
  opcode: number;
  /** Queue pair that it goes to. */
  destinationQp: number;
}

/** Nobody listens there (RFC 863); what is sent there says that the capture has seen all that went before. */
const MARK_PORT = 9;

/**
 * The RoCE packets that pass an end of the wire while `work` runs.
 *
 * @throws Error where tcpdump is missing or cannot capture, with what it said
 */
export async function capturing(netdev: string, work: () => Promise<void>): Promise<Packet[]> {
  const options = ['--immediate-mode', '-U', '-n', '-Z', 'root', '-w', '-'];
  const filter = `udp dst port ${ROCE_PORT} or udp dst port ${MARK_PORT}`;
  const tcpdump = spawn('tcpdump', ['-i', netdev, ...options, filter]);
  let file = Buffer.alloc(0);
  tcpdump.stdout.on('data', (chunk: Buffer) => (file = Buffer.concat([file, chunk])));
  const closed = once(tcpdump, 'close');
  try {
    await captures(tcpdump);
    await work();
    const mark = randomBytes(16);
    await sendOverWire(mark);
    await seen(tcpdump, () => file.includes(mark));
  } finally {
    tcpdump.kill('SIGINT');
    await closed.catch(() => undefined);
  }
  return packetsOf(file).filter(({ destinationPort }) => destinationPort === ROCE_PORT);
}

async function sendOverWire(bytes: Buffer): Promise<void> {
  const socket = dgram.createSocket('udp4').bind(0, process.env.NODE_RDMA_RXE_ADDRESS_A);
  await once(socket, 'listening');
  await new Promise<void>((resolve, reject) => {
    socket.send(bytes, MARK_PORT, process.env.NODE_RDMA_RXE_ADDRESS_B, (error) =>
      error ? reject(error) : resolve(),
    );
  });
  socket.close();
}

/** tcpdump loses at its end what it has not read yet, so it must not end before. */
async function seen(tcpdump: ChildProcess, isThere: () => boolean): Promise<void> {
  const signal = AbortSignal.timeout(30_000);
  while (!isThere()) await once(tcpdump.stdout!, 'data', { signal });
}

async function captures(tcpdump: ChildProcess): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    tcpdump.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('listening on')) resolve();
    });
    tcpdump.once('error', (cause) =>
      reject(new Error('tcpdump cannot be started: apt-get install tcpdump', { cause })),
    );
    tcpdump.once('close', () => reject(new Error(`tcpdump ended: ${said}`)));
  });
}

/** Reads a capture file: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
function packetsOf(file: Buffer): Packet[] {
  const [fileHeader, recordHeader] = [24, 16];
  const ethernet = 1;
  if (file.readUInt32LE(0) !== 0xa1b2c3d4 || file.readUInt32LE(20) !== ethernet) {
    throw new Error('the capture is not of an Ethernet interface, in microseconds, little-endian');
  }
  const packets: Packet[] = [];
  for (let at = fileHeader; at < file.length;) {
    const length = file.readUInt32LE(at + 8);
    at += recordHeader;
    packets.push(packetOf(file.subarray(at, at + length)));
    at += length;
  }
  return packets;
}

function packetOf(frame: Buffer): Packet {
  const [ethernetHeader, ipv4Header, ipv6Header, udpHeader] = [14, 20, 40, 8];
  const ip = frame.subarray(ethernetHeader);
  if (ip[0]! >> 4 === 6) {
    return {
      family: 6,
      source: formatGid(ip.subarray(8, 24)),
      destination: formatGid(ip.subarray(24, 40)),
      trafficClass: (ip.readUInt32BE(0) >>> 20) & 0xff,
      hopLimit: ip[7]!,
      flowLabel: ip.readUInt32BE(0) & 0xfffff,
      ...transportOf(ip.subarray(ipv6Header), udpHeader),
    };
  }
  return {
    family: 4,
    source: ip.subarray(12, 16).join('.'),
    destination: ip.subarray(16, 20).join('.'),
    trafficClass: ip[1]!,
    hopLimit: ip[8]!,
    flowLabel: undefined,
    ...transportOf(ip.subarray(ipv4Header), udpHeader),
  };
}

function transportOf(udp: Buffer, udpHeader: number) {
  const bth = udp.subarray(udpHeader);
  return {
    sourcePort: udp.readUInt16BE(0),
    destinationPort: udp.readUInt16BE(2),
    opcode: bth[0]!,
    destinationQp: bth.readUIntBE(5, 3),
  };
}
