import { RdmaError } from './errors.js';
import type { NativeResource } from './native.js';

/** How {@link Resource.close} treats what still hangs on the object. */
export interface CloseOptions {
  /** Closes the objects that hang on this one first, newest first, and memory in use last. By default they are an error. */
  cascade?: boolean;
}

let created = 0;

/**
 * A verbs object and its life: it hangs on its parents, is closed once, and not before its children.
 *
 * Close it with {@link close}, or declare it with `using`. Parents hold what hangs on them, as peers may be using it: a
 * queue pair lives on when nothing but its context is kept. When nothing of the whole tree is kept any more, the garbage
 * collector finds it, and it is destroyed with a warning; the end of the environment (process or worker) closes all.
 */
export abstract class Resource {
  readonly #id = ++created;
  readonly #native: NativeResource;
  #parents: readonly Resource[];
  readonly #children = new Map<number, Resource>();
  #closed = false;

  /** @internal */
  protected constructor(native: NativeResource, parents: readonly Resource[]) {
    this.#native = native;
    this.#parents = [...new Set(parents)];
    for (const parent of this.#parents) parent.#children.set(this.#id, this);
  }

  /** What error texts call it, such as `queue pair 17`. */
  abstract get label(): string;

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Destroys the object. Closing a closed one does nothing.
   *
   * @throws RdmaError `ERR_RDMA_BUSY` with the names of the objects that still hang on it (unless `cascade`), with the
   * number of outstanding work requests that name it, or while an operation on it is under way
   */
  close(options: CloseOptions = {}): void {
    if (this.closed) return;
    for (const child of this.#liveChildren(options)) child.close(options);
    this.#refuseIfInUse();
    try {
      this.#native.close();
    } catch (error) {
      throw this.#busyOr(error);
    }
    this.#forget();
  }

  /** Like {@link close}, on another thread where that may take long (unpinning gigabytes). */
  async closeAsync(options: CloseOptions = {}): Promise<void> {
    if (this.closed) return;
    for (const child of this.#liveChildren(options)) await child.closeAsync(options);
    this.#refuseIfInUse();
    try {
      await this.#native.closeAsync();
    } catch (error) {
      throw this.#busyOr(error);
    }
    this.#forget();
  }

  /** Closes the object and all that hangs on it. */
  [Symbol.dispose](): void {
    this.close({ cascade: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAsync({ cascade: true });
  }

  /** Runs once the object is destroyed. */
  protected onClosed(): void {}

  /** @internal All that hangs on the object, directly or not. */
  *descendants(): Generator<Resource> {
    for (const child of this.#children.values()) {
      yield child;
      yield* child.descendants();
    }
  }

  /** @internal Whether an asynchronous event about that kind of object, with that number, is about this one. */
  isSubject(_kind: string, _number: number): boolean {
    return false;
  }

  /** The object hangs on `to` from now on, where it hung on `from`. */
  protected replaceParent(from: Resource, to: Resource): void {
    from.#children.delete(this.#id);
    to.#children.set(this.#id, this);
    this.#parents = this.#parents.map((parent) => (parent === from ? to : parent));
  }

  /** The object hangs on `parent` as well from now on. */
  protected addParent(parent: Resource): void {
    this.#parents = [...this.#parents, parent];
    parent.#children.set(this.#id, this);
  }

  /** Outstanding work requests that need the object. */
  protected get workRequests(): number {
    return 0;
  }

  #liveChildren({ cascade }: CloseOptions): Resource[] {
    const children = [...this.#children.values()].filter((child) => !child.closed);
    if (children.length > 0 && !cascade) {
      const names = children.map((child) => child.label);
      const shown = names.slice(0, 5).join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '');
      throw new RdmaError(
        'ERR_RDMA_BUSY',
        `cannot close ${this.label}: ${shown} still ${names.length === 1 ? 'hangs' : 'hang'} on it. ` +
          'Close them first, or close({ cascade: true }).',
      );
    }
    // Memory that work requests name waits for the queue pairs that have them, whichever is newer.
    return children.sort((a, b) => Number(a.workRequests > 0) - Number(b.workRequests > 0) || b.#id - a.#id);
  }

  #refuseIfInUse(): void {
    const count = this.workRequests;
    if (count === 0) return;
    throw new RdmaError(
      'ERR_RDMA_BUSY',
      `cannot close ${this.label}: ${count} outstanding work request${count === 1 ? ' names' : 's name'} it. ` +
        'Poll their completions first, or close the queue pair that has them.',
    );
  }

  #busyOr(error: unknown): unknown {
    if (!(error instanceof RdmaError) || error.code !== 'EBUSY') return error;
    return new RdmaError(
      'ERR_RDMA_BUSY',
      `cannot close ${this.label}: an operation on it is under way, or an object that was not closed still hangs on ` +
        'it and waits for the garbage collector. Await the operation; close what you create.',
      { cause: error },
    );
  }

  #forget(): void {
    this.#closed = true;
    for (const parent of this.#parents) parent.#children.delete(this.#id);
    this.onClosed();
  }
}
