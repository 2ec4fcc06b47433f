// The global routing header in front of each datagram that a UD queue pair receives: InfiniBand specification 1.7, 8.3;
// on RoCE v2 over IPv4 its last 20 bytes are the packet's IPv4 header instead (annex 17, 4.5.2).
import { invalidArgType, outOfRange } from './errors.js';
import { formatGid } from './gid.js';

/** Bytes in front of the payload in the receive of a datagram; the completion's `byteLen` counts them. */
export const GRH_BYTES = 40;

/** What a datagram's header tells. */
export interface GlobalRoutingHeader {
  /** GID of the sender in IPv6 notation. */
  sgid: string;
  /** GID that it was sent to: one of this port's. */
  dgid: string;
  /** DSCP in the upper six bits, ECN in the lower two. */
  trafficClass: number;
  /** 20 bits; 0 over IPv4, which has none. */
  flowLabel: number;
  /** Hops that were left. */
  hopLimit: number;
}

/**
 * Reads the header of a received datagram: the first {@link GRH_BYTES} bytes of its receive.
 *
 * @throws TypeError, RangeError for what is none
 */
export function parseGrh(bytes: Uint8Array): GlobalRoutingHeader {
  if (!(bytes instanceof Uint8Array)) throw invalidArgType('bytes', 'a Uint8Array', bytes);
  if (bytes.length < GRH_BYTES) throw outOfRange('bytes', `at least ${GRH_BYTES} bytes long`, bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, GRH_BYTES);
  if (view.getUint8(0) >> 4 === 6) {
    const word = view.getUint32(0);
    return {
      sgid: formatGid(bytes.subarray(8, 24)),
      dgid: formatGid(bytes.subarray(24, 40)),
      trafficClass: (word >>> 20) & 0xff,
      flowLabel: word & 0xfffff,
      hopLimit: view.getUint8(7),
    };
  }
  const ip = 20;
  if (view.getUint8(ip) !== 0x45)
    throw outOfRange('bytes', 'an IPv6 header, or an IPv4 header at byte 20', 'neither');
  return {
    sgid: formatGid(mapped(bytes.subarray(ip + 12, ip + 16))),
    dgid: formatGid(mapped(bytes.subarray(ip + 16, ip + 20))),
    trafficClass: view.getUint8(ip + 1),
    flowLabel: 0,
    hopLimit: view.getUint8(ip + 8),
  };
}

function mapped(address: Uint8Array): Uint8Array {
  const gid = new Uint8Array(16);
  gid.set([0xff, 0xff], 10);
  gid.set(address, 12);
  return gid;
}
