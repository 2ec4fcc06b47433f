// The peer's memory, without the peer's program: READ, WRITE and atomics.
import { Access } from '../verbs/constants.js';
import { invalidArgType, outOfRange, RdmaError } from '../verbs/errors.js';
import { MemoryRegion, MemorySlice } from '../verbs/memory-region.js';
import { integer, unsigned64 } from '../verbs/validate.js';
import { NetError } from './errors.js';
import type { Link } from './link.js';
import type { Right } from './memory.js';
import type { Pipeline } from './pipeline.js';
import { RemoteMemory } from './remote-memory.js';
import { registered } from './rendezvous.js';
import { Scratch, SCRATCH_BYTES } from './scratch.js';

/** Memory of a peer, in any of the forms that it travels in. */
export type Token = RemoteMemory | Uint8Array | string;

/** Which part of the peer's memory. */
export interface ReadOptions {
  /** 0 by default. */
  offset?: number;
  /** By default all from `offset` on, or as much as `into` holds. */
  length?: number;
  /** Registered memory of this end where the bytes are to go; by default a Buffer of its own. */
  into?: MemoryRegion | MemorySlice;
}

export interface OneSidedParts {
  link: Link;
  reads: Pipeline;
  writes: Pipeline;
  /** READs and atomics that may be outstanding; none where the peer serves none. */
  initiatorDepth: number;
}

export class OneSided {
  readonly #parts: OneSidedParts;
  readonly #scratch: Scratch;

  constructor(parts: OneSidedParts) {
    this.#parts = parts;
    this.#scratch = new Scratch(parts.link);
  }

  async read(token: Token, { offset = 0, length, into }: ReadOptions): Promise<Buffer> {
    const target = into === undefined ? undefined : this.#target(into);
    const region = this.#reach(token, 'read', offset, length ?? target?.length);
    const count = length ?? Math.min(target?.length ?? Infinity, region.length - offset);
    if (target !== undefined && count > target.length)
      throw outOfRange('length', `at most the ${target.length} bytes of into`, count);
    if (count === 0) return Buffer.alloc(0);
    const { link, reads } = this.#parts;
    const readInto = (mr: MemoryRegion, at: number) =>
      reads.run(count, (id, done, part) =>
        link.sends.rdmaRead(id, mr, at + done, part, region, offset + done),
      );
    if (target !== undefined) {
      await readInto(target.mr, target.offset);
      return target.buffer.subarray(0, count);
    }
    if (count <= SCRATCH_BYTES) {
      return this.#scratch.with(async ({ mr, offset: at, bytes }) => {
        await readInto(mr, at);
        return Buffer.from(bytes.subarray(0, count));
      });
    }
    const buffer = Buffer.allocUnsafeSlow(count);
    await this.#registered(buffer, 1, (mr) => readInto(mr, 0));
    return buffer;
  }

  async write(
    token: Token,
    data: Uint8Array,
    known: MemoryRegion | undefined,
    offset: number,
  ): Promise<void> {
    const region = this.#reach(token, 'write', offset, data.length);
    if (data.length === 0) return;
    const { link, writes } = this.#parts;
    const writeFrom = (mr: MemoryRegion, at: number) =>
      writes.run(data.length, (id, done, part) =>
        link.sends.rdmaWrite(id, mr, at + done, part, region, offset + done),
      );
    if (known !== undefined) return writeFrom(known, data.byteOffset - known.buffer.byteOffset);
    if (data.length <= SCRATCH_BYTES) {
      return this.#scratch.with(({ mr, offset: at, bytes }) => {
        bytes.set(data);
        return writeFrom(mr, at);
      });
    }
    return this.#registered(data, 0, (mr) => writeFrom(mr, 0));
  }

  async fetchAdd(token: Token, offset: number, add: bigint | number): Promise<bigint> {
    const value = BigInt.asUintN(
      64,
      typeof add === 'bigint' ? add : BigInt(integer('add', add, -(2 ** 53) + 1, 2 ** 53 - 1)),
    );
    const region = this.#reachWord(token, offset);
    return this.#atomic((id, mr, at) =>
      this.#parts.link.sends.fetchAdd(
        id,
        mr,
        at,
        region,
        offset,
        Number(value & 0xffffffffn),
        Number(value >> 32n),
      ),
    );
  }

  async compareSwap(
    token: Token,
    offset: number,
    compare: bigint | number,
    swap: bigint | number,
  ): Promise<bigint> {
    const [expected, replacement] = [unsigned64('compare', compare), unsigned64('swap', swap)];
    const region = this.#reachWord(token, offset);
    return this.#atomic((id, mr, at) =>
      this.#parts.link.sends.compareSwap(id, mr, at, region, offset, expected, replacement),
    );
  }

  /** Where bytes may be read to. What the device refused would end the connection. */
  #target(into: MemoryRegion | MemorySlice): MemorySlice {
    const slice = into instanceof MemoryRegion ? into.slice() : into;
    if (!(slice instanceof MemorySlice))
      throw invalidArgType('into', 'a memory region or a part of one', into);
    const { mr } = slice;
    if (mr.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${mr.label} is closed`);
    if (mr.pd !== this.#parts.link.pd)
      throw new RdmaError(
        'ERR_RDMA_FOREIGN_OBJECT',
        `${mr.label} is of another protection domain than the connection`,
      );
    if ((mr.access & Access.LOCAL_WRITE) === 0)
      throw new RdmaError('ERR_RDMA_INVALID_ATTRIBUTES', `${mr.label} was registered without LOCAL_WRITE`);
    return slice;
  }

  #atomic(write: (id: number, mr: MemoryRegion, at: number) => void): Promise<bigint> {
    return this.#scratch.with(async ({ mr, offset, bytes }) => {
      await this.#parts.reads.run(8, (id) => write(id, mr, offset));
      return bytes.readBigUInt64LE(0);
    });
  }

  #reachWord(token: Token, offset: number) {
    const region = this.#reach(token, 'atomic', offset, 8);
    if ((region.addressLow + offset) % 8 !== 0)
      throw outOfRange('offset', 'one of an aligned word of 8 bytes', offset);
    return region;
  }

  /** The region of a token, where it may be used so. */
  #reach(token: Token, right: Right, offset: number, length: number | undefined) {
    const memory = RemoteMemory.from(token);
    const { region } = memory;
    integer('offset', offset, 0, region.length);
    if (length !== undefined) integer('length', length, 0, Number.MAX_SAFE_INTEGER);
    if ((length ?? 0) > region.length - offset)
      throw outOfRange(
        'length',
        `at most ${region.length - offset} from offset ${offset} of the peer's ${region.length} bytes`,
        length,
      );
    if (!memory.rights.includes(right))
      throw new NetError(
        'EACCES',
        `the peer has exported that memory for ${memory.rights.join(', ') || 'nothing'}, not for ${right}`,
      );
    if (right !== 'write' && this.#parts.initiatorDepth === 0)
      throw new RdmaError('ERR_RDMA_UNSUPPORTED', 'the peer serves no READs and no atomics');
    return region;
  }

  async #registered(
    data: Uint8Array,
    access: number,
    work: (mr: MemoryRegion) => Promise<void>,
  ): Promise<void> {
    const { link } = this.#parts;
    const mr = await link.track(registered(link.pd, data, access));
    try {
      await work(mr);
    } finally {
      void link.track(mr.closeAsync());
    }
  }
}
