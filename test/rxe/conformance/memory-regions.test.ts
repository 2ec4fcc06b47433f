import { closeSync, openSync } from 'node:fs';
import { expect } from 'vitest';
import { Access, type Context } from '../../../lib/index.js';
import {
  ALL_REMOTE,
  completions,
  connectedPair,
  device,
  deviceA,
  deviceB,
  end,
  pattern,
  succeeded,
  type End,
} from '../../support/device.js';
import { capability, fails, REFUSED, refused } from './cases.js';

/** A message from a to b arrives whole. */
async function send({ a, b }: { a: End; b: End }, length = 100): Promise<void> {
  pattern(length, 1).copy(a.mr.buffer);
  b.qp.postRecv({ sge: { mr: b.mr, length: 4096 } });
  a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length } });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: length });
  expect(b.mr.buffer.subarray(0, length)).toEqual(pattern(length, 1));
}

const regions = capability('memory regions');

regions('remote WRITE or atomics without local writing are refused', 'reg_mr_bad_flags', () => {
  const pd = device().allocPd();
  for (const access of [Access.REMOTE_WRITE, Access.REMOTE_ATOMIC, Access.REMOTE_WRITE | Access.REMOTE_READ])
    fails(() => pd.regMrSync(64, { access }), { code: 'ERR_RDMA_INVALID_ATTRIBUTES' });
});

regions(
  'what no region can be is refused, whichever way it is registered',
  ['reg_mrex_bad_flags', 'reg_mrex_inval_params'],
  async () => {
    const pd = device().allocPd();
    for (const [source, options, code] of [
      [64, { access: Access.REMOTE_ATOMIC }, 'ERR_RDMA_INVALID_ATTRIBUTES'],
      [64, { access: 1 << 30 }, 'ERR_OUT_OF_RANGE'],
      [0, {}, 'ERR_OUT_OF_RANGE'],
      [-1, {}, 'ERR_OUT_OF_RANGE'],
      [64, { iova: -1 }, 'ERR_OUT_OF_RANGE'],
      [64, { pageSize: 12345 }, 'ERR_OUT_OF_RANGE'],
    ] as const)
      await expect(pd.regMr(source, options)).rejects.toMatchObject({ code });
  },
);

for (const [title, names, change] of [
  ['with other memory', ['mr_rereg_addr', 'mrex_rereg_addr'], () => ({ source: 8192 })],
  [
    'with other access',
    ['mr_rereg_access', 'mr_rereg_access_bad_flow', 'mrex_rereg_access'],
    () => ({ access: Access.LOCAL_WRITE }),
  ],
  ['without atomics', ['mr_rereg_atomic'], () => ({ access: ALL_REMOTE & ~Access.REMOTE_ATOMIC })],
  ['in another domain', ['mr_rereg_pd'], (context: Context) => ({ pd: context.allocPd() })],
] as const) {
  regions(`registering anew ${title}; the region stays as it was`, [...names], async () => {
    const { a, b } = await connectedPair();
    const before = b.mr.remote().toJSON();
    refused('ibv_rereg_mr', () => b.mr.reregSync(change(b.context)));
    await expect(b.mr.rereg(change(b.context))).rejects.toMatchObject({ code: 'ERR_RDMA_UNSUPPORTED' });
    expect(b.mr.remote().toJSON()).toEqual(before);
    a.mr.buffer.write('as it was');
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 9 }, remote: b.mr.remote() });
    await succeeded(a.cq);
    expect(b.mr.buffer.toString('latin1', 0, 9)).toBe('as it was');
    return REFUSED;
  });
}

const shared = capability('one memory in several regions');

shared(
  'two regions lie over one memory, each with its rights',
  ['multiple_mrs_one_buf_plain_pd_reg_buf_mr', 'multiple_mrs_one_buf_plain_pd_reg_mr_ex'],
  async () => {
    const { a, b } = await connectedPair();
    const memory = new Uint8Array(new ArrayBuffer(8192));
    const open = b.pd.regMrSync(memory, { access: ALL_REMOTE });
    const readOnly = b.pd.regMrSync(memory.subarray(4096), { access: Access.REMOTE_READ });
    expect(readOnly.rkey).not.toBe(open.rkey);
    a.mr.buffer.write('both');
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: open.remote(4096) });
    await succeeded(a.cq);
    a.qp.postSend({
      opcode: 'rdmaRead',
      sge: { mr: a.mr, offset: 64, length: 4 },
      remote: readOnly.remote(0, 4),
    });
    await succeeded(a.cq);
    expect(a.mr.buffer.toString('latin1', 64, 68)).toBe('both');
    expect(Buffer.from(memory.subarray(4096, 4100)).toString()).toBe('both');
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 4 }, remote: readOnly.remote(0, 4) });
    expect((await completions(a.cq))[0]!.status).toBe('remAccessErr');
  },
);

shared(
  'a request with a region of another domain is refused',
  'buf_reg_wrong_allocating_pd_fails_plain_pd',
  async () => {
    const { a } = await connectedPair();
    const foreign = a.context.allocPd().regMrSync(64);
    fails(() => a.qp.postSend({ opcode: 'send', sge: { mr: foreign } }), {
      code: 'ERR_RDMA_INVALID_DESCRIPTOR',
    });
    expect(a.qp.sendQueue.outstanding).toBe(0);
  },
);

shared(
  'a part that reaches beyond its region is refused',
  ['buf_reg_length_exceeds_buffer_fails_plain_pd', 'buf_reg_offset_length_exceeds_buffer_fails_plain_pd'],
  async () => {
    const { a } = await connectedPair();
    const mr = a.pd.regMrSync(100, { access: ALL_REMOTE });
    for (const [offset, length] of [
      [0, 101],
      [60, 41],
      [101, 0],
    ] as const) {
      fails(() => mr.slice(offset, length), { code: 'ERR_OUT_OF_RANGE' });
      fails(() => mr.remote(offset, length), { code: 'ERR_OUT_OF_RANGE' });
      fails(() => a.qp.postSend({ opcode: 'send', sge: { mr, offset, length } }), {
        code: 'ERR_OUT_OF_RANGE',
      });
    }
    expect(a.qp.sendQueue.outstanding).toBe(0);
  },
);

shared('messages go between parts of memory of the program', 'buf_rc_send_plain_pd_reg_buf_mr', async () => {
  const { a, b } = await connectedPair();
  const [from, to] = [pattern(300, 4), new Uint8Array(new ArrayBuffer(1000))];
  const source = a.pd.regMrSync(Buffer.concat([Buffer.alloc(100), from, Buffer.alloc(8192)]));
  const sink = b.pd.regMrSync(to);
  b.qp.postRecv({ sge: sink.slice(500, 400) });
  a.qp.postSend({ opcode: 'send', sge: source.slice(100, 300) });
  await succeeded(a.cq);
  expect(await succeeded(b.cq)).toMatchObject({ byteLen: 300 });
  expect(Buffer.from(to.subarray(500, 800))).toEqual(from);
  expect([to[499], to[800]]).toEqual([0, 0]);
});

const ordering = capability('relaxed ordering');
const RELAXED = ALL_REMOTE | Access.RELAXED_ORDERING;

ordering('messages and WRITEs of RC', ['ro_rc_traffic', 'ro_mr_ex_traffic'], async () => {
  const pair = await connectedPair({ access: RELAXED });
  await send(pair);
  const { a, b } = pair;
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 100 }, remote: b.mr.remote(8192) });
  await succeeded(a.cq);
  expect(b.mr.buffer.subarray(8192, 8292)).toEqual(pattern(100, 1));
});

ordering('datagrams', 'ro_ud_traffic', async () => {
  const [a, b] = [deviceA, deviceB].map((name) => end(name, { qp: { type: 'ud' }, access: RELAXED }));
  await Promise.all([a!.qp.start(), b!.qp.start()]);
  const to = b!.qp.endpoint();
  b!.qp.postRecv({ sge: { mr: b!.mr, length: 1024 } });
  pattern(64, 2).copy(a!.mr.buffer);
  a!.qp.postSend({
    opcode: 'send',
    sge: { mr: a!.mr, length: 64 },
    ud: { ah: await a!.pd.createAh({ dgid: to.gid }), remoteQpn: to.qpNum, remoteQkey: to.qkey! },
  });
  await succeeded(a!.cq);
  expect(await succeeded(b!.cq)).toMatchObject({ byteLen: 40 + 64 });
  expect(b!.mr.buffer.subarray(40, 104)).toEqual(pattern(64, 2));
});

const paging = capability('on-demand paging');

/** `enum ibv_odp_transport_cap_bits` */
const OdpCaps = { SEND: 1, RECV: 2, WRITE: 4, READ: 8, ATOMIC: 16 } as const;

const NO_PAGING = {
  code: 'ERR_RDMA_UNSUPPORTED',
  message: expect.stringContaining('cannot page on demand (odpGeneralCaps)') as string,
};

function cannotPage(work: () => unknown): typeof REFUSED {
  expect(work).toThrow(expect.objectContaining(NO_PAGING) as Error);
  return REFUSED;
}

/** A case of RC on memory that is paged on demand, where the device has that for what it needs; else the refusal. */
function onDemand(needs: number, work: (pair: { a: End; b: End }) => Promise<void>) {
  return async () => {
    const { odpRcCaps } = device().queryDevice();
    if ((odpRcCaps & needs) === needs)
      return work(await connectedPair({ access: ALL_REMOTE | Access.ON_DEMAND }));
    expect(odpRcCaps).toBe(0);
    const pd = device().allocPd();
    const access = ALL_REMOTE | Access.ON_DEMAND;
    await expect(pd.regMr(4096, { access })).rejects.toMatchObject(NO_PAGING);
    return cannotPage(() => pd.regMrSync(4096, { access }));
  };
}

paging(
  'messages',
  ['odp_rc_traffic', 'odp_rc_mixed_mr', 'mrex_odp_rc_traffic'],
  onDemand(OdpCaps.SEND | OdpCaps.RECV, (pair) => send(pair, 3000)),
);

paging(
  'WRITE and READ',
  ['odp_rc_rdma_write', 'odp_rc_rdma_read'],
  onDemand(OdpCaps.WRITE | OdpCaps.READ, async ({ a, b }) => {
    pattern(3000, 6).copy(a.mr.buffer);
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 3000 }, remote: b.mr.remote() });
    a.qp.postSend({
      opcode: 'rdmaRead',
      sge: { mr: a.mr, offset: 8192, length: 3000 },
      remote: b.mr.remote(),
    });
    for (const { status } of await completions(a.cq, 2)) expect(status).toBe('success');
    expect(b.mr.buffer.subarray(0, 3000)).toEqual(pattern(3000, 6));
    expect(a.mr.buffer.subarray(8192, 11192)).toEqual(pattern(3000, 6));
  }),
);

paging(
  'atomics',
  [
    'odp_rc_atomic_cmp_and_swp',
    'odp_rc_atomic_fetch_and_add',
    'odp_qp_ex_rc_atomic_write',
    'odp_qp_ex_rc_flush',
  ],
  onDemand(OdpCaps.ATOMIC, async ({ a, b }) => {
    const request = { sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() };
    a.qp.postSend({ ...request, opcode: 'atomicFetchAndAdd', compareAdd: 5 });
    a.qp.postSend({ ...request, opcode: 'atomicCmpAndSwp', compareAdd: 5, swap: 9 });
    for (const { status } of await completions(a.cq, 2)) expect(status).toBe('success');
    expect(b.mr.buffer.readBigUInt64LE()).toBe(9n);
  }),
);

paging('datagrams', 'odp_ud_traffic', () => {
  expect(device().queryDevice().odpUdCaps).toBe(0);
  return cannotPage(() => device().allocPd().regMrSync(4096, { access: Access.ON_DEMAND }));
});

paging(
  'huge pages',
  [
    'odp_rc_huge_traffic',
    'odp_rc_huge_user_addr_traffic',
    'mrex_odp_rc_huge_traffic',
    'mrex_odp_qp_ex_rc_flush',
  ],
  () => {
    const pd = device().allocPd();
    const memory = new Uint8Array(new ArrayBuffer(1 << 21));
    return cannotPage(() => pd.regMrSync(memory, { access: Access.ON_DEMAND | Access.HUGETLB }));
  },
);

for (const [title, names, options] of [
  ['advice to fetch at once', ['odp_sync_prefetch_rc_traffic'], { advice: 'prefetch', flush: true }],
  ['advice to fetch by and by', ['odp_async_prefetch_rc_traffic'], { advice: 'prefetchWrite', flush: false }],
  [
    'advice to map what is there',
    ['odp_prefetch_sync_no_page_fault_rc_traffic', 'odp_prefetch_async_no_page_fault_rc_traffic'],
    { advice: 'prefetchNoFault', flush: true },
  ],
] as const)
  paging(title, [...names], async () => {
    const pd = device().allocPd();
    const mr = pd.regMrSync(4096);
    await expect(pd.adviseMr({ mr }, options)).rejects.toMatchObject({ code: 'ERR_RDMA_UNSUPPORTED' });
    return refused('ibv_advise_mr', () => pd.adviseMrSync({ mr }, options));
  });

paging('all memory of the process', 'mrex_odp_implicit_rc_traffic', () =>
  refused('ibv_reg_mr', () => device().allocPd().regImplicitMr(ALL_REMOTE)),
);

const kinds = capability('memory of devices');

kinds('memory on the device, as all of DMTest', [], () => {
  expect(device().queryDevice().maxDmSize).toBe(0n);
  return refused('ibv_alloc_dm', () => device().allocDm({ length: 4096 }));
});

kinds('memory of another device, by a dma-buf', 'buf_export_dmabuf_fd_plain_pd', async () => {
  const pd = device().allocPd();
  const fd = openSync('/dev/null', 'r');
  try {
    await expect(pd.regDmabufMr({ fd, length: 4096 })).rejects.toMatchObject({
      code: 'ERR_RDMA_UNSUPPORTED',
    });
    return refused('ibv_reg_dmabuf_mr', () => pd.regDmabufMrSync({ fd, length: 4096 }));
  } finally {
    closeSync(fd);
  }
});

kinds('a region that is no memory', [], () =>
  refused('ibv_alloc_null_mr', () => device().allocPd().allocNullMr()),
);
