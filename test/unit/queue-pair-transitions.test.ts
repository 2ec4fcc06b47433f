import { describe, expect, it } from 'vitest';
import { QpAttributeMask as M, qpStates, type QpType } from '../../lib/verbs/constants.js';
import { checkTransition } from '../../lib/verbs/queue-pair-transitions.js';

const RTR = M.AV | M.PATH_MTU | M.DEST_QPN | M.RQ_PSN | M.MAX_DEST_RD_ATOMIC | M.MIN_RNR_TIMER;
const RTS = M.TIMEOUT | M.RETRY_CNT | M.RNR_RETRY | M.SQ_PSN | M.MAX_QP_RD_ATOMIC;
const INIT = M.PKEY_INDEX | M.PORT | M.ACCESS_FLAGS;

function refusal(type: QpType, from: string, to: string, mask: number): Error & { code?: string } {
  try {
    checkTransition(type, from as never, to as never, mask, 17);
  } catch (error) {
    return error as Error;
  }
  throw new Error(`${type} ${from} to ${to} was accepted`);
}

it.each([
  ['rc', 'reset', 'init', INIT],
  ['rc', 'init', 'rtr', RTR],
  ['rc', 'rtr', 'rts', RTS],
  ['rc', 'rtr', 'rts', RTS | M.MIN_RNR_TIMER],
  ['rc', 'rts', 'rts', M.ACCESS_FLAGS],
  ['rc', 'rts', 'sqd', 0],
  ['rc', 'sqd', 'rts', 0],
  ['uc', 'init', 'rtr', M.AV | M.PATH_MTU | M.DEST_QPN | M.RQ_PSN],
  ['uc', 'rtr', 'rts', M.SQ_PSN],
  ['uc', 'sqe', 'rts', M.ACCESS_FLAGS],
  ['ud', 'reset', 'init', M.PKEY_INDEX | M.PORT | M.QKEY],
  ['ud', 'init', 'init', M.QKEY],
  ['ud', 'init', 'rtr', 0],
  ['ud', 'rtr', 'rts', M.SQ_PSN],
  ['ud', 'rts', 'rts', M.QKEY],
  ['ud', 'rts', 'sqd', M.EN_SQD_ASYNC_NOTIFY],
  ['ud', 'sqd', 'sqd', M.PKEY_INDEX | M.QKEY],
  ['ud', 'sqd', 'rts', 0],
  ['ud', 'sqe', 'rts', M.CUR_STATE],
] as const)('%s goes from %s to %s', (type, from, to, mask) => {
  expect(() => checkTransition(type, from, to, mask, 17)).not.toThrow();
});

describe.each(['rc', 'uc', 'ud'] as const)('%s', (type) => {
  it('goes to RESET and ERR from everywhere', () => {
    for (const from of qpStates) {
      checkTransition(type, from, 'reset', 0, 17);
      checkTransition(type, from, 'err', 0, 17);
    }
  });

  it('skips no state', () => {
    for (const [from, to] of [
      ['reset', 'rtr'],
      ['reset', 'rts'],
      ['init', 'rts'],
      ['rtr', 'init'],
      ['rts', 'rtr'],
      ['err', 'rts'],
    ]) {
      expect(refusal(type, from!, to!, 0)).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE', qpn: 17 });
    }
    expect(refusal(type, 'reset', 'rts', 0).message).toMatch(
      /RESET to RTS\. From RESET it can go to INIT, RESET, ERR/,
    );
  });
});

it('knows the state that only a failed send leads to, and only where there is one', () => {
  expect(refusal('rc', 'sqe', 'rts', 0)).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
  for (const type of ['uc', 'ud'] as const) {
    expect(refusal(type, 'rts', 'sqe', 0)).toMatchObject({ code: 'ERR_RDMA_INVALID_STATE' });
    expect(refusal(type, 'sqe', 'sqd', 0).message).toMatch(/From SQE it can go to RTS, RESET, ERR/);
  }
});

it('names each attribute that lacks', () => {
  for (const [bit, property] of [
    [M.AV, 'ahAttr (IBV_QP_AV)'],
    [M.PATH_MTU, 'pathMtu (IBV_QP_PATH_MTU)'],
    [M.DEST_QPN, 'destQpNum'],
    [M.RQ_PSN, 'rqPsn'],
    [M.MAX_DEST_RD_ATOMIC, 'maxDestRdAtomic'],
    [M.MIN_RNR_TIMER, 'minRnrTimer'],
  ] as const) {
    const error = refusal('rc', 'init', 'rtr', RTR & ~bit);
    expect(error.code).toBe('ERR_RDMA_INVALID_ATTRIBUTES');
    expect(error.message).toContain(`it lacks ${property}`);
  }
  expect(refusal('rc', 'rtr', 'rts', 0).message).toMatch(
    /lacks timeout .*retryCnt .*rnrRetry .*sqPsn .*maxRdAtomic /,
  );
});

it('names each attribute that is too many', () => {
  expect(refusal('rc', 'init', 'rtr', RTR | M.TIMEOUT).message).toMatch(
    /timeout \(IBV_QP_TIMEOUT\) cannot be set/,
  );
  expect(refusal('rc', 'rts', 'err', M.SQ_PSN).message).toMatch(/sqPsn/);
  expect(refusal('uc', 'rtr', 'rts', RTS).message).toMatch(/timeout .*retryCnt .*cannot be set/);
  expect(refusal('ud', 'init', 'rtr', RTR).message).toMatch(
    /^UD queue pair .*ahAttr .*pathMtu .*destQpNum .*cannot be set/,
  );
  expect(refusal('ud', 'reset', 'init', INIT).message).toMatch(
    /lacks qkey \(IBV_QP_QKEY\); qpAccessFlags .*cannot be set/,
  );
});
