// Private data of the messages by which connections are made. Its length does not travel: the receiver sees the whole field of
// the message, with zeros behind what was sent.
import { invalidArgType, RdmaError } from '../verbs/errors.js';

/** Bytes of private data that each message carries at the most. */
export const PRIVATE_DATA_LIMITS = {
  tcp: { connect: 56, accept: 196, reject: 148 },
  udp: { connect: 180, accept: 136, reject: 136 },
} as const;

export type PrivateDataMessage = 'connect' | 'accept' | 'reject';

/** What goes with a message; one of the two, or nothing. */
export interface PrivateDataOptions {
  /** Bytes as they are. The peer sees them with zeros behind, up to the end of the field. */
  privateData?: Uint8Array;
  /** Bytes whose length the peer is to know: one byte with the length goes before them, so one byte fewer fits. */
  data?: Uint8Array;
}

/**
 * The private data of a message, with its length in front where so asked.
 *
 * @throws TypeError; RdmaError `ERR_RDMA_LIMIT` for more than the message carries
 */
export function packPrivateData(
  options: PrivateDataOptions,
  message: PrivateDataMessage,
  datagrams: boolean,
): Uint8Array | undefined {
  const { privateData, data } = options;
  if (privateData !== undefined && data !== undefined)
    throw invalidArgType('data', 'absent where privateData is given', data);
  const bytes = privateData ?? data;
  if (bytes === undefined) return undefined;
  const name = privateData === undefined ? 'data' : 'privateData';
  if (!(bytes instanceof Uint8Array)) throw invalidArgType(name, 'a Uint8Array', bytes);
  const limit = PRIVATE_DATA_LIMITS[datagrams ? 'udp' : 'tcp'][message] - (data === undefined ? 0 : 1);
  if (bytes.length > limit) {
    throw new RdmaError(
      'ERR_RDMA_LIMIT',
      `${name} has ${bytes.length} bytes, ${bytes.length - limit} more than ${message}() of a ${datagrams ? 'datagram' : 'connected'} ` +
        `identifier carries (${limit}). Send the rest as a message.`,
    );
  }
  if (data === undefined) return bytes.length === 0 ? undefined : bytes;
  return Buffer.concat([Uint8Array.of(data.length), data]);
}

/** What {@link PrivateDataOptions.data} had; undefined where the field was not made that way. */
export function unpackPrivateData(field: Uint8Array): Buffer | undefined {
  const length = field[0];
  if (length === undefined || length >= field.length) return undefined;
  const rest = field.subarray(1 + length);
  return rest.every((byte) => byte === 0) ? Buffer.from(field.subarray(1, 1 + length)) : undefined;
}
