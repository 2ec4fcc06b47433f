import {
  migrationStates,
  mtuBytes,
  QpAttributeMask,
  qpStates,
  type MigrationState,
  type Mtu,
  type QpState,
} from './constants.js';
import { outOfRange } from './errors.js';
import { formatGid, parseGid } from './gid.js';
import {
  ADDRESS_VECTOR_WORDS,
  addressWords,
  QP_ATTRIBUTE_WORDS,
  qpAttributeWords,
  type QpAttributeWord,
} from './layout.js';
import { integer, options as checkOptions, wordIndex } from './validate.js';

/** An address vector (`struct ibv_ah_attr`). On RoCE always global: by GID. */
export interface AddressVector {
  /** Destination GID in IPv6 notation, or an IPv4 address. Absent: not global, by LID alone (InfiniBand). */
  dgid?: string;
  /** Index of the source GID in the port's table; look it up when it is used, it changes. */
  sgidIndex?: number;
  /**
   * 20 bits; on RoCE the UDP source port, and so the path through the fabric, follows from it (see `udpSourcePort`). rxe
   * leaves the label of the IPv6 header itself at 0.
   */
  flowLabel?: number;
  /** 0 to 255; 64 by default. On RoCE the kernel replaces it by the hop limit of the route to the peer. */
  hopLimit?: number;
  /** 0 to 255: DSCP in the upper six bits, ECN in the lower two. */
  trafficClass?: number;
  dlid?: number;
  /** Service level, 0 to 15. */
  sl?: number;
  srcPathBits?: number;
  staticRate?: number;
  portNum?: number;
}

/** What `ibv_modify_qp` sets (`struct ibv_qp_attr`); what is given is set. Names are those of C in camel case. */
export interface QueuePairAttributes {
  qpState?: QpState;
  curQpState?: QpState;
  pathMtu?: Mtu;
  pathMigState?: MigrationState;
  qkey?: number;
  /** 24 bits. */
  rqPsn?: number;
  /** 24 bits. */
  sqPsn?: number;
  /** 24 bits. */
  destQpNum?: number;
  /** Flags of {@link Access}: what peers may do through this queue pair. */
  qpAccessFlags?: number;
  pkeyIndex?: number;
  enSqdAsyncNotify?: boolean;
  /** READs and atomics of ours outstanding at the peer, 0 to 128. */
  maxRdAtomic?: number;
  /** READs and atomics of the peer outstanding here, 0 to 128. */
  maxDestRdAtomic?: number;
  /** Code of the time after which a peer may try again when no receive was posted: 1 is 10 µs, 12 is 640 µs, 0 is 655 ms. */
  minRnrTimer?: number;
  portNum?: number;
  /** Code of the acknowledge timeout: 4.096 µs × 2^timeout; 14 is 67 ms. 0 waits for ever. */
  timeout?: number;
  /** 0 to 7; 7 is for ever on rxe. */
  retryCnt?: number;
  /** 0 to 7; 7 is for ever. */
  rnrRetry?: number;
  /** Kilobits per second; 0 is no limit. */
  rateLimit?: number;
  ahAttr?: AddressVector;
  altAhAttr?: AddressVector;
  altPkeyIndex?: number;
  altPortNum?: number;
  altTimeout?: number;
}

/** What `ibv_query_qp` tells. */
export type QueuePairState = Required<Omit<QueuePairAttributes, 'ahAttr' | 'altAhAttr' | 'curQpState'>> & {
  curQpState: QpState;
  sqDraining: boolean;
  cap: {
    maxSendWr: number;
    maxRecvWr: number;
    maxSendSge: number;
    maxRecvSge: number;
    maxInlineData: number;
  };
  ahAttr: Required<Omit<AddressVector, 'dgid'>> & { dgid?: string };
  altAhAttr: Required<Omit<AddressVector, 'dgid'>> & { dgid?: string };
};

interface Field {
  word: QpAttributeWord;
  mask: number;
  /** Highest number that fits. */
  max: number;
  /** Of flags: those that there are. */
  flags?: number;
}

const M = QpAttributeMask;

/**
 * LOCAL_WRITE to REMOTE_ATOMIC; and `IBV_ACCESS_FLUSH_GLOBAL`, `IBV_ACCESS_FLUSH_PERSISTENT`, which the connection manager of Linux 6.2
 * and newer gives to what it connects.
 */
const qpAccess = 0xf | (1 << 8) | (1 << 9);

/** The attributes that are plain numbers. The kernel checks few of these ranges: retry counts above 7 would mean for ever. */
const numbers: Partial<Record<keyof QueuePairAttributes, Field>> = {
  qkey: { word: 'qkey', mask: M.QKEY, max: 2 ** 32 - 1 },
  rqPsn: { word: 'rqPsn', mask: M.RQ_PSN, max: 2 ** 24 - 1 },
  sqPsn: { word: 'sqPsn', mask: M.SQ_PSN, max: 2 ** 24 - 1 },
  destQpNum: { word: 'destQpNum', mask: M.DEST_QPN, max: 2 ** 24 - 1 },
  qpAccessFlags: { word: 'qpAccessFlags', mask: M.ACCESS_FLAGS, max: 2 ** 32 - 1, flags: qpAccess },
  pkeyIndex: { word: 'pkeyIndex', mask: M.PKEY_INDEX, max: 2 ** 16 - 1 },
  maxRdAtomic: { word: 'maxRdAtomic', mask: M.MAX_QP_RD_ATOMIC, max: 128 },
  maxDestRdAtomic: { word: 'maxDestRdAtomic', mask: M.MAX_DEST_RD_ATOMIC, max: 128 },
  minRnrTimer: { word: 'minRnrTimer', mask: M.MIN_RNR_TIMER, max: 31 },
  portNum: { word: 'portNum', mask: M.PORT, max: 255 },
  timeout: { word: 'timeout', mask: M.TIMEOUT, max: 31 },
  retryCnt: { word: 'retryCnt', mask: M.RETRY_CNT, max: 7 },
  rnrRetry: { word: 'rnrRetry', mask: M.RNR_RETRY, max: 7 },
  rateLimit: { word: 'rateLimit', mask: M.RATE_LIMIT, max: 2 ** 32 - 1 },
  altPkeyIndex: { word: 'altPkeyIndex', mask: M.ALT_PATH, max: 2 ** 16 - 1 },
  altPortNum: { word: 'altPortNum', mask: M.ALT_PATH, max: 255 },
  altTimeout: { word: 'altTimeout', mask: M.ALT_PATH, max: 31 },
};

const addressMax: Record<Exclude<(typeof addressWords)[number], 'isGlobal'>, number> = {
  dlid: 2 ** 16 - 1,
  sl: 15,
  srcPathBits: 127,
  staticRate: 255,
  portNum: 255,
  flowLabel: 2 ** 20 - 1,
  sgidIndex: 255,
  hopLimit: 255,
  trafficClass: 255,
};

const place = (word: QpAttributeWord) => qpAttributeWords.indexOf(word);
const mtuCode = (bytes: unknown) => {
  const code = Object.entries(mtuBytes).find(([, value]) => value === bytes)?.[0];
  if (code === undefined)
    throw outOfRange('pathMtu', `one of ${Object.values(mtuBytes).join(', ')} bytes`, bytes);
  return Number(code);
};

/** The attributes as words and mask for the addon. @throws TypeError, RangeError */
export function packAttributes(attributes: QueuePairAttributes): { words: Uint32Array; mask: number } {
  checkOptions('attributes', attributes);
  const words = new Uint32Array(QP_ATTRIBUTE_WORDS);
  let mask = 0;
  for (const [name, value] of Object.entries(attributes) as [keyof QueuePairAttributes, unknown][]) {
    if (value === undefined) continue;
    const field = numbers[name];
    if (field !== undefined) {
      const number = integer(name, value, 0, field.max);
      if (field.flags !== undefined && (number & ~field.flags) !== 0)
        throw outOfRange(name, `flags of 0x${field.flags.toString(16)}, or-ed`, value);
      words[place(field.word)] = number;
      mask |= field.mask;
      continue;
    }
    switch (name) {
      case 'qpState':
        words[place('qpState')] = wordIndex(name, qpStates, value);
        mask |= M.STATE;
        break;
      case 'curQpState':
        words[place('curQpState')] = wordIndex(name, qpStates, value);
        mask |= M.CUR_STATE;
        break;
      case 'pathMtu':
        words[place('pathMtu')] = mtuCode(value);
        mask |= M.PATH_MTU;
        break;
      case 'pathMigState':
        words[place('pathMigState')] = wordIndex(name, migrationStates, value);
        mask |= M.PATH_MIG_STATE;
        break;
      case 'enSqdAsyncNotify':
        words[place('enSqdAsyncNotify')] = value === true ? 1 : 0;
        mask |= M.EN_SQD_ASYNC_NOTIFY;
        break;
      case 'ahAttr':
        packAddress(words, qpAttributeWords.length, 'ahAttr', value as AddressVector);
        mask |= M.AV;
        break;
      case 'altAhAttr':
        packAddress(
          words,
          qpAttributeWords.length + ADDRESS_VECTOR_WORDS,
          'altAhAttr',
          value as AddressVector,
        );
        mask |= M.ALT_PATH;
        break;
      default:
        throw outOfRange('attributes', `of ${Object.keys(numbers).join(', ')}, qpState, …`, name);
    }
  }
  return { words, mask };
}

/** @internal Writes an address vector at a place among the words. @throws TypeError, RangeError */
export function packAddress(words: Uint32Array, at: number, name: string, vector: AddressVector): void {
  checkOptions(name, vector);
  const { dgid, ...rest } = { hopLimit: 64, ...vector };
  words[at + addressWords.indexOf('isGlobal')] = dgid === undefined ? 0 : 1;
  for (const [key, value] of Object.entries(rest)) {
    const max = addressMax[key as keyof typeof addressMax] as number | undefined;
    if (max === undefined) throw outOfRange(name, `of dgid, ${Object.keys(addressMax).join(', ')}`, key);
    if (value !== undefined)
      words[at + addressWords.indexOf(key as keyof typeof addressMax)] = integer(
        `${name}.${key}`,
        value,
        0,
        max,
      );
  }
  if (dgid !== undefined) {
    new Uint8Array(words.buffer, words.byteOffset + 4 * (at + addressWords.length), 16).set(parseGid(dgid));
  }
}

/** Those of the attributes that a mask names, as {@link packAttributes} takes them; words of {@link unpackAttributes}. */
export function maskedAttributes(words: Uint32Array, mask: number): QueuePairAttributes {
  const all = unpackAttributes(words);
  const masked: Record<string, unknown> = {};
  const named: [keyof QueuePairAttributes, number][] = [
    ...Object.entries(numbers).map(
      ([name, field]) => [name, field.mask] as [keyof QueuePairAttributes, number],
    ),
    ['qpState', M.STATE],
    ['curQpState', M.CUR_STATE],
    ['pathMtu', M.PATH_MTU],
    ['pathMigState', M.PATH_MIG_STATE],
    ['enSqdAsyncNotify', M.EN_SQD_ASYNC_NOTIFY],
    ['ahAttr', M.AV],
    ['altAhAttr', M.ALT_PATH],
  ];
  for (const [name, bit] of named) if ((mask & bit) !== 0) masked[name] = all[name];
  return masked;
}

/** What the addon's words say. */
export function unpackAttributes(words: Uint32Array): QueuePairState {
  const get = (word: QpAttributeWord) => words[place(word)]!;
  return {
    qpState: qpStates[get('qpState')] ?? 'err',
    curQpState: qpStates[get('curQpState')] ?? 'err',
    pathMtu: mtuBytes[get('pathMtu') as keyof typeof mtuBytes] ?? 256,
    pathMigState: migrationStates[get('pathMigState')] ?? 'migrated',
    qkey: get('qkey'),
    rqPsn: get('rqPsn'),
    sqPsn: get('sqPsn'),
    destQpNum: get('destQpNum'),
    qpAccessFlags: get('qpAccessFlags'),
    pkeyIndex: get('pkeyIndex'),
    altPkeyIndex: get('altPkeyIndex'),
    enSqdAsyncNotify: get('enSqdAsyncNotify') !== 0,
    sqDraining: get('sqDraining') !== 0,
    maxRdAtomic: get('maxRdAtomic'),
    maxDestRdAtomic: get('maxDestRdAtomic'),
    minRnrTimer: get('minRnrTimer'),
    portNum: get('portNum'),
    timeout: get('timeout'),
    retryCnt: get('retryCnt'),
    rnrRetry: get('rnrRetry'),
    altPortNum: get('altPortNum'),
    altTimeout: get('altTimeout'),
    rateLimit: get('rateLimit'),
    cap: {
      maxSendWr: get('maxSendWr'),
      maxRecvWr: get('maxRecvWr'),
      maxSendSge: get('maxSendSge'),
      maxRecvSge: get('maxRecvSge'),
      maxInlineData: get('maxInlineData'),
    },
    ahAttr: unpackAddress(words, qpAttributeWords.length),
    altAhAttr: unpackAddress(words, qpAttributeWords.length + ADDRESS_VECTOR_WORDS),
  };
}

/** @internal The address vector at a place among the words. */
export function unpackAddress(words: Uint32Array, at: number): QueuePairState['ahAttr'] {
  const get = (word: (typeof addressWords)[number]) => words[at + addressWords.indexOf(word)]!;
  const raw = new Uint8Array(words.buffer, words.byteOffset + 4 * (at + addressWords.length), 16);
  return {
    ...(get('isGlobal') === 0 ? {} : { dgid: formatGid(raw) }),
    dlid: get('dlid'),
    sl: get('sl'),
    srcPathBits: get('srcPathBits'),
    staticRate: get('staticRate'),
    portNum: get('portNum'),
    flowLabel: get('flowLabel'),
    sgidIndex: get('sgidIndex'),
    hopLimit: get('hopLimit'),
    trafficClass: get('trafficClass'),
  };
}
