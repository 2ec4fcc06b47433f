import net from 'node:net';
import { gidTypes, type GidType } from './constants.js';
import { invalidArgType, outOfRange, RdmaError } from './errors.js';
import type { NativeGid } from './native.js';

/** One entry of a port's GID table (`struct ibv_gid_entry`). */
export interface GidEntry {
  /** The GID in IPv6 notation, such as `::ffff:10.9.0.1`. */
  gid: string;
  /** The address that the GID stands for: IPv4 where it is mapped, IPv6 otherwise. */
  address: string;
  /** Place in the table now. It changes when addresses come and go: choose by value, never keep it. */
  index: number;
  port: number;
  type: GidType;
  /** Name of the network interface, or `''` where this namespace cannot see it. */
  netdev: string;
  /** Index of the network interface; 0 where there is none. */
  netdevIndex: number;
  scope: GidScope;
}

/** Where a GID can be reached from. */
export type GidScope = 'ipv4' | 'global' | 'linkLocal';

/** Which GID to use. What is not given is chosen. */
export interface GidSelection {
  /** An IPv4 or IPv6 address of the port. */
  address?: string;
  /** A network interface. */
  netdev?: string;
  /** On RoCE `roceV2` by default. */
  type?: GidType;
  /** The GID or address that is to be reached: one of its kind (IPv4, global or link-local IPv6) is preferred. */
  peer?: string;
}

/** A GID with the reason for choosing it. */
export interface GidChoice extends GidEntry {
  reason: string;
}

/**
 * The 16 bytes of a GID from its IPv6 notation, or from an IPv4 address, which is mapped.
 *
 * @throws TypeError, RangeError
 */
export function parseGid(text: string): Uint8Array {
  if (typeof text !== 'string') throw invalidArgType('gid', 'a string in IPv6 notation', text);
  const bytes = new Uint8Array(16);
  if (net.isIPv4(text)) {
    bytes.set([0xff, 0xff], 10);
    bytes.set(text.split('.').map(Number), 12);
    return bytes;
  }
  if (!net.isIPv6(text) || text.includes('%'))
    throw outOfRange('gid', 'an IPv6 or IPv4 address without a zone', text);
  // A trailing IPv4 part stands for two groups.
  const groups = text.replace(
    /(\d+)\.(\d+)\.(\d+)\.(\d+)$/,
    (_all, a: string, b: string, c: string, d: string) =>
      [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  );
  const [head = '', tail] = groups.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const all = [...front, ...Array<string>(8 - front.length - back.length).fill('0'), ...back];
  all.forEach((group, i) => {
    const value = parseInt(group, 16);
    bytes[2 * i] = value >> 8;
    bytes[2 * i + 1] = value & 0xff;
  });
  return bytes;
}

/** A GID's 16 bytes in IPv6 notation. */
export function formatGid(raw: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, i) => ((raw[2 * i]! << 8) | raw[2 * i + 1]!).toString(16));
  return new net.SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

/** @internal */
export function gidEntry(entry: NativeGid): GidEntry {
  const gid = formatGid(entry.raw);
  return {
    gid,
    address: mapped.exec(gid)?.[1] ?? gid,
    index: entry.index,
    port: entry.port,
    type: gidTypes[entry.type] ?? 'ib',
    netdev: entry.netdev,
    netdevIndex: entry.netdevIndex,
    scope: scopeOf(gid),
  };
}

const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/;

/** @internal The scope of a GID as {@link formatGid} writes it. */
export function scopeOf(gid: string): GidScope {
  return mapped.test(gid) ? 'ipv4' : /^fe[89ab]/.test(gid) ? 'linkLocal' : 'global';
}

const preference: Record<GidScope, number> = { ipv4: 0, global: 1, linkLocal: 2 };
/** @internal */
export const scopeNames: Record<GidScope, string> = {
  ipv4: 'IPv4',
  global: 'global IPv6',
  linkLocal: 'link-local IPv6',
};
const typeNames: Record<GidType, string> = { ib: 'InfiniBand', roceV1: 'RoCE v1', roceV2: 'RoCE v2' };

/** How an error or a report shows a GID. */
export function describeGid(entry: GidEntry): string {
  const netdev =
    entry.netdev !== ''
      ? ` on ${entry.netdev}`
      : entry.type === 'ib'
        ? ''
        : ', on no interface of this network namespace';
  return `GID ${entry.index}: ${entry.address} (${typeNames[entry.type]}, ${scopeNames[entry.scope]}${netdev})`;
}

/** Whose GIDs are chosen from. */
export interface GidSubject {
  device: string;
  port: number;
  /** The network interface under the port, as far as it is known. */
  netdev?: string | undefined;
  /** The addresses of this network namespace; where they are not known, an entry with an interface counts as one of it. */
  addresses?: ReadonlySet<string> | undefined;
}

/**
 * Chooses a port's GID: by the selection, else on RoCE a RoCE v2 GID of the peer's kind, else the one with the best reach:
 * IPv4, then global IPv6, then link-local; on InfiniBand the first. The table also shows what belongs to other network
 * namespaces, as to the containers of a host: packets cannot be sent from there, so those come last.
 *
 * @throws RdmaError `ERR_RDMA_NO_GID`, with what the table holds
 */
export function chooseGid(
  entries: readonly GidEntry[],
  selection: GidSelection,
  subject: GidSubject,
): GidChoice {
  const roce = entries.some((entry) => entry.type !== 'ib');
  const type = selection.type ?? (roce ? 'roceV2' : undefined);
  const wanted = selection.address === undefined ? undefined : formatGid(parseGid(selection.address));
  const fits = (entry: GidEntry) =>
    (type === undefined || entry.type === type) &&
    (wanted === undefined || entry.gid === wanted) &&
    (selection.netdev === undefined || entry.netdev === selection.netdev);
  const candidates = entries.filter(fits);
  if (candidates.length === 0) throw noGid(entries, selection, type, subject);
  const foreign = (entry: GidEntry) =>
    roce && (entry.netdev === '' || subject.addresses?.has(entry.address) === false);
  const peer = selection.peer === undefined ? undefined : scopeOf(formatGid(parseGid(selection.peer)));
  const rank = ({ scope }: GidEntry) => (scope === peer ? -1 : preference[scope]);
  if (roce) {
    candidates.sort(
      (a, b) => Number(foreign(a)) - Number(foreign(b)) || rank(a) - rank(b) || a.index - b.index,
    );
  }
  const best = candidates[0]!;
  const reason = reasonFor(best, candidates, selection, roce, peer);
  return {
    ...best,
    reason: foreign(best)
      ? `${reason}; no interface of this network namespace has it, or it is down`
      : reason,
  };
}

function reasonFor(
  best: GidEntry,
  candidates: readonly GidEntry[],
  selection: GidSelection,
  roce: boolean,
  peer: GidScope | undefined,
): string {
  if (selection.address !== undefined) return `the GID of address ${best.address}, as asked for`;
  const among = selection.netdev === undefined ? '' : ` of ${best.netdev}, as asked for`;
  if (!roce) return `the first GID${among}: InfiniBand`;
  const passed = candidates.filter((entry) => entry.scope !== best.scope).map((entry) => entry.address);
  if (peer === best.scope)
    return `${typeNames[best.type]}${among}, ${scopeNames[peer]} as the peer's ${selection.peer}`;
  const reach: Record<GidScope, string> = {
    ipv4: 'routable over IPv4',
    global: 'routable over IPv6, for want of IPv4',
    linkLocal: `link-local, for want of any other: it reaches the same subnet only. ${giveAddress(best.netdev)} for more`,
  };
  const over =
    passed.length > 0
      ? `, preferred to ${passed.slice(0, 3).join(', ')}${passed.length > 3 ? ', …' : ''}`
      : '';
  return `${typeNames[best.type]}${among}, ${reach[best.scope]}${over}`;
}

function giveAddress(netdev = ''): string {
  return `Give ${netdev || 'its network interface'} an address (ip address add 192.0.2.1/24 dev ${netdev || 'NAME'})`;
}

function noGid(
  entries: readonly GidEntry[],
  selection: GidSelection,
  type: GidType | undefined,
  { device, port, netdev }: GidSubject,
): RdmaError {
  const wish = [
    type !== undefined && `type ${typeNames[type]}`,
    selection.address !== undefined && `address ${selection.address}`,
    selection.netdev !== undefined && `interface ${selection.netdev}`,
  ].filter(Boolean);
  const has =
    entries.length === 0
      ? `The table is empty. ${giveAddress(netdev)} and bring it up (ip link set ${netdev || 'NAME'} up).`
      : `It has ${entries.slice(0, 6).map(describeGid).join('; ')}${entries.length > 6 ? `; and ${entries.length - 6} more` : ''}.`;
  const asked = wish.length > 0 ? ` with ${wish.join(' and ')}` : '';
  return new RdmaError('ERR_RDMA_NO_GID', `port ${port} of ${device} has no GID${asked}. ${has}`, {
    device,
    port,
  });
}
