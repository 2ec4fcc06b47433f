import { RdmaError } from '../verbs/errors.js';
import { ReceiveDescriptor } from '../verbs/layout.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { SharedReceiveQueue } from '../verbs/shared-receive-queue.js';
import { DescriptorRing } from './descriptor-ring.js';

// Offsets in words. Copies, since the compiler looks up what is imported again at each use.
const ID = ReceiveDescriptor.id / 4;
const ID_HIGH = ReceiveDescriptor.idHigh / 4;
const SGE = ReceiveDescriptor.sge / 4;

/**
 * Receive requests as descriptors in shared memory, for a queue pair or for a shared receive queue; see {@link SendRing}. Each has
 * one range of a region; `postRecv()` takes lists of them.
 */
export class ReceiveRing extends DescriptorRing {
  /** @throws RdmaError `ERR_RDMA_INVALID_STATE` for a queue pair that takes its receives from a shared receive queue */
  constructor(queue: QueuePair | SharedReceiveQueue) {
    if ('srq' in queue && queue.srq !== undefined) {
      throw new RdmaError(
        'ERR_RDMA_INVALID_STATE',
        `${queue.label} takes its receives from ${queue.srq.label}: make the ring for that`,
        { qpn: queue.qpNum },
      );
    }
    super(queue.receiveQueue, ReceiveDescriptor.size);
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
