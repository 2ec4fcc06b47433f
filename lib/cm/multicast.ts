import type { AddressHandle } from '../verbs/address-handle.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { AddressVector } from '../verbs/queue-pair-attributes.js';
import type { CmId } from './id.js';

/** A multicast group that an identifier has joined. Made by {@link CmId.joinMulticast}. */
export class MulticastGroup {
  readonly id: CmId;
  /** The group's address, as it was given. */
  readonly address: string;
  /** Where datagrams to the group go. */
  readonly vector: AddressVector;
  /** 0xffffff, by which devices know a group. */
  readonly remoteQpn: number;
  readonly remoteQkey: number;

  /** @internal */
  constructor(id: CmId, address: string, vector: AddressVector, remoteQpn: number, remoteQkey: number) {
    this.id = id;
    this.address = address;
    this.vector = vector;
    this.remoteQpn = remoteQpn;
    this.remoteQkey = remoteQkey;
  }

  /** The way to the group, for the target of datagrams. */
  createAh(pd: ProtectionDomain = this.id.pd): Promise<AddressHandle> {
    return pd.createAh(this.vector);
  }

  /** Leaves it. `rdma_leave_multicast` */
  leave(): void {
    this.id.leaveMulticast(this.address);
  }
}
