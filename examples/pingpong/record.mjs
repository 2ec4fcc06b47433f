// What an end tells the other of a queue pair: LID:QPN:PSN:GID in hexadecimal, and a zero byte.
import { formatGid, parseGid } from 'node-rdma';

export const RECORD_BYTES = 52;

/** Stands for a queue pair that is not used. */
export const emptyRecord = encodeRecord({ lid: 0, qpNum: 0, psn: 0, gid: '::' });

export function encodeRecord({ lid, qpNum, psn, gid }) {
  const hex = (value, digits) => value.toString(16).padStart(digits, '0');
  const raw = Buffer.from(parseGid(gid)).toString('hex');
  return Buffer.from(`${hex(lid, 4)}:${hex(qpNum, 6)}:${hex(psn, 6)}:${raw}\0`, 'latin1');
}

export function decodeRecord(bytes) {
  const text = bytes.toString('latin1');
  const fields = /^([\da-f]{4}):([\da-f]{6}):([\da-f]{6}):([\da-f]{32})\0$/.exec(text);
  if (!fields)
    throw new Error(`the peer does not speak as ibv_*_pingpong does; it sent ${JSON.stringify(text)}`);
  const [lid, qpNum, psn] = fields.slice(1, 4).map((digits) => parseInt(digits, 16));
  return { lid, qpNum, psn, gid: formatGid(Buffer.from(fields[4], 'hex')) };
}
