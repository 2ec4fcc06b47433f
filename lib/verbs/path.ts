// What queue pairs and address handles share of the way to a peer.
import { randomInt } from 'node:crypto';
import type { LinkLayer } from './constants.js';
import type { Context } from './context.js';
import { RdmaError, type ErrorSubject } from './errors.js';
import { describeGid, formatGid, parseGid, scopeNames, scopeOf, type GidEntry } from './gid.js';
import { native } from './native.js';
import type { AddressVector } from './queue-pair-attributes.js';
import { integer } from './validate.js';

/** Values of a flow label: it has 20 bits. */
const FLOW_LABELS = 2 ** 20;

/** Random, so that connections spread over the paths of the fabric. 20 bits. */
export function randomFlowLabel(): number {
  return randomInt(FLOW_LABELS);
}

/**
 * The UDP source port, 0xc000 to 0xffff, of RoCE v2 packets with a flow label. Switches choose a path by it. The label's upper
 * 6 bits are folded into the lower 14, so several labels share a port. `ibv_flow_label_to_udp_sport`
 *
 * What devices make of it: rxe sends RC and UC from this port, unless the label is 0: then from the port of a label that the
 * kernel makes of both queue pair numbers. It sends UD from a port that it makes of the sending queue pair's number,
 * whatever the label (measured on Linux 6.1).
 *
 * @throws TypeError, RangeError for a label of more than 20 bits; RdmaError `ERR_RDMA_LOAD` without libibverbs
 */
export function udpSourcePort(flowLabel: number): number {
  return native().udpSourcePort(integer('flowLabel', flowLabel, 0, FLOW_LABELS - 1));
}

/** Refuses a vector without a GID on Ethernet, where verbs would refuse it with a bare EINVAL. `name` is what the text calls it. */
export function requireGid(
  name: string,
  vector: AddressVector,
  linkLayer: LinkLayer,
  port: number,
  subject: ErrorSubject,
): void {
  if (vector.dgid !== undefined || linkLayer !== 'ethernet') return;
  throw new RdmaError(
    'ERR_RDMA_INVALID_ATTRIBUTES',
    `${name} has no dgid, but port ${port} is Ethernet: RoCE addresses peers by GID only.`,
    subject,
  );
}

/** What to look at when the kernel could not find the way that a vector describes. */
export function addressAdvice(errno: number, context: Context, vector: AddressVector): string {
  const own = context.queryGidTable(vector.portNum ?? 1).find((entry) => entry.index === vector.sgidIndex);
  const from = own === undefined ? `GID index ${vector.sgidIndex}, which is empty now` : describeGid(own);
  const path = `With ${from}, to the peer's GID ${vector.dgid}${mismatch(own, vector.dgid)}`;
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

/** Why a peer cannot be reached from a GID, as far as the two tell. */
function mismatch(own: GidEntry | undefined, dgid: string | undefined): string {
  if (own === undefined || dgid === undefined) return '';
  const scope = scopeOf(formatGid(parseGid(dgid)));
  if (scope === own.scope) return '';
  return `, which is ${scopeNames[scope]} and not ${scopeNames[own.scope]}: choose a GID of its kind (gid: { peer: '${dgid}' })`;
}
