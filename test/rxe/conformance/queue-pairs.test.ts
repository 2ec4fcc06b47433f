import { expect } from 'vitest';
import { type QueuePairOptions, type SendOp } from '../../../lib/index.js';
import { connectedPair, device, deviceA, end } from '../../support/device.js';
import { capability, fails } from './cases.js';

const queuePairs = capability('queue pairs');

const TYPES = ['rc', 'uc', 'ud'] as const;
const WAYS: [suffix: '' | '_ex', words: string, options: { sendOps?: SendOp[] }][] = [
  ['', 'plainly', {}],
  ['_ex', 'in the extended way', { sendOps: ['send'] }],
];

function make(type: (typeof TYPES)[number], options: Partial<QueuePairOptions> = {}) {
  return end(deviceA, { qp: { type, ...options } }).qp;
}

for (const [suffix, words, options] of WAYS)
  for (const type of TYPES) {
    queuePairs(
      `one of type ${type}, made ${words}, is in RESET`,
      `create_${type}_qp${suffix}_no_attr`,
      () => {
        const qp = make(type, options);
        expect(qp.query()).toMatchObject({ qpState: 'reset', curQpState: 'reset' });
        expect(qp.qpNum).toBeGreaterThan(1);
      },
    );

    const goes = type === 'ud' ? 'rts' : 'init';
    const title = `one of type ${type}, made ${words}, goes to ${goes.toUpperCase()}`;
    queuePairs(title, `create_${type}_qp${suffix}_with_attr`, async () => {
      const qp = make(type, options);
      await (type === 'ud' ? qp.start() : qp.init());
      expect(qp.query()).toMatchObject({ qpState: goes, portNum: 1, pkeyIndex: 0 });
    });
  }

for (const [property, limit, rdmaCore] of [
  ['maxSendWr', 'maxQpWr', 'max_send_wr'],
  ['maxRecvWr', 'maxQpWr', 'max_recv_wr'],
  ['maxSendSge', 'maxSge', 'max_send_sge'],
  ['maxRecvSge', 'maxSge', 'max_recv_sge'],
] as const)
  queuePairs(
    `more ${property} than the device has are refused`,
    `create_raw_qp_ex_with_illegal_caps_${rdmaCore}`,
    () => {
      const context = device();
      const most = context.queryDevice()[limit];
      const [pd, cq] = [context.allocPd(), context.createCq()];
      expect(() => pd.createQp({ type: 'ud', cq, sendOps: ['send'], [property]: most + 1 })).toThrow(
        expect.objectContaining({
          code: 'ERR_RDMA_LIMIT',
          message: expect.stringContaining(`${property} ${most + 1} is 1 above the ${most}`) as string,
        }) as Error,
      );
    },
  );

for (const type of TYPES)
  queuePairs(`one of type ${type} has what was asked for`, `query_${type}_qp`, () => {
    const asked = { maxSendWr: 11, maxRecvWr: 13, maxSendSge: 3, maxRecvSge: 2, maxInlineData: 48 };
    const { cap, qpState } = make(type, asked).query();
    expect(qpState).toBe('reset');
    for (const [name, least] of Object.entries(asked))
      expect(cap[name as keyof typeof asked], name).toBeGreaterThanOrEqual(least);
  });

queuePairs('one in RTS tells whether bytes come in order', 'query_data_in_order', async () => {
  const { a } = await connectedPair();
  for (const opcode of ['rdmaWrite', 'send', 'rdmaRead'] as const)
    expect(a.qp.queryDataInOrder(opcode)).toBe(false);
});

queuePairs('one for datagrams goes from RESET to RTS by steps, and back', 'modify_ud_qp', async () => {
  for (const [, , options] of WAYS) {
    const qp = make('ud', options);
    await qp.modify({ qpState: 'init', pkeyIndex: 0, portNum: 1, qkey: 0x1357 });
    expect(qp.query()).toMatchObject({ qpState: 'init', qkey: 0x1357 });
    await qp.modify({ qpState: 'rtr' });
    expect(qp.query().qpState).toBe('rtr');
    await qp.modify({ qpState: 'rts', sqPsn: 0x2468 });
    expect(qp.query()).toMatchObject({ qpState: 'rts', sqPsn: 0x2468 });
    await qp.modify({ qpState: 'reset' });
    expect(qp.query().qpState).toBe('reset');
  }
});

queuePairs('a step that there is not, or without what it needs, is refused', [], async () => {
  const qp = make('rc');
  await expect(qp.modify({ qpState: 'rts', sqPsn: 1 })).rejects.toMatchObject({
    code: 'ERR_RDMA_INVALID_STATE',
  });
  await expect(qp.modify({ qpState: 'init', portNum: 1 })).rejects.toMatchObject({
    code: 'ERR_RDMA_INVALID_ATTRIBUTES',
  });
  expect(qp.query().qpState).toBe('reset');
});

queuePairs('one of root takes a Q_Key with the high bit', 'create_ud_qp_with_privileged_qkey', async () => {
  const qp = make('ud');
  await qp.init({ qkey: 0x80001357 });
  expect(qp.query()).toMatchObject({ qpState: 'init', qkey: 0x80001357 });
});

queuePairs('at least as many READs are outstanding as were agreed on', 'modify_rc_qp_rd_atomic', async () => {
  const { a } = await connectedPair({ connect: { maxRdAtomic: 12, maxDestRdAtomic: 12 } });
  const { maxRdAtomic, maxDestRdAtomic } = a.qp.query();
  expect(maxRdAtomic).toBeGreaterThanOrEqual(12);
  expect(maxDestRdAtomic).toBeGreaterThanOrEqual(12);
});

queuePairs('one that fails goes to ERR, and from there to RESET', [], async () => {
  const { a } = await connectedPair();
  await a.qp.modify({ qpState: 'err' });
  expect(a.qp.query().qpState).toBe('err');
  fails(() => a.qp.postRecv({}), { code: 'ERR_RDMA_INVALID_STATE' });
  await a.qp.modify({ qpState: 'reset' });
  expect(a.qp.query().qpState).toBe('reset');
});
