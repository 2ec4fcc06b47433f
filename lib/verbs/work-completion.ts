import {
  CompletionFlags,
  CompletionOpcodeNumber,
  completionStatuses,
  type CompletionOpcode,
  type CompletionStatus,
} from './constants.js';
import { WorkCompletionError } from './errors.js';
import { CompletionCounters, CompletionRecord } from './layout.js';

/**
 * The end of a work request (`struct ibv_wc`). Of one that failed only `wrId`, `status`, `qpNum` and `error` are
 * valid, and the others are absent.
 */
export interface WorkCompletion {
  wrId: bigint;
  status: CompletionStatus;
  qpNum: number;
  opcode?: CompletionOpcode;
  /** Bytes received or read. Undefined in verbs for SEND and WRITE. */
  byteLen?: number;
  /** Immediate data in host order, where the message carried it. */
  immData?: number;
  /** The rkey that the message invalidated, where it did. */
  invalidatedRkey?: number;
  /** Flags of {@link CompletionFlags}. */
  wcFlags?: number;
  /** Queue pair that sent a datagram. */
  srcQp?: number;
  /** Of a datagram that was received, on InfiniBand: the LID that it came from. */
  slid?: number;
  /** Of a datagram that was received: its service level. */
  sl?: number;
  /** Of a datagram that was received: the path bits of the LID that it was sent to. */
  dlidPathBits?: number;
  /** Of a message that was received by QP 1: the index of its P_Key. */
  pkeyIndex?: number;
  /** Set where the request failed: what it means and what to look at. */
  error?: WorkCompletionError;
}

// Offsets, in bytes and then in words. Copies, since the compiler looks up what is imported again at each use.
const SIZE = CompletionRecord.size;
const STATUS = CompletionRecord.status;
const OPCODE = CompletionRecord.opcode;
const FLAGS = CompletionRecord.flags;
const DLID_PATH_BITS = CompletionRecord.dlidPathBits;
const BYTE_LENGTH = CompletionRecord.byteLength / 4;
const IMM_DATA = CompletionRecord.immData / 4;
const QP_NUM = CompletionRecord.qpNum / 4;
const SOURCE_QP = CompletionRecord.sourceQp / 4;
const PKEY_INDEX = CompletionRecord.pkeyIndex / 4;
const { WITH_IMM, WITH_INV } = CompletionFlags;

/** By their numbers. */
const opcodes: CompletionOpcode[] = [];
for (const [name, number] of Object.entries(CompletionOpcodeNumber))
  opcodes[number] = name as CompletionOpcode;

/** What a queue pair adds to retryExcErr that has failed with its very first request. */
const NEVER_REACHED =
  '. Nothing was ever acknowledged on this queue pair: look at the GIDs of both ends, the firewall and the MTU of the path first';

/** Set in the opcodes of receives. */
const RECEIVE = 0x80;

/** What each failure means, and where to look first. Vendor-independent; sections as in the InfiniBand specification 1.7, 10.8. */
const meanings: Record<Exclude<CompletionStatus, 'success'>, string> = {
  locLenErr:
    'a message was longer than the receive posted for it, or than the port takes (maxMsgSz); or the ends use different path MTUs',
  locQpOpErr:
    'the device could not carry the request out: an opcode, element list or key that does not fit the queue pair; on rxe also ' +
    'a packet that could not be sent (no route, link down, GID gone), or a receive that is too small',
  locEecOpErr: 'an error of an end-to-end context (RD transport)',
  locProtErr:
    'a local range lies outside its memory region, or the region does not allow the access (LOCAL_WRITE)',
  wrFlushErr: 'a consequence, not a cause: the queue pair was in the error state already',
  mwBindErr: 'a memory window could not be bound: access rights, or the region lacks MW_BIND',
  badRespErr: 'the peer answered with a packet that does not fit the request',
  locAccessErr: 'a local protection error while a remote write with immediate data was received',
  remInvReqErr:
    'the peer refused the request as invalid: its receive is too small, READ or atomic depth was exceeded, the operation is not ' +
    'enabled on its queue pair (qpAccessFlags), or the path MTUs differ',
  remAccessErr:
    'the peer refused the access: is the region still registered there, does the rkey belong to it, does the range lie within, ' +
    'does it allow this operation, and is it of the same protection domain as the queue pair?',
  remOpErr:
    'the peer could not carry the operation out: on rxe a receive that is smaller than the message, or a bad key in it',
  retryExcErr:
    'no acknowledgement after (retryCnt + 1) timeouts: the peer is gone or not connected, the GID or MTU is wrong, or UDP port 4791 ' +
    'is blocked on the way; or it had no receive posted for so long. The peer may or may not have executed the message',
  rnrRetryExcErr:
    'the peer had no receive posted for as long as rnrRetry allows: post receives ahead, or use credits',
  locRddViolErr: 'a domain violation (RD transport)',
  remInvRdReqErr: 'an invalid request of the RD transport',
  remAbortErr: 'the peer aborted the operation',
  invEecnErr: 'an invalid end-to-end context number (RD transport)',
  invEecStateErr: 'an end-to-end context in the wrong state (RD transport)',
  fatalErr: 'the device has failed',
  respTimeoutErr: 'the peer did not answer in time',
  generalErr: 'an error that the device does not tell more of',
  tmErr: 'tag matching failed',
  tmRndvIncomplete: 'a rendezvous of tag matching did not complete',
};

function failureOf(number: number): Exclude<CompletionStatus, 'success'> {
  const status = completionStatuses[number];
  return status === undefined || status === 'success' ? 'generalErr' : status;
}

/** Reads completion records, and remembers each queue pair's first failure, which is the cause of what is flushed after it. */
export class CompletionReader {
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  readonly #longs: BigUint64Array;
  readonly #failures = new Map<number, WorkCompletionError>();

  constructor(records: ArrayBuffer) {
    this.#bytes = new Uint8Array(records, CompletionCounters.size);
    this.#words = new Uint32Array(records, CompletionCounters.size);
    this.#longs = new BigUint64Array(records, CompletionCounters.size);
  }

  read(index: number): WorkCompletion {
    const at = index * SIZE;
    const word = at >> 2;
    const bytes = this.#bytes;
    const words = this.#words;
    const wrId = this.#longs[at >> 3]!;
    const qpNum = words[word + QP_NUM]!;
    const byteLen = words[word + BYTE_LENGTH]!;
    if (bytes[at + STATUS] !== 0) {
      const status = failureOf(bytes[at + STATUS]!);
      const error = this.#failure(status, wrId, byteLen, qpNum, bytes[at + FLAGS] === 1);
      return { wrId, status, qpNum, error };
    }
    const opcode = bytes[at + OPCODE]!;
    const wcFlags = bytes[at + FLAGS]!;
    const source = words[word + SOURCE_QP]!;
    const completion: WorkCompletion = {
      wrId,
      status: 'success',
      qpNum,
      opcode: opcodes[opcode]!,
      byteLen,
      wcFlags,
      srcQp: source & 0xffffff,
    };
    // What a sender's own completion has in this place is nothing that arrived (rxe sets the flag there too).
    if ((opcode & RECEIVE) === 0) return completion;
    const lids = words[word + PKEY_INDEX]!;
    completion.slid = lids >>> 16;
    completion.sl = source >>> 24;
    completion.dlidPathBits = bytes[at + DLID_PATH_BITS]!;
    completion.pkeyIndex = lids & 0xffff;
    const imm = words[word + IMM_DATA]!;
    if ((wcFlags & WITH_IMM) !== 0) completion.immData = imm;
    if ((wcFlags & WITH_INV) !== 0) completion.invalidatedRkey = imm;
    return completion;
  }

  /** A queue pair of that number starts anew. */
  forget(qpNum: number): void {
    this.#failures.delete(qpNum);
  }

  #failure(
    status: Exclude<CompletionStatus, 'success'>,
    wrId: bigint,
    vendorError: number,
    qpNum: number,
    isFirst: boolean,
  ): WorkCompletionError {
    const first = this.#failures.get(qpNum);
    const cause = status === 'wrFlushErr' ? first : undefined;
    const since =
      cause === undefined ? '' : `. First failed: work request ${cause.wrId} with ${cause.status}`;
    const reach = status === 'retryExcErr' && isFirst ? NEVER_REACHED : '';
    const vendor = vendorError === 0 ? '' : `, vendor error 0x${vendorError.toString(16)}`;
    const error = new WorkCompletionError({
      status,
      wrId,
      vendorError,
      qpNum,
      cause,
      message: `work request ${wrId} on QP ${qpNum} failed with ${status}${vendor}: ${meanings[status]}${reach}${since}`,
    });
    if (first === undefined && status !== 'wrFlushErr') this.#failures.set(qpNum, error);
    return error;
  }
}
