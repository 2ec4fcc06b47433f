import { ReceiveDescriptor } from '../verbs/layout.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { DescriptorRing } from './descriptor-ring.js';

// Offsets in words. Copies, since the compiler looks up what is imported again at each use.
const ID = ReceiveDescriptor.id / 4;
const ID_HIGH = ReceiveDescriptor.idHigh / 4;
const SGE = ReceiveDescriptor.sge / 4;

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
    words[word + ID] = id;
    words[word + ID_HIGH] = 0;
    this.element(word + SGE, mr.slot, offset, length);
  }
}
