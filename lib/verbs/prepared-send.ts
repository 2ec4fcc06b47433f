import { QueueMemory, type DescriptorQueue } from './descriptor-queue.js';
import { RdmaError } from './errors.js';
import { ScatterGatherElement, SendDescriptor } from './layout.js';
import { postRequest, type Posting } from './posting.js';
import type { Resource } from './resource.js';
import { SendWriter, type SendRequest, type Sge } from './work-request.js';

const DESCRIPTOR_WORDS = SendDescriptor.size / 4;

/** Word by word: for so few, a loop costs twice as much, and a call of `set` thrice. */
function copyDescriptor(from: Uint32Array, to: Uint32Array, at: number): void {
  to[at] = from[0]!;
  to[at + 1] = from[1]!;
  to[at + 2] = from[2]!;
  to[at + 3] = from[3]!;
  to[at + 4] = from[4]!;
  to[at + 5] = from[5]!;
  to[at + 6] = from[6]!;
  to[at + 7] = from[7]!;
  to[at + 8] = from[8]!;
  to[at + 9] = from[9]!;
  to[at + 10] = from[10]!;
  to[at + 11] = from[11]!;
  to[at + 12] = from[12]!;
  to[at + 13] = from[13]!;
  to[at + 14] = from[14]!;
  to[at + 15] = from[15]!;
}

/**
 * A send request that is written once, and posted any number of times. Made by {@link QueuePair.prepareSend}.
 *
 * What it names is not held between posts: each post checks it natively, as any other.
 */
export class PreparedSend {
  readonly #posting: Posting<undefined>;
  readonly #queue: DescriptorQueue;
  /** Memory regions and an address handle. */
  readonly #names: readonly Resource[];
  readonly #descriptor: Uint32Array;
  /** Where there is more than one. */
  readonly #elements: Uint32Array | undefined;
  readonly #inline: Uint8Array | undefined;

  /** @internal */
  constructor(posting: Posting<SendRequest>, maxInlineData: number, request: SendRequest) {
    const { queue } = posting;
    const { maxSge, inlineStride } = queue.layout;
    const elements = SendDescriptor.size;
    const inlineArea = elements + maxSge * ScatterGatherElement.size;
    const memory = new QueueMemory(new ArrayBuffer(inlineArea + inlineStride));
    const { words, bytes } = memory;
    const layout = { ...queue.layout, descriptors: 0, elements, inlineArea };
    new SendWriter(memory, layout, maxInlineData).write(0, request);

    const { sge = [], inline, ud } = request;
    const ranges = Array.isArray(sge) ? (sge as readonly Sge[]) : [sge as Sge];
    const elementWords = (ranges.length * ScatterGatherElement.size) / 4;
    this.#posting = { ...posting, writer: this };
    this.#queue = queue;
    this.#names = [...ranges.map(({ mr }) => mr), ...(ud === undefined ? [] : [ud.ah])];
    this.#descriptor = words.subarray(0, DESCRIPTOR_WORDS);
    if (ranges.length > 1) this.#elements = words.subarray(elements / 4, elements / 4 + elementWords);
    if (inline !== undefined) this.#inline = bytes.subarray(inlineArea, inlineArea + inline.length);
  }

  /**
   * Posts the request. `ibv_post_send`
   *
   * @throws RdmaError as {@link QueuePair.postSend}; `ERR_RDMA_CLOSED` when something that it names is closed
   */
  post(): void {
    postRequest(this.#posting, undefined);
  }

  /** @internal Copies it to a place of the queue. */
  write(place: number): void {
    for (const resource of this.#names) {
      if (resource.closed) throw new RdmaError('ERR_RDMA_CLOSED', `${resource.label} is closed`);
    }
    const { memory, layout } = this.#queue;
    const { words } = memory;
    copyDescriptor(this.#descriptor, words, layout.descriptors / 4 + place * DESCRIPTOR_WORDS);
    if (this.#elements !== undefined) {
      words.set(this.#elements, (layout.elements + place * layout.maxSge * ScatterGatherElement.size) / 4);
    }
    if (this.#inline !== undefined) {
      memory.bytes.set(this.#inline, layout.inlineArea + place * layout.inlineStride);
    }
  }
}
