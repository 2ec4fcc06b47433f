// Which attributes each transition of a queue pair needs and may have: InfiniBand specification 1.7, section 10.3 and table 96
// (Modify Queue Pair), as the kernel checks them. Names as in `enum ibv_qp_attr_mask`.
import { QpAttributeMask, type QpState, type QpType } from './constants.js';
import { RdmaError } from './errors.js';

type AttributeName = keyof typeof QpAttributeMask;
type Rule = { required: readonly AttributeName[]; optional: readonly AttributeName[] };

const nothing: Rule = { required: [], optional: [] };

const connectedInit: Rule = { required: ['PKEY_INDEX', 'PORT', 'ACCESS_FLAGS'], optional: [] };
const connectedInitAgain: Rule = { required: [], optional: ['PKEY_INDEX', 'PORT', 'ACCESS_FLAGS'] };
const connectedSqd: Rule = { required: [], optional: ['EN_SQD_ASYNC_NOTIFY'] };

const rules: Record<QpType, Partial<Record<`${QpState}>${QpState}`, Rule>>> = {
  rc: {
    'reset>init': connectedInit,
    'init>init': connectedInitAgain,
    'init>rtr': {
      required: ['AV', 'PATH_MTU', 'DEST_QPN', 'RQ_PSN', 'MAX_DEST_RD_ATOMIC', 'MIN_RNR_TIMER'],
      optional: ['ALT_PATH', 'ACCESS_FLAGS', 'PKEY_INDEX'],
    },
    'rtr>rts': {
      required: ['TIMEOUT', 'RETRY_CNT', 'RNR_RETRY', 'SQ_PSN', 'MAX_QP_RD_ATOMIC'],
      optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'MIN_RNR_TIMER', 'PATH_MIG_STATE', 'RATE_LIMIT'],
    },
    'rts>rts': {
      required: [],
      optional: ['CUR_STATE', 'ACCESS_FLAGS', 'ALT_PATH', 'PATH_MIG_STATE', 'MIN_RNR_TIMER', 'RATE_LIMIT'],
    },
    'rts>sqd': connectedSqd,
    'sqd>rts': {
      required: [],
      optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'MIN_RNR_TIMER', 'PATH_MIG_STATE'],
    },
    'sqd>sqd': {
      required: [],
      optional: [
        'PORT',
        'AV',
        'TIMEOUT',
        'RETRY_CNT',
        'RNR_RETRY',
        'MAX_QP_RD_ATOMIC',
        'MAX_DEST_RD_ATOMIC',
        'ALT_PATH',
        'ACCESS_FLAGS',
        'PKEY_INDEX',
        'MIN_RNR_TIMER',
        'PATH_MIG_STATE',
      ],
    },
  },
  uc: {
    'reset>init': connectedInit,
    'init>init': connectedInitAgain,
    'init>rtr': {
      required: ['AV', 'PATH_MTU', 'DEST_QPN', 'RQ_PSN'],
      optional: ['ALT_PATH', 'ACCESS_FLAGS', 'PKEY_INDEX'],
    },
    'rtr>rts': {
      required: ['SQ_PSN'],
      optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'PATH_MIG_STATE', 'RATE_LIMIT'],
    },
    'rts>rts': {
      required: [],
      optional: ['CUR_STATE', 'ACCESS_FLAGS', 'ALT_PATH', 'PATH_MIG_STATE', 'RATE_LIMIT'],
    },
    'rts>sqd': connectedSqd,
    'sqd>rts': { required: [], optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'PATH_MIG_STATE'] },
    'sqd>sqd': { required: [], optional: ['AV', 'ALT_PATH', 'ACCESS_FLAGS', 'PKEY_INDEX', 'PATH_MIG_STATE'] },
    'sqe>rts': { required: [], optional: ['CUR_STATE', 'ACCESS_FLAGS'] },
  },
  ud: {
    'reset>init': { required: ['PKEY_INDEX', 'PORT', 'QKEY'], optional: [] },
    'init>init': { required: [], optional: ['PKEY_INDEX', 'PORT', 'QKEY'] },
    'init>rtr': { required: [], optional: ['PKEY_INDEX', 'QKEY'] },
    'rtr>rts': { required: ['SQ_PSN'], optional: ['CUR_STATE', 'QKEY', 'RATE_LIMIT'] },
    'rts>rts': { required: [], optional: ['CUR_STATE', 'QKEY', 'RATE_LIMIT'] },
    'rts>sqd': connectedSqd,
    'sqd>rts': { required: [], optional: ['CUR_STATE', 'QKEY'] },
    'sqd>sqd': { required: [], optional: ['PKEY_INDEX', 'QKEY'] },
    'sqe>rts': { required: [], optional: ['CUR_STATE', 'QKEY'] },
  },
  rawPacket: {
    'reset>init': { required: ['PORT'], optional: [] },
    'init>init': { required: [], optional: ['PORT'] },
    'init>rtr': nothing,
    'rtr>rts': { required: [], optional: ['RATE_LIMIT'] },
    'rts>rts': { required: [], optional: ['RATE_LIMIT'] },
    'rts>sqd': connectedSqd,
    'sqd>rts': nothing,
    'sqe>rts': nothing,
  },
  xrcSend: {
    'reset>init': connectedInit,
    'init>init': connectedInitAgain,
    'init>rtr': {
      required: ['AV', 'PATH_MTU', 'DEST_QPN', 'RQ_PSN'],
      optional: ['ALT_PATH', 'ACCESS_FLAGS', 'PKEY_INDEX'],
    },
    'rtr>rts': {
      required: ['TIMEOUT', 'RETRY_CNT', 'RNR_RETRY', 'SQ_PSN', 'MAX_QP_RD_ATOMIC'],
      optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'PATH_MIG_STATE'],
    },
    'rts>rts': {
      required: [],
      optional: ['CUR_STATE', 'ACCESS_FLAGS', 'ALT_PATH', 'PATH_MIG_STATE'],
    },
    'rts>sqd': connectedSqd,
    'sqd>rts': { required: [], optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'PATH_MIG_STATE'] },
  },
  xrcRecv: {
    'reset>init': connectedInit,
    'init>init': connectedInitAgain,
    'init>rtr': {
      required: ['AV', 'PATH_MTU', 'DEST_QPN', 'RQ_PSN', 'MAX_DEST_RD_ATOMIC', 'MIN_RNR_TIMER'],
      optional: ['ALT_PATH', 'ACCESS_FLAGS', 'PKEY_INDEX'],
    },
    'rtr>rts': {
      required: ['TIMEOUT', 'SQ_PSN'],
      optional: ['CUR_STATE', 'ALT_PATH', 'ACCESS_FLAGS', 'MIN_RNR_TIMER', 'PATH_MIG_STATE'],
    },
    'rts>rts': {
      required: [],
      optional: ['CUR_STATE', 'ACCESS_FLAGS', 'ALT_PATH', 'MIN_RNR_TIMER', 'PATH_MIG_STATE'],
    },
  },
};

/** The property of {@link QueuePairAttributes} that sets each attribute. */
export const propertyOf: Record<AttributeName, string> = {
  STATE: 'qpState',
  CUR_STATE: 'curQpState',
  EN_SQD_ASYNC_NOTIFY: 'enSqdAsyncNotify',
  ACCESS_FLAGS: 'qpAccessFlags',
  PKEY_INDEX: 'pkeyIndex',
  PORT: 'portNum',
  QKEY: 'qkey',
  AV: 'ahAttr',
  PATH_MTU: 'pathMtu',
  TIMEOUT: 'timeout',
  RETRY_CNT: 'retryCnt',
  RNR_RETRY: 'rnrRetry',
  RQ_PSN: 'rqPsn',
  MAX_QP_RD_ATOMIC: 'maxRdAtomic',
  ALT_PATH: 'altAhAttr',
  MIN_RNR_TIMER: 'minRnrTimer',
  SQ_PSN: 'sqPsn',
  MAX_DEST_RD_ATOMIC: 'maxDestRdAtomic',
  PATH_MIG_STATE: 'pathMigState',
  CAP: 'cap',
  DEST_QPN: 'destQpNum',
  RATE_LIMIT: 'rateLimit',
};

function ruleFor(type: QpType, from: QpState, to: QpState): Rule | undefined {
  if (to === 'reset' || to === 'err') return nothing;
  return rules[type][`${from}>${to}`];
}

const list = (names: readonly AttributeName[]) =>
  names.map((name) => `${propertyOf[name]} (IBV_QP_${name})`).join(', ');

/**
 * Refuses a transition that verbs would refuse with a bare EINVAL, and says why.
 *
 * @throws RdmaError `ERR_RDMA_INVALID_STATE` for a step that does not exist, `ERR_RDMA_INVALID_ATTRIBUTES` for attributes
 * that lack or are too many
 */
export function checkTransition(type: QpType, from: QpState, to: QpState, mask: number, qpn: number): void {
  const step = `${from.toUpperCase()} to ${to.toUpperCase()}`;
  const rule = ruleFor(type, from, to);
  if (rule === undefined) {
    const next = (Object.keys(rules[type]) as `${QpState}>${QpState}`[])
      .filter((key) => key.startsWith(`${from}>`))
      .map((key) => key.slice(from.length + 1).toUpperCase());
    throw new RdmaError(
      'ERR_RDMA_INVALID_STATE',
      `a ${type.toUpperCase()} queue pair cannot go from ${step}. From ${from.toUpperCase()} it can go to ${[...next, 'RESET', 'ERR'].join(', ')}.`,
      { qpn },
    );
  }
  const given = (Object.keys(QpAttributeMask) as AttributeName[]).filter(
    (name) => name !== 'STATE' && (mask & QpAttributeMask[name]) !== 0,
  );
  const lacking = rule.required.filter((name) => !given.includes(name));
  const surplus = given.filter((name) => !rule.required.includes(name) && !rule.optional.includes(name));
  if (lacking.length === 0 && surplus.length === 0) return;
  const parts = [
    lacking.length > 0 && `it lacks ${list(lacking)}`,
    surplus.length > 0 && `${list(surplus)} cannot be set in this step`,
  ].filter(Boolean);
  throw new RdmaError(
    'ERR_RDMA_INVALID_ATTRIBUTES',
    `${type.toUpperCase()} queue pair from ${step}: ${parts.join('; ')}.`,
    { qpn },
  );
}
