// Ends of connections by the connection manager, for tests on a real device.
import { onTestFinished } from 'vitest';
import {
  createEventChannel,
  type CmConnectOptions,
  type CmEvent,
  type CmId,
  type CmQueuePairOptions,
  type CompletionQueue,
  type EventChannel,
} from '../../lib/index.js';

export const addressA = process.env.NODE_RDMA_RXE_ADDRESS_A!;
export const addressB = process.env.NODE_RDMA_RXE_ADDRESS_B ?? addressA;
export const address6A = process.env.NODE_RDMA_RXE_ADDRESS6_A!;
export const address6B = process.env.NODE_RDMA_RXE_ADDRESS6_B ?? address6A;

/** A channel that is closed, with all that hangs on it, when the test ends. */
export function channel(): EventChannel {
  const made = createEventChannel();
  onTestFinished(() => made.close({ cascade: true }));
  return made;
}

/** A listener on the end B of the wire, on a port that was free. */
export function listener(on: EventChannel = channel(), address = addressB, portSpace: 'tcp' | 'udp' = 'tcp') {
  const id = on.createId(portSpace);
  id.bindAddr(address);
  id.listen();
  return { id, port: id.localAddress!.port };
}

/** An identifier on the end A that knows the way to the end B. */
export async function resolved(
  port: number,
  {
    on = channel(),
    portSpace = 'tcp',
    from = addressA,
    to = addressB,
  }: { on?: EventChannel; portSpace?: 'tcp' | 'udp'; from?: string; to?: string } = {},
): Promise<CmId> {
  const id = on.createId(portSpace);
  await id.resolveAddr(to, port, { source: from });
  await id.resolveRoute();
  return id;
}

export interface Connected {
  client: CmId;
  server: CmId;
  /** What the client learned. */
  event: CmEvent;
}

interface Meeting {
  qp?: CmQueuePairOptions;
  connect?: CmConnectOptions;
  accept?: CmConnectOptions;
}

/** Connects an identifier that knows the way to a listener, with a queue pair of the connection manager's at each end. */
export async function meet(
  client: CmId,
  listening: CmId,
  { qp = {}, connect = {}, accept = {} }: Meeting = {},
): Promise<Omit<Connected, 'client'>> {
  client.createQp(qp);
  const connecting = client.connect(connect);
  const server = await listening.getRequest({ timeoutMs: 20_000 });
  server.createQp(qp);
  const [event] = await Promise.all([connecting, server.accept(accept)]);
  return { server, event };
}

/** Two identifiers, connected over the wire, each with a queue pair of the connection manager's. */
export async function connected(options: Meeting = {}): Promise<Connected> {
  const { id, port } = listener();
  const client = await resolved(port);
  return { client, ...(await meet(client, id, options)) };
}

/** A completion queue on the context of an identifier, which outlives it and is closed with the test. */
export function queueOf(id: CmId): CompletionQueue {
  const cq = id.context.createCq();
  onTestFinished(() => cq.close({ cascade: true }));
  return cq;
}
