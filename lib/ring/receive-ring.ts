import { ReceiveDescriptor } from '../verbs/layout.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { DescriptorRing } from './descriptor-ring.js';

/** Receive requests as descriptors in shared memory; see {@link SendRing}. */
export class ReceiveRing extends DescriptorRing {
  constructor(queuePair: QueuePair) {
    super(queuePair.receiveQueue, ReceiveDescriptor.size);
  }

  /** A message of up to `length` bytes goes to `offset` of the region. */
  receive(id: number, mr: MemoryRegion, offset: number, length: number): void {
    const word = this.begin();
    const words = this.words;
    words[word] = 1 << 16;
    words[word + ReceiveDescriptor.id / 4] = id;
    words[word + ReceiveDescriptor.idHigh / 4] = 0;
    this.element(word + ReceiveDescriptor.sge / 4, mr.slot, offset, length);
  }
}
