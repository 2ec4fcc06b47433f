// What no rxe device has. Each call is refused by one error, and what it was called on works on.
import { expect } from 'vitest';
import { importDevice } from '../../../lib/index.js';
import { ALL_REMOTE, connectedPair, device } from '../../support/device.js';
import { capability, fails, REFUSED, refused } from './cases.js';

function parts() {
  const context = device();
  const pd = context.allocPd();
  return { context, pd, cq: context.createCq() };
}

const xrc = capability('XRC');

xrc('a domain', 'xrc_traffic_cq_ex', () => refused('ibv_open_xrcd', () => device().openXrcd()));

xrc(
  'a queue pair to send',
  [
    'xrc_atomic_fetch_add',
    'xrc_atomic_cmp_and_swp',
    'qp_ex_xrc_send',
    'qp_ex_xrc_send_imm',
    'odp_xrc_traffic',
    'ro_xrc_traffic',
  ],
  () => {
    const { pd, cq } = parts();
    return refused('ibv_create_qp_ex', () => pd.createQp({ type: 'xrcSend', cq }));
  },
);

xrc('the number of a shared receive queue', [], () =>
  refused('ibv_get_srq_num', () => parts().pd.createSrq().srqNum),
);

const packets = capability('raw packets, flows and RSS');

packets('a queue pair for packets, as the raw cases of test_qp', [], () => {
  const { pd, cq } = parts();
  return refused('ibv_create_qp', () => pd.createQp({ type: 'rawPacket', cq }));
});

packets('segments of a long message', [], () => {
  const { pd, cq } = parts();
  return refused('ibv_create_qp_ex', () =>
    pd.createQp({ type: 'ud', cq, sendOps: ['tso'], maxTsoHeader: 64 }),
  );
});

packets('a flow, as all of test_flow', [], async () => {
  const { a } = await connectedPair();
  refused('ibv_create_flow', () => a.qp.createFlow({}));
  return refused('ibv_create_flow', () =>
    a.qp.createFlow({ specs: [{ match: 'eth', value: { etherType: 0x800 } }] }),
  );
});

packets('counters, and an action of IPsec', [], () => {
  const { context } = parts();
  refused('ibv_create_counters', () => context.createCounters());
  return refused('ibv_create_flow_action_esp', () => context.createFlowActionEsp({ spi: 1 }));
});

packets('a work queue to spread over, as all of test_rss_traffic', [], () => {
  const { pd, cq } = parts();
  return refused('ibv_create_wq', () => pd.createWq({ cq }));
});

const others = capability('other features of NICs');

others('tag matching, as all of test_tag_matching', [], () => {
  const { pd, cq } = parts();
  refused('ibv_create_srq_ex', () => pd.createSrq({ type: 'tm', cq, maxNumTags: 4, maxOps: 4 }));
  return refused('ibv_post_srq_ops', () => pd.createSrq().postTagOp({ opcode: 'sync', unexpectedCount: 0 }));
});

others('domains of a parent and of a thread, as all of test_parent_domain', [], () => {
  const { context, pd } = parts();
  refused('ibv_alloc_td', () => context.allocTd());
  return refused('ibv_alloc_parent_domain', () => pd.allocParentDomain());
});

others('import from another process, as all of test_shared_pd', [], () => {
  const { context, pd } = parts();
  const mr = pd.regMrSync(64);
  refused('ibv_import_device', () => importDevice(context.commandFd));
  refused('ibv_import_pd', () => context.importPd(pd.handle));
  refused('ibv_import_mr', () =>
    pd.importMr({ handle: mr.handle, address: mr.address, length: 64, access: ALL_REMOTE }),
  );
  expect(context.queryPkey()).toBe(0xffff);
  return REFUSED;
});

others('a limit of the rate', [], async () => {
  const { a } = await connectedPair();
  return refused('ibv_modify_qp_rate_limit', () => a.qp.modifyRateLimit({ rateLimit: 1000 }));
});

others('enhanced connections', [], async () => {
  const { a } = await connectedPair();
  refused('ibv_query_ece', () => a.qp.queryEce());
  return refused('ibv_set_ece', () => a.qp.setEce({ vendorId: 1, options: 1 }));
});

others('what was refused has broken nothing', [], async () => {
  const { a, b } = await connectedPair();
  refused('ibv_create_flow', () => a.qp.createFlow({}));
  refused('ibv_rereg_mr', () => b.mr.reregSync({ access: ALL_REMOTE }));
  refused('ibv_open_xrcd', () => a.context.openXrcd());
  fails(() => a.qp.sendTso({ header: Buffer.alloc(8), mss: 100, sge: { mr: a.mr } }), {
    code: 'ERR_RDMA_INVALID_STATE',
  });
  a.mr.buffer.write('works on');
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
  await a.cq.wait({ timeoutMs: 20_000 });
  expect(a.cq.poll()).toMatchObject([{ status: 'success' }]);
  expect(b.mr.buffer.toString('latin1', 0, 8)).toBe('works on');
});
