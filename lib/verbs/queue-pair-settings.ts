// What is set on a queue pair or asked of it by calls of their own: what QueuePair has methods for.
import { Opcode, type SendOpcode } from './constants.js';
import { explaining, invalidArgType, outOfRange, RdmaError } from './errors.js';
import { parseGid } from './gid.js';
import { nativeElements } from './memory-kinds.js';
import { native } from './native.js';
import type { QueuePair } from './queue-pair.js';
import { AddressHandle } from './address-handle.js';
import { SendFlags } from './constants.js';
import { integer, options as checkOptions, unsigned64, wordNumber } from './validate.js';
import type { DatagramTarget, Sge } from './work-request.js';

/** Options of an enhanced connection (`struct ibv_ece`): a vendor's number, and what its devices make of the rest. */
export interface Ece {
  vendorId: number;
  options: number;
}

/** How fast a queue pair may send (`struct ibv_qp_rate_limit_attr`). */
export interface RateLimit {
  /** kbit/s; 0 for no limit. */
  rateLimit: number;
  /** Bytes that may go at once; 0 (the default) leaves it to the device. */
  maxBurstSize?: number;
  /** Bytes of a usual packet, which makes the device more exact; 0 by default. */
  typicalPacketSize?: number;
}

/** A message that the device cuts into segments, each with the header in front. */
export interface TsoRequest {
  header: Uint8Array;
  /** Bytes of a segment behind its header, at the most: 1 to 65535. */
  mss: number;
  sge: Sge | readonly Sge[];
  /** Whom it goes to, on a queue pair for datagrams. */
  ud?: DatagramTarget;
  /** Comes back in the completion; 64 bits, 0 by default. */
  wrId?: bigint | number;
  /** Whether it makes a completion when it succeeds; true by default. */
  signaled?: boolean;
}

const none = () => '';

/** @internal A group of multicast by its GID, or by an address of IP. */
export function multicastGid(address: string): Uint8Array {
  const gid = parseGid(address);
  const mapped = gid.subarray(0, 10).every((byte) => byte === 0) && gid[10] === 0xff && gid[11] === 0xff;
  const multicast = mapped ? (gid[12]! & 0xf0) === 0xe0 : gid[0] === 0xff;
  if (!multicast) throw outOfRange('gid', 'of a multicast group (ff…, or ::ffff:224.0.0.0/4)', address);
  return gid;
}

function forDatagrams(qp: QueuePair): void {
  if (qp.type === 'ud') return;
  throw new RdmaError(
    'ERR_RDMA_INVALID_STATE',
    `${qp.label} is ${qp.type.toUpperCase()}: only queue pairs for datagrams are members of multicast groups`,
    qp.subject,
  );
}

/** @internal */
export function attachMcast(qp: QueuePair, address: string, lid: number): void {
  forDatagrams(qp);
  const gid = multicastGid(address);
  integer('lid', lid, 0, 2 ** 16 - 1);
  explaining(
    qp.subject,
    (errno) => (errno === 12 ? 'See maxMcastGrp and maxMcastQpAttach of the device attributes' : ''),
    () => native().attachMcast(qp.native, gid, lid),
  );
}

/** @internal */
export function detachMcast(qp: QueuePair, address: string, lid: number): void {
  forDatagrams(qp);
  const gid = multicastGid(address);
  integer('lid', lid, 0, 2 ** 16 - 1);
  explaining(
    qp.subject,
    () => 'Is it a member of this group?',
    () => native().detachMcast(qp.native, gid, lid),
  );
}

/** @internal */
export function setEce(qp: QueuePair, ece: Ece): void {
  if (typeof ece !== 'object' || ece === null) throw invalidArgType('ece', 'an object', ece);
  const vendorId = integer('vendorId', ece.vendorId, 0, 2 ** 32 - 1);
  const options = integer('options', ece.options, 0, 2 ** 32 - 1);
  explaining(qp.subject, none, () => native().setEce(qp.native, vendorId, options));
}

/** @internal */
export function queryEce(qp: QueuePair): Ece {
  return explaining(qp.subject, none, () => native().queryEce(qp.native));
}

/** @internal */
export function modifyRateLimit(qp: QueuePair, limit: RateLimit): void {
  if (typeof limit !== 'object' || limit === null) throw invalidArgType('limit', 'an object', limit);
  const { rateLimit, maxBurstSize = 0, typicalPacketSize = 0 } = limit;
  integer('rateLimit', rateLimit, 0, 2 ** 32 - 1);
  integer('maxBurstSize', maxBurstSize, 0, 2 ** 32 - 1);
  integer('typicalPacketSize', typicalPacketSize, 0, 2 ** 16 - 1);
  explaining(
    qp.subject,
    () => 'See packetPacingRateMin and packetPacingRateMax of the device attributes',
    () => native().modifyQpRateLimit(qp.native, rateLimit, maxBurstSize, typicalPacketSize),
  );
}

/** @internal */
export function queryDataInOrder(qp: QueuePair, opcode: SendOpcode): boolean {
  return native().queryQpDataInOrder(qp.native, wordNumber('opcode', Opcode, opcode), 0) !== 0;
}

/** @internal */
export function sendTso(qp: QueuePair, request: TsoRequest): void {
  if (request === undefined) throw invalidArgType('request', 'an object', request);
  checkOptions('request', request);
  const { header, mss, ud, wrId = 0, signaled = true } = request;
  if (!(header instanceof Uint8Array)) throw invalidArgType('header', 'a Uint8Array', header);
  integer('header.length', header.length, 1, 2 ** 16 - 1);
  integer('mss', mss, 1, 2 ** 16 - 1);
  if (ud !== undefined && !(ud.ah instanceof AddressHandle))
    throw invalidArgType('ud.ah', 'an AddressHandle', ud.ah);
  const elements = nativeElements(request.sge);
  explaining(qp.subject, none, () =>
    native().sendTso(
      qp.native,
      header,
      mss,
      ud?.ah.native,
      integer('ud.remoteQpn', ud?.remoteQpn ?? 0, 0, 2 ** 24 - 1),
      integer('ud.remoteQkey', ud?.remoteQkey ?? 0, 0, 2 ** 32 - 1),
      unsigned64('wrId', wrId),
      signaled ? SendFlags.SIGNALED : 0,
      elements.length / 3,
      ...elements,
    ),
  );
}
