// What queue pairs and address handles share of the way to a peer.
import { randomInt } from 'node:crypto';
import type { Context } from './context.js';
import { describeGid } from './gid.js';
import type { AddressVector } from './queue-pair-attributes.js';

/** Random, so that connections spread over the paths of the fabric. 20 bits. */
export function randomFlowLabel(): number {
  return randomInt(2 ** 20);
}

/** What to look at when the kernel could not find the way that a vector describes. */
export function addressAdvice(errno: number, context: Context, vector: AddressVector): string {
  const own = context.queryGidTable(vector.portNum ?? 1).find((entry) => entry.index === vector.sgidIndex);
  const from = own === undefined ? `GID index ${vector.sgidIndex}, which is empty now` : describeGid(own);
  const path = `With ${from}, to the peer's GID ${vector.dgid}`;
  switch (errno) {
    case 110: // ETIMEDOUT
    case 113: // EHOSTUNREACH
      return `${path}: the peer's address did not answer (ARP or neighbour discovery). Is it up, in the same subnet or behind a route, and reachable from that interface?`;
    case 101: // ENETUNREACH
      return `${path}: there is no route to it from that interface`;
    case 22: // EINVAL
      return `${path}: a value does not fit; look at the GID index and type first`;
    default:
      return path;
  }
}
