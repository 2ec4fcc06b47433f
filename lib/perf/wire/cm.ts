// The talk over a connection of rdma_cm, as perftest has it with -z and -R: each message is one SEND.
import { createEventChannel, type EventChannel } from '../../cm/event-channel.js';
import type { CmId } from '../../cm/id.js';
import { abortError, RdmaError } from '../../verbs/errors.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { Endpoint } from '../endpoint.js';
import { acceptQueuePairs, connectQueuePairs, waiting } from './cm-queue-pairs.js';
import type { Exchange, Role } from './exchange.js';
import { peerLost, peerSilent } from './failures.js';
import { decodeBinaryKey, encodeBinaryKey, notPerftest } from './messages.js';

export interface CmOptions {
  /** Of the connection manager; 0 lets the system choose one, for a server. */
  port: number;
  /** Milliseconds that each step may take. */
  timeout: number;
  signal?: AbortSignal | undefined;
  /** Whether rdma_cm connects the queue pairs for the data, too. */
  queuePairs: boolean;
}

/** What a message may have: perftest's have up to 56 bytes, what two of ours tell each other more. */
const mostBytes = 4096;
/** perftest has 7 of both, which rxe takes for ever; that a receive is not there yet is only for a moment. */
const TRIES = { retryCount: 6, rnrRetryCount: 7, responderResources: 0, initiatorDepth: 0 };
/** Milliseconds for a peer that does not answer the last words. */
const lingering = 2000;

/**
 * @param sourceAddress a local address to connect from
 * @throws RdmaError `ERR_RDMA_NO_PEER`, with the reason; AbortError
 */
export async function connectCm(
  host: string,
  { port, timeout, signal, queuePairs, sourceAddress }: CmOptions & { sourceAddress?: string | undefined },
): Promise<CmExchange> {
  const channel = createEventChannel();
  try {
    const id = channel.createId();
    const wait = waiting(timeout, signal);
    await id.resolve(host, port, { ...wait, ...(sourceAddress && { source: sourceAddress }) });
    const memory = await prepare(id);
    await id.connect({ ...TRIES, ...wait });
    const join = (own: CmExchange, endpoint: Endpoint) => connectQueuePairs(own, id, endpoint, signal);
    return new CmExchange('client', channel, id, memory, signal, queuePairs ? join : undefined);
  } catch (cause) {
    channel.close({ cascade: true });
    if (signal?.aborted) throw abortError(signal);
    throw new RdmaError(
      'ERR_RDMA_NO_PEER',
      `cannot connect to ${host}, rdma_cm port ${port}: ${(cause as Error).message}. Start the other end first, without a host and ` +
        'with -R or -z as here; the address must be that of an interface with an RDMA device',
      { cause },
    );
  }
}

/**
 * Waits for one client, for as long as it takes, and lets no second one in.
 *
 * @throws RdmaError `ERR_RDMA_NO_PEER` where the port cannot be had; AbortError
 */
export async function acceptCm({
  port,
  timeout,
  signal,
  queuePairs,
  onListening,
}: CmOptions & { onListening?: ((port: number) => void) | undefined }): Promise<CmExchange> {
  const channel = createEventChannel();
  const listener = channel.createId();
  try {
    listener.bindAddr('0.0.0.0', port);
    listener.listen(1);
  } catch (cause) {
    channel.close({ cascade: true });
    throw new RdmaError(
      'ERR_RDMA_NO_PEER',
      `cannot listen on rdma_cm port ${port}: ${(cause as Error).message}. Is another server running? Choose another port for both ends.`,
      { cause },
    );
  }
  try {
    const own = listener.localAddress!.port;
    const request = listener.getRequest(signal ? { signal } : {});
    onListening?.(own);
    const id = await request;
    const memory = await prepare(id);
    await id.accept({ ...TRIES, ...waiting(timeout, signal) });
    listener.close();
    const join = (exchange: CmExchange, endpoint: Endpoint) =>
      acceptQueuePairs(exchange, id, own, endpoint, signal);
    return new CmExchange('server', channel, id, memory, signal, queuePairs ? join : undefined);
  } catch (error) {
    channel.close({ cascade: true });
    if (signal?.aborted) throw abortError(signal);
    throw error;
  }
}

interface Messages {
  incoming: MemoryRegion;
  outgoing: MemoryRegion;
}

/** The queue pair, and a receive for the first message: it may come as soon as the ends are connected. */
async function prepare(id: CmId): Promise<Messages> {
  id.createQp({ maxSendWr: 1, maxRecvWr: 1 });
  const memory = { incoming: await id.regMsgs(mostBytes), outgoing: await id.regMsgs(mostBytes) };
  id.postRecv({ sge: { mr: memory.incoming } });
  return memory;
}

/** One message at a time is under way in each direction, so one receive is enough: it is posted again before the answer goes. */
export class CmExchange implements Exchange {
  readonly role: Role;
  readonly peer: string;
  readonly keys = { encode: encodeBinaryKey, decode: decodeBinaryKey };
  readonly join: ((endpoint: Endpoint) => Promise<void>) | undefined;
  readonly channel: EventChannel;
  readonly #id: CmId;
  readonly #messages: Messages;
  readonly #signal: AbortSignal | undefined;
  #arrived: Buffer | undefined;
  #failure: Error | undefined;

  constructor(
    role: Role,
    channel: EventChannel,
    id: CmId,
    messages: Messages,
    signal: AbortSignal | undefined,
    join: ((own: CmExchange, endpoint: Endpoint) => Promise<void>) | undefined,
  ) {
    this.role = role;
    this.peer = id.peerAddress!.address;
    this.channel = channel;
    this.#id = id;
    this.#messages = messages;
    this.#signal = signal;
    this.join = join && ((endpoint) => join(this, endpoint));
  }

  /** The device that the peer's address leads to. */
  get device(): string {
    return this.#id.context.device.name;
  }

  get heard(): boolean {
    if (this.#arrived === undefined && this.#failure === undefined) {
      const [completion] = this.#id.qp!.recvCq.poll(1);
      if (completion?.error) this.#failure = completion.error;
      else if (completion) this.#take(completion.byteLen!);
    }
    return this.#arrived !== undefined;
  }

  get gone(): boolean {
    return !this.heard && (this.#failure !== undefined || this.#id.state !== 'connected');
  }

  async swap(message: Buffer, timeout: number): Promise<Buffer> {
    if (this.role === 'client') await this.#write(message, timeout);
    const theirs = await this.#read(message.length, timeout);
    if (this.role === 'server') await this.#write(message, timeout);
    return theirs;
  }

  end(): void {
    const { channel } = this;
    const close = () => channel.close({ cascade: true });
    this.#id.disconnect({ timeoutMs: lingering }).then(close, close);
  }

  destroy(): void {
    this.channel.close({ cascade: true });
  }

  async #read(size: number, timeout: number): Promise<Buffer> {
    const signal = this.#signal;
    if (signal?.aborted) throw abortError(signal);
    if (this.gone) throw peerLost(this.peer, this.#failure);
    // Not `heard`: each look may be the one that takes the message, which would then be waited for in vain.
    if (this.#arrived === undefined) {
      const completion = await this.#id.getRecvComp(waiting(timeout, signal)).catch((error: unknown) => {
        if (error instanceof RdmaError && error.code === 'ERR_RDMA_TIMEOUT')
          throw peerSilent(this.peer, 'nothing', timeout);
        throw error;
      });
      if (completion.error) throw peerLost(this.peer, completion.error);
      this.#take(completion.byteLen!);
    }
    const message = this.#arrived!;
    this.#arrived = undefined;
    if (message.length !== size)
      throw notPerftest(`its next message has ${message.length} bytes instead of ${size}`);
    return message;
  }

  #take(bytes: number): void {
    const { incoming } = this.#messages;
    this.#arrived = Buffer.from(incoming.buffer.subarray(0, bytes));
    this.#id.postRecv({ sge: { mr: incoming } });
  }

  async #write(message: Buffer, timeout: number): Promise<void> {
    const { outgoing } = this.#messages;
    if (message.length > mostBytes) throw new RangeError(`a message of ${message.length} bytes`);
    message.copy(outgoing.buffer);
    this.#id.postSend({ opcode: 'send', sge: { mr: outgoing, length: message.length } });
    const completion = await this.#id.getSendComp(waiting(timeout, this.#signal));
    if (completion.error) throw peerLost(this.peer, completion.error);
  }
}
