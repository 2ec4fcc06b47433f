import type { CompletionQueue } from './completion-queue.js';
import type { DescriptorQueue } from './descriptor-queue.js';
import { explain, RdmaError, type ErrorSubject } from './errors.js';
import type { Resource } from './resource.js';

/** How requests are posted to one queue: made with the queue, so that posting makes nothing of its own. */
export interface Posting<T> {
  /** The queue pair or shared receive queue. */
  owner: Resource;
  subject: ErrorSubject;
  syscall: string;
  queue: DescriptorQueue;
  /** Where the requests complete, when that is known beforehand. */
  cq?: CompletionQueue;
  write: (place: number, request: T) => void;
}

/** Posts requests that are objects: writes their descriptors, and posts as many with one call as there are descriptors. */
export function postRequests<T>(posting: Posting<T>, requests: T | readonly T[]): void {
  const { owner, subject, syscall, queue, cq, write } = posting;
  if (owner.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${owner.label} is closed`, subject);
  const list = Array.isArray(requests) ? (requests as readonly T[]) : [requests as T];
  if (list.length > queue.free || (cq !== undefined && list.length > cq.room)) {
    const which =
      cq !== undefined && list.length <= queue.free
        ? `${cq.label} has room for ${cq.room} of ${cq.cqe} completions`
        : `${owner.label} has room for ${queue.free} of ${queue.capacity} (${syscall})`;
    throw new RdmaError(
      'ERR_RDMA_QUEUE_FULL',
      `${list.length} requests do not fit: ${which}. Poll completions first. Requests without a completion of their own ` +
        'count until a later one completes, so signal some: one in each length of the shorter queue at least.',
      { ...subject, syscall },
    );
  }
  let posted = 0;
  try {
    while (posted < list.length) {
      const count = Math.min(list.length - posted, queue.layout.descriptorCount);
      for (let i = 0; i < count; ++i) write(queue.place(i), list[posted + i]!);
      posted += queue.post(count);
    }
  } catch (error) {
    const explained = error instanceof RdmaError ? explain(error, subject) : error;
    if (explained instanceof Error) {
      (explained as Error & { posted?: number }).posted = posted + ((error as RdmaError).posted ?? 0);
    }
    throw explained;
  }
}
