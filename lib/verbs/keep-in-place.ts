import { markAsUntransferable } from 'node:worker_threads';

/**
 * Keeps a user's memory where it is, for good, since a device may write to it: other threads cannot take it, and
 * `buffer.transfer()` throws. Node.js 22 has that method and lets it ignore the mark; from 24 on the mark suffices.
 */
export function keepInPlace(buffer: ArrayBuffer): void {
  markAsUntransferable(buffer);
  for (const method of ['transfer', 'transferToFixedLength']) {
    if (method in buffer) Reflect.defineProperty(buffer, method, { value: refuse });
  }
}

function refuse(): never {
  throw new TypeError(
    'this ArrayBuffer cannot be transferred: it was registered with an RDMA device, which may write to it. Copy it with slice().',
  );
}
