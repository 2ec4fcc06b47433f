import { RemoteRegion } from '../verbs/memory-region.js';
import { NetError } from './errors.js';
import type { Link } from './link.js';
import type { Pipeline } from './pipeline.js';

const nowhere = new RemoteRegion(0, 0, 0);

/**
 * Asks whether the peer is there still when nothing has been heard of it: by a WRITE of no bytes, which its device answers, whatever its
 * program does meanwhile. A receiver would learn of a dead peer in no other way.
 */
export class KeepAlive {
  readonly #timer: NodeJS.Timeout | undefined;
  #seen = 0;
  #late: NodeJS.Timeout | undefined;

  constructor(
    link: Link,
    writes: Pipeline,
    { interval, timeout, onDead }: { interval: number; timeout: number; onDead: (error: Error) => void },
  ) {
    if (interval === 0) return;
    this.#timer = setInterval(() => {
      if (link.signs !== this.#seen) {
        this.#seen = link.signs;
        return;
      }
      if (this.#late !== undefined) return;
      this.#late = setTimeout(() => onDead(silent(interval + timeout)), timeout).unref();
      writes
        .run(0, (id) => link.sends.rdmaWrite(id, link.slabs.mr, 0, 0, nowhere, 0))
        .then(
          () => this.#answered(),
          () => this.#answered(), // the connection has failed, and says so itself
        );
    }, interval).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#answered();
  }

  #answered(): void {
    clearTimeout(this.#late);
    this.#late = undefined;
  }
}

function silent(ms: number): NetError {
  return new NetError('ETIMEDOUT', `nothing was heard of the peer for ${ms} ms`, { syscall: 'read' });
}
