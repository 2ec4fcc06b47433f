// Whom a datagram goes to: found by asking the connection manager at the other end, and kept for a while.
import type { CmId } from '../cm/id.js';
import type { EventChannel } from '../cm/event-channel.js';
import type { AddressHandle } from '../verbs/address-handle.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { AddressHandles } from './address-handles.js';
import { connectFailure } from './errors.js';

/** Where datagrams to a peer, or to a group, go. */
export interface Destination {
  /** The way there: asked for at each datagram, since it is found anew from time to time. */
  way(this: void): Promise<AddressHandle>;
  qpn: number;
  qkey: number;
}

interface Entry {
  found: Promise<Destination>;
  /** Number of the queue pair, where the entry was learnt from a datagram. */
  qpn?: number;
  /** As `performance.now()` has it. */
  until: number;
}

/** A peer that was started anew has another queue pair, and nothing tells: so it is asked again from time to time. */
const KEPT_MS = 30_000;
const MOST_KEPT = 1024;

export interface DestinationParts {
  channel: EventChannel;
  qp: QueuePair;
  /** Own address. */
  local: string;
  qkey: number;
}

export class Destinations {
  readonly #parts: DestinationParts;
  readonly #entries = new Map<string, Entry>();
  readonly #handles: AddressHandles;
  readonly #asking = new Set<CmId>();

  constructor(parts: DestinationParts) {
    this.#parts = parts;
    this.#handles = new AddressHandles(parts.qp.pd);
  }

  /** @throws NetError as {@link connect} */
  find(host: string, port: number, timeoutMs: number): Promise<Destination> {
    const key = `${host}|${port}`;
    const known = this.#entries.get(key);
    if (known !== undefined && known.until > performance.now()) return known.found;
    return this.#keep(key, this.#ask(host, port, timeoutMs));
  }

  /** A datagram came from there. */
  learn(address: string, port: number, qpn: number): void {
    const key = `${address}|${port}`;
    const known = this.#entries.get(key);
    if (known?.qpn === qpn) {
      known.until = performance.now() + KEPT_MS;
      return;
    }
    const { local, qkey } = this.#parts;
    const dgid = address.includes(':') ? address : `::ffff:${address}`;
    const way = () => this.#handles.to({ dgid, gid: { address: local } });
    const found = Promise.resolve({ way, qpn, qkey });
    this.#entries.set(key, { found, qpn, until: performance.now() + KEPT_MS });
    this.#forgetOldest();
  }

  /** Ends what is being asked. */
  async close(): Promise<void> {
    for (const id of this.#asking) await id.closeAsync().catch(() => undefined);
    this.#entries.clear();
  }

  async #ask(host: string, port: number, timeoutMs: number): Promise<Destination> {
    const { channel, qp, local } = this.#parts;
    const id = channel.createId('udp');
    this.#asking.add(id);
    try {
      await id.resolve(host, port, { source: local, timeoutMs });
      const { remoteQpn, datagram } = await id.connect({ qp, timeoutMs });
      const way = () => this.#handles.to(datagram!.address);
      return { way, qpn: remoteQpn, qkey: datagram!.remoteQkey };
    } catch (error) {
      throw connectFailure(error, host, port);
    } finally {
      this.#asking.delete(id);
      await id.closeAsync();
    }
  }

  #keep(key: string, found: Promise<Destination>): Promise<Destination> {
    const entry = { found, until: Infinity };
    this.#entries.set(key, entry);
    found.then(
      () => (entry.until = performance.now() + KEPT_MS),
      () => this.#entries.get(key) === entry && this.#entries.delete(key),
    );
    this.#forgetOldest();
    return found;
  }

  #forgetOldest(): void {
    if (this.#entries.size <= MOST_KEPT) return;
    const [key] = this.#entries.keys();
    this.#entries.delete(key!);
  }
}
