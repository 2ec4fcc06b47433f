// What ibv_create_qp_ex takes besides what ibv_create_qp does.
import type { QpType } from './constants.js';
import { XrcDomain } from './domains.js';
import { invalidArgType, outOfRange } from './errors.js';
import { SendOpBit, type SendOp } from './extended-posting.js';
import type { NativeResource } from './native.js';
import { integer, wordNumber } from './validate.js';

/** `enum ibv_qp_create_flags`. Combine with `|`. */
export const QpCreateFlags = {
  /** Its own multicast datagrams do not come back to it. */
  BLOCK_SELF_MCAST_LB: 1 << 1,
  /** The check sequence of Ethernet stays in what is received. */
  SCATTER_FCS: 1 << 8,
  /** The VLAN tag is taken off what is received. */
  CVLAN_STRIPPING: 1 << 9,
  PCI_WRITE_END_PADDING: 1 << 11,
} as const;

const SOURCE_QPN = 1 << 10;
const KNOWN_FLAGS = Object.values(QpCreateFlags).reduce((all, flag) => all | flag, 0);

/** Options by which a queue pair is created by `ibv_create_qp_ex`, or opened. */
export interface QueuePairExtensionOptions {
  /** What it is to send by {@link QueuePair.postSendEx} (`ibv_wr_*`); {@link QueuePair.postSend} works as well. */
  sendOps?: readonly SendOp[];
  /** Flags of {@link QpCreateFlags}, or-ed. */
  createFlags?: number;
  /** Datagrams carry this number as their source, 24 bits. */
  sourceQpn?: number;
  /** Bytes of the longest header for {@link QueuePair.sendTso}. */
  maxTsoHeader?: number;
  /** Of a queue pair of the type `xrcRecv`: the domain whose shared receive queues its messages go to. */
  xrcd?: XrcDomain;
  /**
   * With `xrcd`: not a new queue pair, but that of another process with this number. `ibv_open_qp`. Arguments checked, not run
   * on a NIC: rxe has no XRC.
   */
  openQpNum?: number;
}

/** @internal The words that the addon takes, or nothing for a plain queue pair. */
export function extensionOf(
  options: QueuePairExtensionOptions,
  type: QpType,
): [words: Uint32Array | undefined, xrcd: NativeResource | undefined] {
  const { createFlags = 0, sourceQpn, maxTsoHeader = 0, xrcd, openQpNum } = options;
  if (xrcd !== undefined && !(xrcd instanceof XrcDomain)) throw invalidArgType('xrcd', 'an XrcDomain', xrcd);
  if ((type === 'xrcRecv') !== (xrcd !== undefined)) {
    throw outOfRange('xrcd', 'given for the type xrcRecv, and only for that', xrcd?.label);
  }
  if (openQpNum !== undefined && xrcd === undefined)
    throw outOfRange('openQpNum', 'given with an xrcd', openQpNum);
  const sendOps: readonly SendOp[] = options.sendOps ?? [];
  if (!Array.isArray(sendOps)) throw invalidArgType('sendOps', 'an array', sendOps);
  integer('createFlags', createFlags, 0, 2 ** 32 - 1);
  if ((createFlags & ~KNOWN_FLAGS) !== 0)
    throw outOfRange('createFlags', 'flags of QpCreateFlags, or-ed', createFlags);
  const operations = (sendOps as readonly SendOp[]).reduce(
    (all, op) => all | (1n << BigInt(wordNumber('sendOps', SendOpBit, op))),
    0n,
  );
  const plain =
    operations === 0n &&
    createFlags === 0 &&
    sourceQpn === undefined &&
    maxTsoHeader === 0 &&
    !type.startsWith('xrc');
  if (plain) return [undefined, undefined];
  const words = Uint32Array.of(
    createFlags | (sourceQpn === undefined ? 0 : SOURCE_QPN),
    integer('sourceQpn', sourceQpn ?? 0, 0, 2 ** 24 - 1),
    integer('maxTsoHeader', maxTsoHeader, 0, 2 ** 16 - 1),
    Number(operations & 0xffffffffn),
    Number(operations >> 32n),
    openQpNum === undefined ? 0 : 1,
    integer('openQpNum', openQpNum ?? 0, 0, 2 ** 24 - 1),
  );
  return [words, xrcd?.native];
}
