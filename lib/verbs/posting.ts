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
  writer: { write(place: number, request: T): void };
}

/** Posts requests that are objects: writes their descriptors, and posts as many with one call as there are descriptors. */
export function postRequests<T>(posting: Posting<T>, requests: T | readonly T[]): void {
  if (!Array.isArray(requests)) return postRequest(posting, requests as T);
  const list = requests as readonly T[];
  const { queue, writer } = posting;
  checkRoom(posting, list.length);
  let posted = 0;
  try {
    while (posted < list.length) {
      const count = Math.min(list.length - posted, queue.layout.descriptorCount);
      for (let i = 0; i < count; ++i) writer.write(queue.place(i), list[posted + i]!);
      posted += queue.post(count);
    }
  } catch (error) {
    throw failure(posting, error, posted);
  }
}

/** Posts one request. Whether there is room only the call tells: that saves looking before. */
export function postRequest<T>(posting: Posting<T>, request: T): void {
  const { queue, writer } = posting;
  let posted: number;
  try {
    writer.write(queue.place(0), request);
    posted = queue.post(1);
  } catch (error) {
    checkOpen(posting);
    throw failure(posting, error, 0);
  }
  if (posted === 0) throw noRoom(posting, 1);
}

function checkRoom<T>(posting: Posting<T>, count: number): void {
  const { queue, cq } = posting;
  checkOpen(posting);
  if (count > queue.free || (cq !== undefined && count > cq.room)) throw noRoom(posting, count);
}

function checkOpen<T>({ owner, subject }: Posting<T>): void {
  if (owner.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${owner.label} is closed`, subject);
}

function noRoom<T>({ owner, subject, syscall, queue, cq }: Posting<T>, count: number): RdmaError {
  const which =
    cq !== undefined && count <= queue.free
      ? `${cq.label} has room for ${cq.room} of ${cq.cqe} completions`
      : `${owner.label} has room for ${queue.free} of ${queue.capacity} (${syscall})`;
  return new RdmaError(
    'ERR_RDMA_QUEUE_FULL',
    `${count} requests do not fit: ${which}. Poll completions first. Requests without a completion of their own ` +
      'count until a later one completes, so signal some: one in each length of the shorter queue at least.',
    { ...subject, syscall },
  );
}

/** What is thrown for `error`, when so many of the requests had been posted before. */
function failure<T>({ subject }: Posting<T>, error: unknown, posted: number): unknown {
  const explained = error instanceof RdmaError ? explain(error, subject) : error;
  if (explained instanceof Error) {
    (explained as Error & { posted?: number }).posted = posted + ((error as RdmaError).posted ?? 0);
  }
  return explained;
}
