import type { Context } from '../verbs/context.js';
import { invalidArgType, RdmaError } from '../verbs/errors.js';
import { QueuePair } from '../verbs/queue-pair.js';
import { integer } from '../verbs/validate.js';
import type { CmWaitOptions } from './attempt.js';
import type { PrivateDataOptions } from './private-data.js';

/** How a connection is made (`struct rdma_conn_param`). */
export interface CmConnectOptions extends CmWaitOptions, PrivateDataOptions {
  /** READs and atomics of the peer served at a time; by default what the device allows, 16 at the most. */
  responderResources?: number;
  /** READs and atomics outstanding at the peer; by default what the device allows, 16 at the most. */
  initiatorDepth?: number;
  /** true by default; no meaning on RoCE. */
  flowControl?: boolean;
  /**
   * 6 by default: the peer's silence becomes an error after 7 timeouts. 7 would be for ever on rxe. The accepting end takes the
   * connecting end's.
   */
  retryCount?: number;
  /** 6 by default; 7 is for ever. */
  rnrRetryCount?: number;
  /** Code of the time that a peer waits when no receive was posted; 12 (640 µs) by default. librdmacm leaves it at 655 ms. */
  minRnrTimer?: number;
  /**
   * A queue pair of one's own, made by {@link ProtectionDomain.createQp} on any context of the same device, in place of one made by
   * {@link CmId.createQp}: it is brought to INIT (unless it is there), RTR and RTS with what was agreed.
   */
  qp?: QueuePair;
}

const USUAL_RD_ATOMIC = 16;

/** @internal The words that the addon takes. */
export function packConnectionParameters(
  options: CmConnectOptions,
  context: Context,
  asked?: { responderResources: number; initiatorDepth: number },
): Uint32Array {
  const { maxQpRdAtom, maxQpInitRdAtom } = context.queryDevice();
  const { qp } = options;
  if (qp !== undefined && !(qp instanceof QueuePair)) throw invalidArgType('qp', 'a QueuePair', qp);
  const usual = (most: number, wanted = USUAL_RD_ATOMIC) => Math.min(most, USUAL_RD_ATOMIC, wanted);
  return Uint32Array.of(
    depth(
      'responderResources',
      options.responderResources ?? usual(maxQpRdAtom, asked?.responderResources),
      maxQpRdAtom,
      context,
    ),
    depth(
      'initiatorDepth',
      options.initiatorDepth ?? usual(maxQpInitRdAtom, asked?.initiatorDepth),
      maxQpInitRdAtom,
      context,
    ),
    options.flowControl === false ? 0 : 1,
    integer('retryCount', options.retryCount ?? 6, 0, 7),
    integer('rnrRetryCount', options.rnrRetryCount ?? 6, 0, 7),
    qp?.srq === undefined ? 0 : 1,
    qp?.qpNum ?? 0,
    integer('minRnrTimer', options.minRnrTimer ?? 12, 0, 31),
  );
}

function depth(name: string, value: unknown, most: number, context: Context): number {
  // 255 would be the library's word for the device's maximum.
  const number = integer(name, value, 0, 254);
  if (number <= most) return number;
  throw new RdmaError(
    'ERR_RDMA_LIMIT',
    `${name} ${number} is ${number - most} above the ${most} that ${context.device.name} offers`,
    { device: context.device.name },
  );
}
