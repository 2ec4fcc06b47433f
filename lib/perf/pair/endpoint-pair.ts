import type { CompletionQueue } from '../../verbs/completion-queue.js';
import type { Mtu } from '../../verbs/constants.js';
import type { Context } from '../../verbs/context.js';
import type { GidChoice, GidSelection } from '../../verbs/gid.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePair, QueuePairEndpoint } from '../../verbs/queue-pair.js';

/** Where an end of a pair is to be. */
export interface EndpointOptions {
  context: Context;
  port: number;
  /** By default the best of the port. */
  gid?: GidSelection;
}

/** One end of a connection, with what it needs: nothing of it is shared with the other end. */
export interface Endpoint {
  readonly context: Context;
  readonly port: number;
  readonly pd: ProtectionDomain;
  /** For sends and receives. */
  readonly cq: CompletionQueue;
  readonly qp: QueuePair;
  /** What it has told the other end. */
  readonly told: QueuePairEndpoint;
  readonly gid: GidChoice;
}

/** Send requests that an end may have outstanding, and so the widest window. */
export const pairDepth = 128;
/** Receives that an end may have posted. */
const receiveDepth = 16;

/** Two ends in this process, connected over RC. */
export class EndpointPair {
  private constructor(
    readonly a: Endpoint,
    readonly b: Endpoint,
    /** In bytes: the smaller of both ends' active MTUs. */
    readonly pathMtu: Mtu,
  ) {}

  /** @throws RdmaError as `allocPd`, `createCq`, `createQp` and `connect` do */
  static async connect(optionsA: EndpointOptions, optionsB: EndpointOptions): Promise<EndpointPair> {
    const opened: Parts[] = [];
    try {
      for (const options of [optionsA, optionsB]) opened.push(open(options));
      const [a, b] = opened as [Parts, Parts];
      // The receiver must be ready before the other end can send.
      const connectedB = await b.qp.connect(a.told, { port: optionsB.port });
      const connectedA = await a.qp.connect(b.told, { port: optionsA.port });
      return new EndpointPair(
        { ...a, gid: connectedA.gid },
        { ...b, gid: connectedB.gid },
        connectedA.pathMtu,
      );
    } catch (error) {
      opened.forEach(close);
      throw error;
    }
  }

  /** Closes both ends, with memory that is registered in their protection domains; the contexts are their owner's. */
  close(): void {
    close(this.a);
    close(this.b);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

type Parts = Omit<Endpoint, 'gid'>;

function open({ context, port, gid }: EndpointOptions): Parts {
  const pd = context.allocPd();
  try {
    const cq = context.createCq({ cqe: pairDepth + receiveDepth });
    try {
      const qp = pd.createQp({ type: 'rc', cq, maxSendWr: pairDepth, maxRecvWr: receiveDepth });
      return { context, port, pd, cq, qp, told: qp.endpoint({ port, ...(gid && { gid }) }) };
    } catch (error) {
      cq.close({ cascade: true });
      throw error;
    }
  } catch (error) {
    pd.close();
    throw error;
  }
}

/** The queue pair first: its outstanding requests hold memory. */
function close({ qp, cq, pd }: Parts): void {
  qp.close();
  cq.close();
  pd.close({ cascade: true });
}
