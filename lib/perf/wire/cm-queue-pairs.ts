// The queue pairs for the data, connected by rdma_cm one after the other (perftest's -R). The keys that are exchanged afterwards tell
// of their memory only.
import { setTimeout } from 'node:timers/promises';
import { ConnectionError } from '../../cm/errors.js';
import type { CmId } from '../../cm/id.js';
import { RdmaError } from '../../verbs/errors.js';
import type { Endpoint, Flow } from '../endpoint.js';
import { GRH_BYTES, type Plan } from '../plan.js';
import type { CmExchange } from './cm.js';
import { BINARY_KEY_BYTES } from './messages.js';

/** A server of perftest listens a moment after it has said that it does. */
const TRIES = 10;
const betweenTries = 100;

/** As in the talk over TCP: a receiver that falls behind slows its sender down. */
const RNR_FOR_EVER = 7;

/** For a wait of the connection manager. */
export function waiting(timeout: number, signal: AbortSignal | undefined) {
  return { ...(timeout < Infinity && { timeoutMs: timeout }), ...(signal && { signal }) };
}

/** With nothing in it: it says that the other end may go on. */
const goAhead = Buffer.alloc(BINARY_KEY_BYTES);

/** @param id of the talk: the others go to the same address and port */
export async function connectQueuePairs(
  exchange: CmExchange,
  id: CmId,
  endpoint: Endpoint,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { plan } = endpoint;
  requireDevice(exchange, plan);
  const { timeout } = plan.settings;
  await exchange.swap(goAhead, timeout);
  for (const flow of endpoint.flows) {
    const { remoteQpn, datagram } = await connectOne(exchange, id, flow, plan, signal);
    if (datagram === undefined) continue;
    const ah = await endpoint.pd.createAh(datagram.address);
    flow.target = { ah, qpNum: remoteQpn, qkey: datagram.remoteQkey };
    if (answers(plan)) await introduce(endpoint, flow);
  }
  await exchange.swap(goAhead, timeout);
}

async function connectOne(
  { channel }: CmExchange,
  of: CmId,
  { qp }: Flow,
  plan: Plan,
  signal: AbortSignal | undefined,
) {
  const { address, port } = of.peerAddress!;
  const wait = waiting(plan.settings.timeout, signal);
  for (let tried = 1; ; ++tried) {
    const id = channel.createId(portSpace(plan));
    await id.resolveAddr(address, port, { ...wait, source: of.localAddress!.address });
    await id.resolveRoute(wait);
    setOptions(id, plan);
    try {
      return await id.connect({ qp, ...parameters(plan), ...wait });
    } catch (error) {
      if (tried === TRIES || !(error instanceof ConnectionError) || error.code !== 'ECONNREFUSED')
        throw error;
      id.close({ cascade: true });
      await setTimeout(betweenTries, undefined, wait);
    }
  }
}

/** @param port where the talk was asked for: the others come to the same */
export async function acceptQueuePairs(
  exchange: CmExchange,
  id: CmId,
  port: number,
  endpoint: Endpoint,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { plan, flows } = endpoint;
  requireDevice(exchange, plan);
  const wait = waiting(plan.settings.timeout, signal);
  const listener = exchange.channel.createId(portSpace(plan));
  listener.bindAddr(id.localAddress!.address, port);
  listener.listen(flows.length);
  await exchange.swap(goAhead, plan.settings.timeout);
  for (const flow of flows) {
    const request = await listener.getRequest(wait);
    if (answers(plan)) await expectIntroduction(flow, request);
    setOptions(request, plan);
    await request.accept({ qp: flow.qp, ...parameters(plan), ...wait });
  }
  if (answers(plan)) await meetIntroduced(endpoint, wait);
  await exchange.swap(goAhead, plan.settings.timeout);
  listener.close();
}

/** Whether a server sends to its client as well, and so must know where datagrams go. */
function answers({ settings: { connection, measure, bidirectional } }: Plan): boolean {
  return connection === 'ud' && (measure === 'lat' || bidirectional);
}

const introductionBytes = 4;

/** The client of datagrams tells by a message where it is: its number as immediate data, its address in the GRH. */
async function introduce({ cq }: Endpoint, { qp, mr, sendAt, target }: Flow): Promise<void> {
  const { ah, qpNum, qkey } = target!;
  qp.postSend({
    opcode: 'sendWithImm',
    sge: { mr, offset: sendAt, length: introductionBytes },
    immData: qp.qpNum,
    ud: { ah, remoteQpn: qpNum, remoteQkey: qkey },
  });
  await cq.wait({ timeoutMs: 10_000 });
  for (const { error } of cq.poll(1)) if (error) throw error;
}

async function expectIntroduction({ qp, mr, receiveAt }: Flow, request: CmId): Promise<void> {
  if (qp.state === 'reset') await qp.start({ qkey: request.initQpAttr('init').qkey! });
  qp.postRecv({ sge: { mr, offset: receiveAt, length: GRH_BYTES + introductionBytes } });
}

async function meetIntroduced({ cq, flows, pd }: Endpoint, wait: object): Promise<void> {
  for (let met = 0; met < flows.length;) {
    await cq.wait(wait);
    for (const completion of cq.poll(flows.length)) {
      if (completion.error) throw completion.error;
      const flow = flows.find(({ qp }) => qp.qpNum === completion.qpNum)!;
      const { mr, receiveAt, qp } = flow;
      const ah = await pd.createAhFromWc(completion, mr.buffer.subarray(receiveAt, receiveAt + GRH_BYTES));
      flow.target = { ah, qpNum: completion.immData! & 0xffffff, qkey: qp.endpoint().qkey! };
      mr.buffer.fill(0, receiveAt, receiveAt + GRH_BYTES + introductionBytes);
      ++met;
    }
  }
}

function portSpace({ settings }: Plan): 'tcp' | 'udp' {
  return settings.connection === 'ud' ? 'udp' : 'tcp';
}

function parameters({ settings, outstandingReads }: Plan) {
  const depth = settings.verb === 'read' || settings.verb === 'atomic' ? outstandingReads : 0;
  return {
    responderResources: depth,
    initiatorDepth: depth,
    retryCount: settings.retryCount,
    rnrRetryCount: RNR_FOR_EVER,
  };
}

function setOptions(id: CmId, { settings: { trafficClass, connection, qpTimeout } }: Plan): void {
  if (trafficClass !== 0) id.setOption('tos', trafficClass);
  if (connection !== 'ud') id.setOption('ackTimeout', qpTimeout);
}

function requireDevice({ device, peer }: CmExchange, { context }: Plan): void {
  if (device === context.device.name) return;
  throw new RdmaError(
    'ERR_RDMA_MISMATCH',
    `with -R the address decides on the device: ${peer} is reached by ${device}, not by ${context.device.name}. Leave -d out, or name ` +
      'an address of the other.',
    { device: context.device.name },
  );
}
