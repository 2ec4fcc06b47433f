import type { AddressHandle } from '../verbs/address-handle.js';
import type { GidSelection } from '../verbs/gid.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { AddressVector } from '../verbs/queue-pair-attributes.js';

interface Entry {
  handle: Promise<AddressHandle>;
  /** As `performance.now()` has it. */
  until: number;
}

/** A peer may get another link address, and nothing tells. */
const KEPT_MS = 30_000;
const MOST_KEPT = 1024;

/** The ways to peers, one for each GID: found when they are first needed, and anew from time to time. */
export class AddressHandles {
  readonly #pd: ProtectionDomain;
  readonly #entries = new Map<string, Entry>();
  /** Those that a datagram on its way still needed when they were to be closed. */
  #old: AddressHandle[] = [];

  constructor(pd: ProtectionDomain) {
    this.#pd = pd;
  }

  /** @throws as {@link ProtectionDomain.createAh} */
  to(vector: AddressVector & { gid?: GidSelection }): Promise<AddressHandle> {
    const key = vector.dgid!;
    const known = this.#entries.get(key);
    if (known !== undefined && known.until > performance.now()) return known.handle;
    const entry = { handle: this.#pd.createAh(vector), until: performance.now() + KEPT_MS };
    this.#forget(key);
    this.#entries.set(key, entry);
    entry.handle.catch(() => this.#entries.get(key) === entry && this.#entries.delete(key));
    if (this.#entries.size > MOST_KEPT) this.#forget(this.#entries.keys().next().value!);
    return entry.handle;
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    entry?.handle.then(
      (handle) => {
        this.#old = [...this.#old, handle].filter((each) => !closes(each));
      },
      () => undefined,
    );
  }
}

/** False while a request names it. */
function closes(handle: AddressHandle): boolean {
  try {
    handle.close();
    return true;
  } catch {
    return false;
  }
}
