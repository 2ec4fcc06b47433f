// Where the fields of the shared records lie, in bytes; native/descriptors.h is the other side of it, and
// test/unit/layout.test.ts holds the two against each other. All fields are in host order.

export const SendDescriptor = {
  size: 64,
  opcode: 0,
  flags: 1,
  sgeCount: 2,
  id: 4,
  sge: 8,
  immData: 24,
  rkey: 28,
  remoteAddress: 32,
  /** In a datagram, in the places of the rkey and of the remote address. */
  addressHandle: 28,
  remoteQpn: 32,
  remoteQkey: 36,
  compareAdd: 40,
  swap: 48,
  idHigh: 56,
  /** On an XRC queue pair. */
  remoteSrqn: 60,
} as const;

export const ReceiveDescriptor = { size: 32, sgeCount: 2, id: 4, sge: 8, idHigh: 24 } as const;

export const ScatterGatherElement = { size: 16, mr: 0, length: 4, offset: 8 } as const;

export const CompletionRecord = {
  size: 32,
  /** 64 bits. */
  id: 0,
  status: 8,
  opcode: 9,
  flags: 10,
  dlidPathBits: 11,
  /** The vendor's error in a failed completion. */
  byteLength: 12,
  immData: 16,
  qpNum: 20,
  /** 24 bits; the service level is above them. */
  sourceQp: 24,
  pkeyIndex: 28,
  sourceLid: 30,
} as const;

export const QueueCounters = { size: 64, posted: 0, ended: 4, capacity: 8, wanted: 12 } as const;

export const CompletionCounters = { size: 64, outstanding: 0, entries: 4, limit: 8, filled: 12 } as const;

/** In place of a memory region: the bytes are in the queue's inline area. */
export const INLINE_AREA = 0xffffffff;

/** The scalar words of `struct ibv_qp_attr`, in their order; two address vectors follow. */
export const qpAttributeWords = [
  'qpState',
  'curQpState',
  'pathMtu',
  'pathMigState',
  'qkey',
  'rqPsn',
  'sqPsn',
  'destQpNum',
  'qpAccessFlags',
  'maxSendWr',
  'maxRecvWr',
  'maxSendSge',
  'maxRecvSge',
  'maxInlineData',
  'pkeyIndex',
  'altPkeyIndex',
  'enSqdAsyncNotify',
  'sqDraining',
  'maxRdAtomic',
  'maxDestRdAtomic',
  'minRnrTimer',
  'portNum',
  'timeout',
  'retryCnt',
  'rnrRetry',
  'altPortNum',
  'altTimeout',
  'rateLimit',
] as const;
export type QpAttributeWord = (typeof qpAttributeWords)[number];

/** The words of an address vector, in their order; the four words of the destination GID follow. */
export const addressWords = [
  'isGlobal',
  'dlid',
  'sl',
  'srcPathBits',
  'staticRate',
  'portNum',
  'flowLabel',
  'sgidIndex',
  'hopLimit',
  'trafficClass',
] as const;

export const ADDRESS_VECTOR_WORDS = addressWords.length + 4;
export const QP_ATTRIBUTE_WORDS = qpAttributeWords.length + 2 * ADDRESS_VECTOR_WORDS;
