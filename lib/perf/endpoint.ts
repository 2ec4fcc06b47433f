import { randomFillSync } from 'node:crypto';
import { ReceiveRing } from '../ring/receive-ring.js';
import { SendRing } from '../ring/send-ring.js';
import type { AddressHandle } from '../verbs/address-handle.js';
import type { CompletionQueue } from '../verbs/completion-queue.js';
import { Access, type Mtu } from '../verbs/constants.js';
import { RemoteRegion, type MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair, QueuePairEndpoint } from '../verbs/queue-pair.js';
import { GRH_BYTES, type Plan } from './plan.js';
import type { Verb } from './kinds.js';
import type { Key } from './wire/messages.js';
import type { Agreement } from './wire/opening.js';

/** One queue pair with its memory: what it sends from, and what it receives into or the peer reaches. */
export interface Flow {
  qp: QueuePair;
  sends: SendRing;
  receives: ReceiveRing;
  mr: MemoryRegion;
  /** Bytes from the start of the region. */
  sendAt: number;
  receiveAt: number;
  /** What it told the peer. */
  told: QueuePairEndpoint;
  /** The peer's memory, once connected. */
  remote: RemoteRegion | undefined;
  /** Where datagrams go, once connected. */
  target: { ah: AddressHandle; qpNum: number; qkey: number } | undefined;
}

/** What perftest uses for datagrams. */
const QKEY = 0x11111111;
/** For a receiver that falls behind to slow its sender down, however long: a watchdog ends it if need be. */
const RNR_FOR_EVER = 7;

const remoteAccess: Record<Verb, number> = {
  send: 0,
  write: Access.REMOTE_WRITE,
  read: Access.REMOTE_READ,
  atomic: Access.REMOTE_ATOMIC,
};
const qpAccess: Record<Verb, number> = { ...remoteAccess, send: Access.REMOTE_WRITE };

/** One end of a measurement: a completion queue, one region and the queue pairs. */
export class Endpoint {
  readonly plan: Plan;
  readonly cq: CompletionQueue;
  readonly mr: MemoryRegion;
  readonly flows: readonly Flow[];
  /** Bytes of each queue pair's memory in each direction. */
  readonly room: number;
  readonly pd: ProtectionDomain;

  private constructor(
    plan: Plan,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    mr: MemoryRegion,
    flows: Flow[],
    room: number,
  ) {
    this.plan = plan;
    this.pd = pd;
    this.cq = cq;
    this.mr = mr;
    this.flows = flows;
    this.room = room;
  }

  /** Its objects go with the context. @throws RdmaError as `allocPd`, `createCq`, `regMr` and `createQp` do */
  static async open(plan: Plan, { pageSize, cacheLine }: Agreement): Promise<Endpoint> {
    const { context, settings, completionEntries, sizes } = plan;
    const { verb, connection, queuePairs } = settings;
    const pd = context.allocPd();
    const cq = context.createCq({ cqe: completionEntries });
    const header = connection === 'ud' ? GRH_BYTES : 0;
    const room = roundUp(Math.max(Math.max(...sizes) + header, pageSize), cacheLine);
    const mr = await pd.regMr(2 * queuePairs * room, { access: Access.LOCAL_WRITE | remoteAccess[verb] });
    // What is sent, or read by the peer. Where something is to arrive there are zeros, so that it shows.
    const half = queuePairs * room;
    if (verb === 'read') fillRandomly(mr.buffer.subarray(half));
    else if (verb !== 'atomic' && settings.test !== 'write-lat') fillRandomly(mr.buffer.subarray(0, half));
    const flows = Array.from({ length: queuePairs }, (_, i) =>
      openFlow(plan, pd, cq, mr, i * room, (queuePairs + i) * room),
    );
    return new Endpoint(plan, pd, cq, mr, flows, room);
  }

  /** What the peer is told of each queue pair. */
  keys(): Key[] {
    const { plan, mr } = this;
    return this.flows.map(({ told, receiveAt }) => ({
      lid: told.lid,
      outstandingReads: plan.outstandingReads,
      qpNum: told.qpNum,
      psn: told.psn,
      rkey: plan.settings.verb === 'send' ? 0 : mr.rkey,
      address: mr.address + BigInt(receiveAt),
      gid: told.gid,
    }));
  }

  /** Connects each queue pair to its peer; those for datagrams get the way there. */
  async connect(keys: readonly Key[], mtu: Mtu): Promise<void> {
    this.reach(keys);
    for (const [i, flow] of this.flows.entries()) await this.#connectFlow(flow, keys[i]!, mtu);
  }

  /** Notes the peer's memory, as its keys tell it. */
  reach(keys: readonly Key[]): void {
    for (const [i, flow] of this.flows.entries()) {
      flow.remote = new RemoteRegion(keys[i]!.address, keys[i]!.rkey, this.room);
    }
  }

  /** In bytes, as the queue pairs have it. Those for datagrams have none: then it is `otherwise`. */
  pathMtu(otherwise: Mtu): Mtu {
    const { qp } = this.flows[0]!;
    return qp.type === 'ud' ? otherwise : qp.query().pathMtu;
  }

  async #connectFlow(flow: Flow, key: Key, mtu: Mtu): Promise<void> {
    const { settings, gid, context, outstandingReads } = this.plan;
    const { devicePort: port, serviceLevel: sl, trafficClass, pkeyIndex } = settings;
    const selection = { address: gid.gid, type: gid.type };
    if (settings.connection === 'ud') {
      await flow.qp.start({ port, qkey: QKEY, pkeyIndex });
      const vector = { dgid: key.gid, dlid: key.lid, portNum: port, sl, trafficClass };
      const ah = await this.pd.createAh({ ...vector, gid: selection });
      flow.target = { ah, qpNum: key.qpNum, qkey: QKEY };
      return;
    }
    // Reads of ours that the peer serves at a time, which C programs give as their own limit, whatever ours is.
    const maxRdAtomic = Math.min(key.outstandingReads, context.queryDevice().maxQpInitRdAtom);
    await flow.qp.connect(
      {
        type: settings.connection,
        qpNum: key.qpNum,
        psn: key.psn,
        gid: key.gid,
        lid: key.lid,
        mtu,
        maxDestRdAtomic: Math.min(key.outstandingReads, 255),
      },
      {
        port,
        gid: selection,
        pathMtu: mtu,
        qpAccessFlags: qpAccess[settings.verb],
        pkeyIndex,
        maxRdAtomic,
        maxDestRdAtomic: outstandingReads,
        timeout: settings.qpTimeout,
        retryCnt: settings.retryCount,
        rnrRetry: RNR_FOR_EVER,
        sl,
        trafficClass,
      },
    );
  }
}

function openFlow(
  plan: Plan,
  pd: ProtectionDomain,
  cq: CompletionQueue,
  mr: MemoryRegion,
  sendAt: number,
  receiveAt: number,
): Flow {
  const { settings, gid } = plan;
  const { connection: type, txDepth, rxDepth, inlineSize } = settings;
  const qp = pd.createQp({ type, cq, maxSendWr: txDepth, maxRecvWr: rxDepth, maxInlineData: inlineSize });
  const told = qp.endpoint({ port: settings.devicePort, gid: { address: gid.gid, type: gid.type } });
  return {
    qp,
    sends: new SendRing(qp),
    receives: new ReceiveRing(qp),
    mr,
    sendAt,
    receiveAt,
    told,
    remote: undefined,
    target: undefined,
  };
}

/** What one call fills at the most. */
const mostRandom = 2 ** 30;

function fillRandomly(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += mostRandom) {
    randomFillSync(bytes, at, Math.min(mostRandom, bytes.length - at));
  }
}

function roundUp(value: number, to: number): number {
  return Math.ceil(value / to) * to;
}
