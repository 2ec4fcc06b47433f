// What two ends of a connection say to each other: the hello in the private data of the connection manager, and the frames that
// follow it. Pure functions on bytes; docs/net.md has the layout in words. All numbers are little-endian.

/** Of this page. An end with another version is refused: both must be of the same. */
export const VERSION = 1;

const MAGIC = Buffer.from('nRDM', 'latin1');

/** What an end tells of itself before the first frame. */
export interface Hello {
  /** Receives that it has posted, and keeps posted: frames that may be on their way to it. */
  slots: number;
  /** How many of these are kept for frames that carry no data. */
  reserve: number;
  /** Bytes of a frame at the most, with its header. */
  slabBytes: number;
  /** Bytes of a message at the most that comes in frames; longer ones are announced, and read by the receiver. */
  eagerLimit: number;
  /** Bytes of a message at the most. */
  maxMessage: number;
}

const HELLO_BYTES = 32;
/** A frame carries at least so much beside its header. */
export const LEAST_SLAB = 256;
export const MOST_SLAB = 2 ** 24;
export const MOST_SLOTS = 4096;
export const MOST_EAGER = 2 ** 24;
export const LEAST_RESERVE = 4;

export function encodeHello(hello: Hello): Buffer {
  const bytes = Buffer.alloc(HELLO_BYTES);
  MAGIC.copy(bytes);
  bytes.writeUInt16LE(VERSION, 4);
  bytes.writeUInt16LE(hello.slots, 6);
  bytes.writeUInt16LE(hello.reserve, 8);
  bytes.writeUInt32LE(hello.slabBytes, 12);
  bytes.writeUInt32LE(hello.eagerLimit, 16);
  bytes.writeBigUInt64LE(BigInt(hello.maxMessage), 24);
  return bytes;
}

/** The hello in private data, or why it is none. */
export function decodeHello(data: Buffer | undefined): Hello | { wrong: string } {
  if (data === undefined || data.length < 6 || !data.subarray(0, 4).equals(MAGIC))
    return { wrong: 'it does not speak the protocol of node-rdma/net' };
  const version = data.readUInt16LE(4);
  if (version !== VERSION)
    return { wrong: `it speaks version ${version} of the protocol, and this end version ${VERSION}` };
  if (data.length < HELLO_BYTES) return { wrong: `its hello has ${data.length} bytes of ${HELLO_BYTES}` };
  const hello = {
    slots: data.readUInt16LE(6),
    reserve: data.readUInt16LE(8),
    slabBytes: data.readUInt32LE(12),
    eagerLimit: data.readUInt32LE(16),
    maxMessage: Number(data.readBigUInt64LE(24)),
  };
  const fits =
    hello.reserve >= LEAST_RESERVE &&
    hello.slots > hello.reserve &&
    hello.slots <= MOST_SLOTS &&
    hello.slabBytes >= LEAST_SLAB &&
    hello.slabBytes <= MOST_SLAB &&
    hello.eagerLimit <= MOST_EAGER &&
    hello.maxMessage >= hello.eagerLimit &&
    Number.isSafeInteger(hello.maxMessage);
  return fits ? hello : { wrong: `its hello has impossible limits (${JSON.stringify(hello)})` };
}

/** Why an end refuses, for the private data of its rejection. */
export function encodeRefusal(text: string): Buffer {
  const version = Buffer.alloc(2);
  version.writeUInt16LE(VERSION);
  return Buffer.concat([MAGIC, version, Buffer.from(text).subarray(0, 120)]);
}

/** The text of a refusal; undefined where it is no end of ours that refuses. */
export function decodeRefusal(data: Buffer | undefined): string | undefined {
  if (data === undefined || data.length < 6 || !data.subarray(0, 4).equals(MAGIC)) return undefined;
  return data.toString('utf8', 6);
}

/** What a frame is. */
export const FrameType = {
  /** Messages, one behind the other: the length of each in four bytes, then its bytes. What does not fit goes on in the next one. */
  DATA: 1,
  /** A message that the receiver has to read: address, length and rkey. */
  ANNOUNCE: 2,
  /** No more messages come. */
  END: 3,
  /** Nothing but the counters of the header. */
  UPDATE: 4,
  /** The connection is given up; the payload says why. */
  RESET: 5,
} as const;

export const FRAME_HEADER = 16;
/** Of a message within a frame. */
export const RECORD_HEADER = 4;
export const ANNOUNCE_BYTES = 24;

/** Bits of the second byte of a frame. */
export const FrameFlag = {
  /** The end of the peer's messages has come. */
  END_CAME: 1,
} as const;

/** The header that each frame has. The counters run over at their size. */
export interface FrameHeader {
  type: number;
  /** Of {@link FrameFlag}. */
  flags: number;
  /** Bytes behind the header. */
  length: number;
  /** Slots that the sender of the frame has given back since the beginning: of frames without data (16 bits), and with data (32). */
  control: number;
  data: number;
  /** Announced messages that the sender of the frame has read since the beginning. */
  fetched: number;
}

export function writeFrameHeader(view: DataView, at: number, header: FrameHeader): void {
  view.setUint8(at, header.type);
  view.setUint8(at + 1, header.flags);
  view.setUint16(at + 2, header.control, true);
  view.setUint32(at + 4, header.length, true);
  view.setUint32(at + 8, header.data, true);
  view.setUint32(at + 12, header.fetched, true);
}

/** The header of a frame of `bytes` bytes, or why it is none. */
export function readFrameHeader(view: DataView, at: number, bytes: number): FrameHeader | { wrong: string } {
  if (bytes < FRAME_HEADER) return { wrong: `a frame of ${bytes} bytes` };
  const type = view.getUint8(at);
  const length = view.getUint32(at + 4, true);
  if (length !== bytes - FRAME_HEADER)
    return { wrong: `a frame of ${bytes} bytes that says ${length} of itself` };
  if (type < FrameType.DATA || type > FrameType.RESET) return { wrong: `a frame of type ${type}` };
  return {
    type,
    flags: view.getUint8(at + 1),
    length,
    control: view.getUint16(at + 2, true),
    data: view.getUint32(at + 8, true),
    fetched: view.getUint32(at + 12, true),
  };
}

/** Memory of an end where a message lies. */
export interface Announcement {
  address: bigint;
  length: number;
  rkey: number;
}

export function writeAnnouncement(view: DataView, at: number, { address, length, rkey }: Announcement): void {
  view.setBigUint64(at, address, true);
  view.setBigUint64(at + 8, BigInt(length), true);
  view.setUint32(at + 16, rkey, true);
  view.setUint32(at + 20, 0, true);
}

export function readAnnouncement(view: DataView, at: number): Announcement {
  return {
    address: view.getBigUint64(at, true),
    length: Number(view.getBigUint64(at + 8, true)),
    rkey: view.getUint32(at + 16, true),
  };
}
