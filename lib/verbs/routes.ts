import type { NativeCmEvent } from './native.js';

/** Finds what native code names by a serial number, and does not keep it from the garbage collector. */
class Routes<T extends object> {
  readonly #targets = new Map<number, WeakRef<T>>();
  readonly #collected = new FinalizationRegistry<number>((serial) => this.#targets.delete(serial));

  add(serial: number, target: T): void {
    this.#targets.set(serial, new WeakRef(target));
    this.#collected.register(target, serial);
  }

  get(serial: number): T | undefined {
    return this.#targets.get(serial)?.deref();
  }
}

/** Where completion events go, by the serial of the completion queue. */
export const completionRoutes = new Routes<{ notified(errno: number): void }>();

/** Where a failure of an event channel of the connection manager goes, by the serial of the channel. */
export const cmChannelRoutes = new Routes<{ fail(errno: number): void }>();

/** Where the connection manager's events go, by the serial of the identifier that each is about. */
export const cmIdRoutes = new Routes<{ receive(event: NativeCmEvent): void }>();

/** Where asynchronous events go, by the serial of the context. They come as pairs: type and subject. */
export const asyncEventRoutes = new Routes<{ receive(events: readonly number[]): void }>();
