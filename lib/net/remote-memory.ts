import { invalidArgType, outOfRange, RdmaError } from '../verbs/errors.js';
import { RemoteRegion, type MemoryRegion, type MemorySlice } from '../verbs/memory-region.js';
import { checkRights, rightAccess, rights, type Right } from './memory.js';

const VERSION = 1;
const BYTES = 24;

/**
 * Memory of a peer, as the peer has exported it: who has this, and a connection with the peer, can use the memory. It travels as bytes
 * ({@link toBuffer}) or as text (in JSON, too).
 */
export class RemoteMemory {
  /** What the peer says may be done with it. */
  readonly rights: readonly Right[];
  /** @internal */
  readonly region: RemoteRegion;

  private constructor(region: RemoteRegion, allowed: readonly Right[]) {
    this.region = region;
    this.rights = allowed;
  }

  /** In bytes. */
  get length(): number {
    return this.region.length;
  }

  /** 24 bytes; see docs/net.md. */
  toBuffer(): Buffer {
    const bytes = Buffer.alloc(BYTES);
    bytes[0] = VERSION;
    bytes[1] = this.rights.reduce((bits, right) => bits | (1 << rights.indexOf(right)), 0);
    bytes.writeUInt32LE(this.region.rkey, 4);
    bytes.writeBigUInt64LE(this.region.address, 8);
    bytes.writeBigUInt64LE(BigInt(this.region.length), 16);
    return bytes;
  }

  toString(): string {
    return this.toBuffer().toString('base64url');
  }

  toJSON(): string {
    return this.toString();
  }

  /**
   * What {@link toBuffer} or {@link toString} has made.
   *
   * @throws TypeError, RangeError for anything else
   */
  static from(token: RemoteMemory | Uint8Array | string): RemoteMemory {
    if (token instanceof RemoteMemory) return token;
    if (typeof token !== 'string' && !(token instanceof Uint8Array))
      throw invalidArgType('token', 'a RemoteMemory, or its bytes or text', token);
    const bytes =
      typeof token === 'string'
        ? Buffer.from(token, 'base64url')
        : Buffer.from(token.buffer, token.byteOffset, token.byteLength);
    if (bytes.length !== BYTES || bytes[0] !== VERSION || bytes[1]! >> rights.length !== 0)
      throw outOfRange('token', `${BYTES} bytes that export() has made`, `${bytes.length} other bytes`);
    const length = Number(bytes.readBigUInt64LE(16));
    const region = new RemoteRegion(bytes.readBigUInt64LE(8), bytes.readUInt32LE(4), length);
    return new RemoteMemory(
      region,
      rights.filter((_, i) => (bytes[1]! & (1 << i)) !== 0),
    );
  }

  /**
   * Memory of this end, for its peer.
   *
   * @throws RdmaError `ERR_RDMA_INVALID_ATTRIBUTES` where the region was registered without one of the rights
   */
  static of(slice: MemorySlice, wanted: readonly Right[] | undefined): RemoteMemory {
    const { mr } = slice;
    const given = checkRights(wanted ?? rightsOf(mr));
    const lacks = given.filter((right) => (mr.access & rightAccess[right]) === 0);
    if (lacks.length > 0)
      throw new RdmaError(
        'ERR_RDMA_INVALID_ATTRIBUTES',
        `${mr.label} was registered without the right of peers to ${lacks.join(' and ')}: alloc(bytes, { rights: ${JSON.stringify(given)} })`,
      );
    return new RemoteMemory(slice.remote(), given);
  }
}

function rightsOf(mr: MemoryRegion): Right[] {
  return rights.filter((right) => (mr.access & rightAccess[right]) !== 0);
}
