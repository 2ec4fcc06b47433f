import type { NativeAddressHandle } from './native.js';
import type { ProtectionDomain } from './protection-domain.js';
import type { AddressVector } from './queue-pair-attributes.js';
import { Resource } from './resource.js';

/**
 * The way to a peer, for datagrams (`struct ibv_ah`). Made by {@link ProtectionDomain.createAh}; it cannot be closed while
 * an outstanding request names it.
 */
export class AddressHandle extends Resource {
  readonly pd: ProtectionDomain;
  /** What it was made from. */
  readonly vector: Readonly<AddressVector>;
  /** What names it in ring descriptors. */
  readonly slot: number;
  readonly #native: NativeAddressHandle;

  /** @internal */
  constructor(native: NativeAddressHandle, pd: ProtectionDomain, vector: AddressVector) {
    super(native, [pd]);
    this.#native = native;
    this.pd = pd;
    this.vector = vector;
    this.slot = native.slot;
  }

  /** @internal */
  get native(): NativeAddressHandle {
    return this.#native;
  }

  get label(): string {
    return `address handle of ${this.vector.dgid ?? `LID ${this.vector.dlid}`}`;
  }

  protected override get workRequests(): number {
    return this.#native.workRequests;
  }
}
