// What rxe does not have: the refusal is one error, whatever the provider says, and leaves everything as it was.
import { openSync, closeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  Access,
  Counters,
  FlowAction,
  importDevice,
  RdmaError,
  ThreadDomain,
  XrcDomain,
} from '../../lib/index.js';
import { ALL_REMOTE, connectedPair, device, succeeded } from '../support/device.js';

const unsupported = (syscall: string) =>
  expect.objectContaining({ code: 'ERR_RDMA_UNSUPPORTED', syscall }) as Error;

const refuses = (syscall: string, work: () => unknown) => expect(work).toThrow(unsupported(syscall));

function setting() {
  const context = device();
  const pd = context.allocPd();
  const cq = context.createCq();
  const mr = pd.regMrSync(4096, { access: ALL_REMOTE });
  return { context, pd, cq, mr };
}

describe('memory', () => {
  it('is not registered anew, and works on as it was', async () => {
    const { a, b } = await connectedPair();
    const other = b.pd.context.allocPd();
    const before = b.mr.remote().toJSON();
    for (const change of [{ access: Access.LOCAL_WRITE }, { pd: other }, { source: 8192 }]) {
      await expect(b.mr.rereg(change)).rejects.toEqual(unsupported('ibv_rereg_mr'));
      refuses('ibv_rereg_mr', () => b.mr.reregSync(change));
    }
    expect(b.mr.pd).toBe(b.pd);
    expect(b.mr.remote().toJSON()).toEqual(before);
    a.mr.buffer.write('still there');
    a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 11 }, remote: b.mr.remote() });
    await succeeded(a.cq);
    expect(b.mr.buffer.toString('latin1', 0, 11)).toBe('still there');
    b.qp.postRecv({ sge: { mr: b.mr } });
    await expect(b.mr.rereg({ access: ALL_REMOTE })).rejects.toMatchObject({ code: 'ERR_RDMA_BUSY' });
    other.close();
  });

  it('is registered anew only in ways that there are', async () => {
    const { mr, context } = setting();
    const stranger = device().allocPd();
    for (const [change, code] of [
      [{}, 'ERR_OUT_OF_RANGE'],
      [undefined, 'ERR_INVALID_ARG_TYPE'],
      [{ access: Access.REMOTE_WRITE }, 'ERR_RDMA_INVALID_ATTRIBUTES'],
      [{ access: 1 << 30 }, 'ERR_OUT_OF_RANGE'],
      [{ pd: {} }, 'ERR_INVALID_ARG_TYPE'],
      [{ pd: stranger }, 'ERR_RDMA_FOREIGN_OBJECT'],
      [{ source: 0 }, 'ERR_OUT_OF_RANGE'],
      [{ source: new Uint8Array(0) }, 'ERR_OUT_OF_RANGE'],
    ] as const) {
      await expect(mr.rereg(change as never)).rejects.toMatchObject({ code });
    }
    mr.close();
    await expect(mr.rereg({ access: ALL_REMOTE })).rejects.toMatchObject({ code: 'ERR_RDMA_CLOSED' });
    context.close({ cascade: true });
  });

  it('is not of a device, not absent, not of the whole process, not of a dma-buf', async () => {
    const { context, pd } = setting();
    refuses('ibv_alloc_null_mr', () => pd.allocNullMr());
    refuses('ibv_reg_mr', () => pd.regImplicitMr());
    refuses('ibv_alloc_dm', () => context.allocDm({ length: 4096 }));
    refuses('ibv_import_dm', () => context.importDm(1, 4096));
    const fd = openSync('/dev/null', 'r');
    await expect(pd.regDmabufMr({ fd, length: 4096 })).rejects.toEqual(unsupported('ibv_reg_dmabuf_mr'));
    refuses('ibv_reg_dmabuf_mr', () => pd.regDmabufMrSync({ fd, length: 4096, offset: 4096, iova: 0 }));
    closeSync(fd);
    for (const bad of [
      { fd: -1, length: 1 },
      { fd: 1.5, length: 1 },
      { fd: 1, length: 0 },
      { fd: 1, length: 1, access: 1 << 30 },
    ])
      await expect(pd.regDmabufMr(bad)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    expect(() => context.allocDm({ length: 0 })).toThrow(RangeError);
    expect(() => context.allocDm(undefined as never)).toThrow(TypeError);
  });

  it('takes no advice', async () => {
    const { pd, mr } = setting();
    const stranger = device().allocPd();
    await expect(pd.adviseMr({ mr }, { advice: 'prefetch' })).rejects.toEqual(unsupported('ibv_advise_mr'));
    refuses('ibv_advise_mr', () => pd.adviseMrSync([{ mr }], { advice: 'prefetchWrite', flush: true }));
    expect(() => pd.adviseMrSync({ mr }, { advice: 'nonsense' as never })).toThrow(RangeError);
    expect(() => pd.adviseMrSync({ mr, offset: 4097 }, { advice: 'prefetch' })).toThrow(RangeError);
    expect(() => pd.adviseMrSync({} as never, { advice: 'prefetch' })).toThrow(TypeError);
    expect(() => stranger.adviseMrSync({ mr }, { advice: 'prefetch' })).toThrow(
      expect.objectContaining({ code: 'ERR_RDMA_FOREIGN_OBJECT' }) as Error,
    );
  });
});

describe('another process', () => {
  it('shares nothing', () => {
    const { context, pd, mr } = setting();
    expect(context.commandFd).toBeGreaterThan(2);
    refuses('ibv_import_device', () => importDevice(context.commandFd));
    refuses('ibv_import_pd', () => context.importPd(pd.handle));
    const region = { handle: mr.handle, address: mr.address, length: 4096, access: ALL_REMOTE };
    refuses('ibv_import_mr', () => pd.importMr(region));
    expect(() => importDevice(-1)).toThrow(RangeError);
    expect(() => importDevice(99999)).toThrow(RdmaError);
    expect(() => context.importPd(-1)).toThrow(RangeError);
    expect(() => pd.importMr({ ...region, length: 0 })).toThrow(RangeError);
    // The descriptor is still the context's.
    expect(context.queryPkey()).toBe(0xffff);
  });
});

describe('domains', () => {
  it('are of no thread, of no parent, of no XRC', () => {
    const { context, pd, cq } = setting();
    refuses('ibv_alloc_td', () => context.allocTd());
    refuses('ibv_alloc_parent_domain', () => pd.allocParentDomain());
    refuses('ibv_open_xrcd', () => context.openXrcd());
    refuses('ibv_create_qp_ex', () => pd.createQp({ type: 'xrcSend', cq }));
    refuses('ibv_create_qp', () => pd.createQp({ type: 'rawPacket', cq }));
    refuses('ibv_create_srq_ex', () => pd.createSrq({ type: 'tm', cq, maxNumTags: 8, maxOps: 8 }));
    const srq = pd.createSrq();
    refuses('ibv_get_srq_num', () => srq.srqNum);
    refuses('ibv_post_srq_ops', () => srq.postTagOp({ opcode: 'sync', unexpectedCount: 0 }));
    expect(srq.free).toBe(srq.maxWr);
  });

  it('take no wrong arguments', () => {
    const { context, pd, cq } = setting();
    const code = (work: () => unknown) => {
      try {
        work();
      } catch (error) {
        return (error as RdmaError).code;
      }
      return 'none';
    };
    expect([
      code(() => context.openXrcd({ fd: -1 })),
      code(() => context.openXrcd({ create: false })),
      code(() => context.openXrcd({ create: 1 as never })),
      code(() => pd.allocParentDomain({ td: {} as never })),
      code(() => pd.createQp({ type: 'xrcRecv', cq })),
      code(() => pd.createSrq({ type: 'xrc', cq })),
      code(() => pd.createSrq({ type: 'tm', cq })),
      code(() => pd.createSrq({ cq })),
      code(() => pd.createSrq({ type: 'nonsense' as never })),
      code(() => new ThreadDomain(context)),
      code(() => new XrcDomain(context, { exclusive: 2 as never })),
    ]).toEqual([
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
      'ERR_INVALID_ARG_TYPE',
      'ERR_INVALID_ARG_TYPE',
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
      'ERR_OUT_OF_RANGE',
      'ERR_RDMA_UNSUPPORTED',
      'ERR_INVALID_ARG_TYPE',
    ]);
  });
});

describe('queues', () => {
  it('are not moderated, and of no work queue', () => {
    const { context, pd, cq } = setting();
    refuses('ibv_modify_cq', () => cq.moderate({ count: 16, periodUs: 100 }));
    expect(() => cq.moderate({ count: 2 ** 16, periodUs: 1 })).toThrow(RangeError);
    refuses('ibv_create_wq', () => pd.createWq({ cq }));
    expect(() => pd.createWq({ cq: {} as never })).toThrow(TypeError);
    expect(() => pd.createWq({ cq, flags: 1 << 20 })).toThrow(RangeError);
    for (const queues of [[], [1, 2, 3]] as never[])
      expect(() => context.createRwqIndTable(queues)).toThrow(RangeError);
    expect(() => context.createRwqIndTable([{}] as never)).toThrow(TypeError);
    expect(() => pd.createRssQp({ table: {} } as never)).toThrow(TypeError);
  });

  it('have no enhanced connections, no pace, no clock, no order of bytes', async () => {
    const { a } = await connectedPair();
    refuses('ibv_set_ece', () => a.qp.setEce({ vendorId: 1, options: 2 }));
    refuses('ibv_query_ece', () => a.qp.queryEce());
    refuses('ibv_modify_qp_rate_limit', () => a.qp.modifyRateLimit({ rateLimit: 1000 }));
    refuses('ibv_query_rt_values_ex', () => a.context.queryRawClock());
    refuses('ibv_query_port_speed', () => a.context.queryPortSpeed());
    expect(a.qp.queryDataInOrder('rdmaWrite')).toBe(false);
    expect(() => a.qp.setEce({ vendorId: -1, options: 0 })).toThrow(RangeError);
    expect(() => a.qp.setEce(null as never)).toThrow(TypeError);
    expect(() => a.qp.modifyRateLimit({ rateLimit: 1, typicalPacketSize: 2 ** 16 })).toThrow(RangeError);
    expect(() => a.qp.queryDataInOrder('nonsense' as never)).toThrow(RangeError);
    expect(a.qp.state).toBe('rts');
  });

  it('steer no flows, and count nothing', async () => {
    const { a } = await connectedPair();
    refuses('ibv_create_flow', () => a.qp.createFlow({}));
    refuses('ibv_create_flow', () =>
      a.qp.createFlow({
        specs: [
          { match: 'eth', value: { etherType: 0x800 } },
          { match: 'ipv4', value: { srcIp: '10.0.0.1' } },
          { match: 'udp', value: { dstPort: 4791 } },
          { action: 'tag', tag: 5 },
        ],
      }),
    );
    refuses('ibv_create_counters', () => a.context.createCounters());
    refuses('ibv_create_flow_action_esp', () => a.context.createFlowActionEsp({ spi: 1 }));
    const fails = (spec: object, code: string) =>
      expect(() => a.qp.createFlow({ specs: [spec as never] })).toThrow(
        expect.objectContaining({ code }) as Error,
      );
    fails({ match: 'nonsense' }, 'ERR_OUT_OF_RANGE');
    fails({ match: 'eth', value: { nonsense: 1 } }, 'ERR_OUT_OF_RANGE');
    fails({ match: 'eth', value: { dstMac: '1:2' } }, 'ERR_OUT_OF_RANGE');
    fails({ match: 'ipv4', value: { srcIp: '::1' } }, 'ERR_OUT_OF_RANGE');
    fails({ match: 'ipv6', value: { srcIp: '10.0.0.1' } }, 'ERR_OUT_OF_RANGE');
    fails({ match: 'tcp', value: { dstPort: 2 ** 16 } }, 'ERR_OUT_OF_RANGE');
    fails({ match: 'tcp', mask: { dstPort: '1' } }, 'ERR_INVALID_ARG_TYPE');
    fails({ action: 'nonsense' }, 'ERR_OUT_OF_RANGE');
    fails({ action: 'handle', handle: {} }, 'ERR_INVALID_ARG_TYPE');
    fails({ action: 'count', counters: {} }, 'ERR_INVALID_ARG_TYPE');
    fails(5 as never, 'ERR_INVALID_ARG_TYPE');
    expect(() => a.qp.createFlow({ type: 'nonsense' as never })).toThrow(RangeError);
    expect(() => a.qp.createFlow({ port: 2 })).toThrow(RangeError);
    expect(() => a.context.createFlowActionEsp({ key: { aes: Buffer.alloc(5), salt: 1 } })).toThrow(
      RangeError,
    );
    expect([Counters.name, FlowAction.name]).toEqual(['Counters', 'FlowAction']);
  });
});
