// The messages of perftest, byte for byte. All have a fixed size; the order in which they come tells what they are.
import { RdmaError } from '../../verbs/errors.js';
import { formatGid, parseGid } from '../../verbs/gid.js';
import { mtuBytes, type Mtu } from '../../verbs/constants.js';

/** What we say that we are: perftest of Debian 12. From 6.28 on two programs negotiate; nobody does with 6.06. */
const ANNOUNCED = '6.06';
/** Before it the exchange had other messages. */
const OLDEST = 5.7;

export const VERSION_BYTES = 16;
export const INTEGER_BYTES = 4;
export const MTU_BYTES = 2;
export const KEY_BYTES = 108;
export const REPORT_FIELD_BYTES = 8;

/** perftest reads the version up to its NUL; what we put behind it tells two of ours that they can say more. */
const OUR_MARK = Buffer.from('node-rdma\x01');
const OUR_MARK_AT = 5;

export interface PeerVersion {
  /** As announced, such as `6.06`. */
  text: string;
  /** Whether the peer is of this library, too. */
  ours: boolean;
}

/** A message that perftest does not send. */
export function notPerftest(what: string): RdmaError {
  return new RdmaError(
    'ERR_RDMA_PROTOCOL',
    `the peer does not go on as perftest would: ${what}. Do both ends run the same test, with the same connection type, number ` +
      'of queue pairs, -a, -b and -D?',
  );
}

export function encodeVersion(): Buffer {
  const bytes = Buffer.alloc(VERSION_BYTES);
  bytes.write(ANNOUNCED, 'latin1');
  OUR_MARK.copy(bytes, OUR_MARK_AT);
  return bytes;
}

/** @throws RdmaError `ERR_RDMA_PROTOCOL` for what is no version, or too old */
export function decodeVersion(bytes: Buffer): PeerVersion {
  const text = textOf(bytes);
  if (!/^\d+\.\d+$/.test(text)) {
    throw new RdmaError(
      'ERR_RDMA_PROTOCOL',
      `the peer is no program of perftest: it began with ${JSON.stringify(bytes.toString('latin1'))} instead of a version`,
    );
  }
  if (Number(text) < OLDEST) {
    throw new RdmaError(
      'ERR_RDMA_PROTOCOL',
      `the peer's perftest announces ${text}, and 5.70 is the oldest that is understood: update it`,
    );
  }
  return { text, ours: bytes.indexOf(OUR_MARK) === OUR_MARK_AT };
}

export function encodeInteger(value: number): Buffer {
  const bytes = Buffer.alloc(INTEGER_BYTES);
  bytes.writeInt32BE(value);
  return bytes;
}

export function encodeMtu(mtu: Mtu): Buffer {
  const code = Object.entries(mtuBytes).find(([, size]) => size === mtu)![0];
  return Buffer.from(`${code}\0`, 'latin1');
}

/** @throws RdmaError `ERR_RDMA_PROTOCOL` */
export function decodeMtu(bytes: Buffer): Mtu {
  const mtu = (mtuBytes as Record<string, Mtu>)[textOf(bytes)];
  if (mtu === undefined) throw notPerftest(`it gave ${JSON.stringify(bytes.toString('latin1'))} as its MTU`);
  return mtu;
}

/** What an end tells of one of its queue pairs. */
export interface Key {
  lid: number;
  /** READs and atomics that it serves at a time. */
  outstandingReads: number;
  qpNum: number;
  psn: number;
  rkey: number;
  /** Of the memory that the peer may use. */
  address: bigint;
  gid: string;
}

export function encodeKey(key: Key): Buffer {
  const fields = [
    hex(key.lid, 4),
    hex(key.outstandingReads, 4),
    hex(key.qpNum, 6),
    hex(key.psn, 6),
    hex(key.rkey, 8),
    hex(key.address, 16),
    ...Array.from(parseGid(key.gid), (byte) => hex(byte, 2)),
    hex(0, 8), // a number that only XRC has
  ];
  return Buffer.from(`${fields.join(':')}:\0`, 'latin1');
}

const keyPattern = new RegExp(
  `^${[4, 4, 6, 6, 8, 16, ...Array<number>(16).fill(2), 8].map((digits) => `([0-9a-f]{${digits}}):`).join('')}$`,
  'i',
);

/** @throws RdmaError `ERR_RDMA_PROTOCOL` */
export function decodeKey(bytes: Buffer): Key {
  const fields = keyPattern.exec(textOf(bytes))?.slice(1);
  if (fields === undefined) {
    throw notPerftest(
      `${JSON.stringify(bytes.toString('latin1'))} is no address of a queue pair with a GID (on InfiniBand the peer needs -x)`,
    );
  }
  const number = (place: number) => parseInt(fields[place]!, 16);
  return {
    lid: number(0),
    outstandingReads: number(1),
    qpNum: number(2),
    psn: number(3),
    rkey: number(4),
    address: BigInt(`0x${fields[5]}`),
    gid: formatGid(Uint8Array.from(fields.slice(6, 22), (byte) => parseInt(byte, 16))),
  };
}

export const BINARY_KEY_BYTES = 56;

/** As a struct of C, in network order: LID, outstanding reads, QPN, PSN, rkey, padding, address, GID, XRC's number, GID index. */
export function encodeBinaryKey(key: Key): Buffer {
  const bytes = Buffer.alloc(BINARY_KEY_BYTES);
  [key.lid, key.outstandingReads, key.qpNum, key.psn, key.rkey].forEach((value, i) =>
    bytes.writeUInt32BE(value, 4 * i),
  );
  bytes.writeBigUInt64BE(key.address, 24);
  bytes.set(parseGid(key.gid), 32);
  return bytes;
}

export function decodeBinaryKey(bytes: Buffer): Key {
  const [lid, outstandingReads, qpNum, psn, rkey] = [0, 4, 8, 12, 16].map((at) => bytes.readUInt32BE(at));
  return {
    lid: lid! & 0xffff,
    outstandingReads: outstandingReads!,
    qpNum: qpNum! & 0xffffff,
    psn: psn! & 0xffffff,
    rkey: rkey!,
    address: bytes.readBigUInt64BE(24),
    gid: formatGid(bytes.subarray(32, 48)),
  };
}

/** What an end has measured. */
export interface Report {
  /** Bytes of a message. */
  size: number;
  iterations: number;
  /** In the unit of whoever reports: nothing on the wire tells which. */
  peak: number;
  average: number;
  /** Millions of messages a second. */
  messageRate: number;
}

/** Of who has measured nothing. */
export const emptyReport: Report = { size: 0, iterations: 0, peak: 0, average: 0, messageRate: 0 };

/** Five messages. */
export function encodeReport({ size, iterations, peak, average, messageRate }: Report): Buffer[] {
  const whole = [size, iterations].map((value) => {
    const bytes = Buffer.alloc(REPORT_FIELD_BYTES);
    bytes.writeBigUInt64BE(BigInt(value));
    return bytes;
  });
  const rates = [peak, average, messageRate].map((value) => {
    const bytes = Buffer.alloc(REPORT_FIELD_BYTES);
    bytes.writeDoubleBE(value);
    return bytes;
  });
  return [...whole, ...rates];
}

export function decodeReport(fields: readonly Buffer[]): Report {
  const [size, iterations, peak, average, messageRate] = fields as [Buffer, Buffer, Buffer, Buffer, Buffer];
  return {
    size: Number(size.readBigUInt64BE()),
    iterations: Number(iterations.readBigUInt64BE()),
    peak: peak.readDoubleBE(),
    average: average.readDoubleBE(),
    messageRate: messageRate.readDoubleBE(),
  };
}

/** Both write it at the end, and neither reads it. */
export const DONE = Buffer.from('done\0', 'latin1');

function hex(value: number | bigint, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** Up to the first NUL, as C reads it. */
function textOf(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
}
