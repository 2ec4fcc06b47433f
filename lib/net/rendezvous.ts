// Long messages: the sender says where one lies, and the receiver reads it from there into the memory that its program gets.
import { Access } from '../verbs/constants.js';
import { RdmaError } from '../verbs/errors.js';
import { RemoteRegion, type MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { Link } from './link.js';
import type { Pipeline } from './pipeline.js';
import type { Announcement } from './protocol.js';

/** A message that the peer may read, until it is released. */
export interface OutgoingMemory extends Announcement {
  release(): void;
}

/** Makes a message readable where it lies: at once in registered memory of ours, otherwise by registering it for the time being. */
export async function prepareOutgoing(
  link: Link,
  data: Uint8Array,
  region: MemoryRegion | undefined,
): Promise<OutgoingMemory> {
  if (region !== undefined && (region.access & Access.REMOTE_READ) !== 0) {
    const offset = data.byteOffset - region.buffer.byteOffset;
    return { ...place(region, offset, data.length), release: () => undefined };
  }
  const mr = await link.track(registered(link.pd, data, Access.REMOTE_READ));
  return { ...place(mr, 0, data.length), release: () => void link.track(mr.closeAsync()) };
}

function place(mr: MemoryRegion, offset: number, length: number): Announcement {
  return { address: mr.address + BigInt(offset), length, rkey: mr.rkey };
}

/** Registers memory of the program's for a while. */
export async function registered(
  pd: ProtectionDomain,
  data: Uint8Array,
  access: number,
): Promise<MemoryRegion> {
  const options = { access };
  try {
    return await pd.regMr(data, options);
  } catch (error) {
    // Memory that must not be registered where it lies (of a resizable buffer, say) is copied once.
    if (error instanceof RdmaError) throw error;
    const copy = Buffer.allocUnsafeSlow(data.length);
    copy.set(data);
    return pd.regMr(copy, options);
  }
}

/** Reads a message of the peer from its memory. */
export async function fetch(link: Link, reads: Pipeline, announcement: Announcement): Promise<Buffer> {
  const { address, length, rkey } = announcement;
  const message = Buffer.allocUnsafeSlow(length);
  const remote = new RemoteRegion(address, rkey, length);
  const mr = await link.track(link.pd.regMr(message));
  try {
    await reads.run(length, (id, offset, count) =>
      link.sends.rdmaRead(id, mr, offset, count, remote, offset),
    );
  } finally {
    void link.track(mr.closeAsync());
  }
  return message;
}
