// What the wire of the machine has carried, by the kernel's counters.
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Bytes that the device at end B has received. */
export function receivedByB(): number {
  const netdev = process.env.NODE_RDMA_RXE_NETDEV_B!;
  return Number(readFileSync(`/sys/class/net/${netdev}/statistics/rx_bytes`, 'utf8'));
}

/** Waits until end B has received so many bytes more. */
export async function carried(bytes: number, timeoutMs = 60_000): Promise<void> {
  const before = receivedByB();
  const deadline = Date.now() + timeoutMs;
  while (receivedByB() - before < bytes) {
    if (Date.now() > deadline) throw new Error(`the wire has not carried ${bytes} bytes in ${timeoutMs} ms`);
    await setTimeout(20);
  }
}
