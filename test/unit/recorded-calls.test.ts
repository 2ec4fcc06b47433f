// What rxe cannot do: every field of what a provider is given, byte order included.
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareRecording, record, type Recorded } from '../support/recording.js';

beforeAll(prepareRecording, 120_000);

/** The calls of some names, in their order. */
const named = (calls: Recorded[], ...names: string[]) => calls.filter(({ call }) => names.includes(call));

describe('memory', () => {
  it('of a device, of nobody, of everything, of a dma-buf', () => {
    const { calls, result } = record(async ({ openDevice, Access }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const dm = context.allocDm({ length: 4096, logAlignment: 6 });
      dm.write(100, Buffer.from([1, 2, 3, 4]));
      const back = Buffer.from(dm.read(99, new Uint8Array(6))).toString('hex');
      const onDevice = pd.regDmMr(dm, {
        offset: 64,
        length: 128,
        access: Access.LOCAL_WRITE | Access.REMOTE_READ,
      });
      const nothing = pd.allocNullMr();
      const all = pd.regImplicitMr(Access.LOCAL_WRITE | Access.REMOTE_READ);
      const gpu = await pd.regDmabufMr({ fd: 7, offset: 4096, length: 8192, access: Access.LOCAL_WRITE });
      const other = pd.regDmabufMrSync({ fd: 8, length: 100, iova: 0xffff_0000_0000_0000n });
      const facts = [onDevice, nothing, all, gpu, other].map((mr) => ({
        address: mr.address,
        length: mr.length,
        bytes: mr.buffer.length,
        access: mr.access,
      }));
      let busy = '';
      try {
        dm.close();
      } catch (error) {
        busy = (error as Error).message;
      }
      onDevice.close();
      dm.close();
      return { back, facts, busy, remote: gpu.length, lkeys: [onDevice.lkey, all.lkey] };
    });
    expect(result.back).toBe('000102030400');
    expect(result.busy).toMatch(/memory region .* still hangs on it/);
    const [alloc, write, read] = named(calls, 'alloc_dm', 'memcpy_to_dm', 'memcpy_from_dm');
    expect(alloc).toEqual({ call: 'alloc_dm', length: '4096', log_align_req: 6, comp_mask: 0 });
    expect(write).toMatchObject({ offset: '100', bytes: '01020304' });
    expect(read).toMatchObject({ offset: '99', length: '6' });
    // LOCAL_WRITE | REMOTE_READ | ZERO_BASED
    expect(named(calls, 'reg_dm_mr')).toMatchObject([{ addr: '64', length: '128', access: 0x25 }]);
    expect(named(calls, 'alloc_null_mr')).toHaveLength(1);
    const whole = String(2n ** 64n - 1n);
    expect(named(calls, 'reg_mr')).toMatchObject([{ addr: '0', length: whole, iova: '0', access: 0x45 }]);
    expect(named(calls, 'reg_dmabuf_mr')).toMatchObject([
      { addr: '4096', length: '8192', iova: '4096', access: 1 },
      { addr: '0', length: '100', iova: String(0xffff_0000_0000_0000n), access: 1 },
    ]);
    expect(named(calls, 'dmabuf')).toMatchObject([{ fd: 7 }, { fd: 8 }]);
    expect(result.facts.map(({ bytes }) => bytes)).toEqual([0, 0, 0, 0, 0]);
    expect(result.facts.map(({ address }) => String(address))).toEqual([
      '0',
      '0',
      '0',
      '4096',
      String(0xffff_0000_0000_0000n),
    ]);
    expect(result.facts[0]!.length).toBe(128);
    expect(named(calls, 'free_dm')).toHaveLength(1);
  });

  it('registered anew: access, domain, memory', () => {
    const { calls, result } = record(async ({ openDevice, Access }) => {
      const context = openDevice('recorder0');
      const [pd, other] = [context.allocPd(), context.allocPd()];
      const mr = pd.regMrSync(4096, { access: Access.LOCAL_WRITE });
      const before = { lkey: mr.lkey, rkey: mr.rkey, buffer: mr.buffer };
      await mr.rereg({ access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });
      const keys = [mr.lkey - before.lkey, mr.rkey - before.rkey, mr.remote().rkey - before.rkey];
      mr.reregSync({ pd: other });
      pd.close();
      const view = new Uint8Array(100).fill(7);
      await mr.rereg({ source: view, access: Access.LOCAL_WRITE });
      const old = before.buffer.length;
      const seen = [mr.length, mr.buffer.length, mr.buffer[0], mr.access];
      mr.reregSync({ source: 8192, pd: other });
      return { keys, moved: mr.pd === other, old, seen, length: mr.buffer.length };
    });
    expect(result).toEqual({
      keys: [256, 256, 256],
      moved: true,
      old: 0,
      seen: [100, 100, 7, 1],
      length: 8192,
    });
    const [first, second] = [1, 2];
    expect(named(calls, 'rereg_mr').map(({ mr: _mr, call: _call, ...rest }) => rest)).toEqual([
      { flags: 4, pd: first, has_addr: 0, length: '0', access: 3 },
      { flags: 2, pd: second, has_addr: 0, length: '0', access: 0 },
      { flags: 5, pd: second, has_addr: 1, length: '100', access: 1 },
      { flags: 3, pd: second, has_addr: 1, length: '8192', access: 0 },
    ]);
  });

  it('that was broken by registering it anew takes no more requests, and can be closed', () => {
    const { result } = record(
      async ({ openDevice, Access }) => {
        const context = openDevice('recorder0');
        const pd = context.allocPd();
        const cq = context.createCq();
        const qp = pd.createQp({ type: 'ud', cq });
        await qp.start();
        const mr = pd.regMrSync(4096);
        const code = (error: unknown) => (error as { code: string }).code;
        const failure = await mr.rereg({ access: Access.LOCAL_WRITE }).catch(code);
        let posting = '';
        try {
          qp.postRecv({ sge: { mr } });
        } catch (error) {
          posting = code(error);
        }
        mr.close();
        return { failure, posting, closed: mr.closed };
      },
      { RECORD_FAILS: 'rereg_mr' },
    );
    expect(result).toEqual({ failure: 'EIO', posting: 'ERR_RDMA_INVALID_DESCRIPTOR', closed: true });
  });

  it('advised about, imported', () => {
    const { calls, result } = record(async ({ openDevice, importDevice, Access }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const mr = pd.regMrSync(4096, { access: Access.LOCAL_WRITE, iova: 0x10000 });
      await pd.adviseMr([{ mr, offset: 16, length: 32 }, { mr }], { advice: 'prefetchWrite', flush: true });
      pd.adviseMrSync({ mr, offset: 1 }, { advice: 'prefetchNoFault' });
      const theirs = importDevice(context.commandFd);
      const domain = theirs.importPd(0x11);
      const region = domain.importMr({
        handle: 0x22,
        address: 0x7000_0000_0000n,
        length: 64,
        access: Access.LOCAL_WRITE | Access.REMOTE_READ,
      });
      const dm = theirs.importDm(0x33, 512);
      const remote = region.remote(8);
      const own = theirs.commandFd !== context.commandFd;
      theirs.close({ cascade: true });
      return { lkey: mr.lkey, remote, own, closed: [domain, region, dm].every((one) => one.closed) };
    });
    const { lkey } = result;
    expect(named(calls, 'advise_mr').map(({ call: _call, pd: _pd, ...rest }) => rest)).toEqual([
      {
        advice: 1,
        flags: 1,
        sge: [
          { addr: String(0x10010), length: 32, lkey },
          { addr: String(0x10000), length: 4096, lkey },
        ],
      },
      { advice: 2, flags: 0, sge: [{ addr: String(0x10001), length: 4095, lkey }] },
    ]);
    expect(named(calls, 'import_device')).toHaveLength(1);
    expect(named(calls, 'import_pd', 'import_dm')).toMatchObject([{ handle: 0x11 }, { handle: 0x33 }]);
    expect(named(calls, 'import_mr')).toMatchObject([{ handle: 0x22 }]);
    expect(result).toMatchObject({
      own: true,
      closed: true,
      remote: { address: `0x${0x7000_0000_0008n.toString(16)}`, length: 56 },
    });
    expect(named(calls, 'unimport_mr', 'unimport_pd', 'unimport_dm')).toHaveLength(3);
    expect(named(calls, 'dereg_mr', 'dealloc_pd', 'free_dm')).toHaveLength(0);
  });
});

it('functions newer than the headers are found at run time', () => {
  const { calls, result } = record(({ openDevice, wrOpcodeString }) => {
    const context = openDevice('recorder0');
    const dm = context.allocDm({ length: 64 });
    return [dm.exportDmabufFd(), context.queryPortSpeed(), wrOpcodeString('flush'), dm.handle] as const;
  });
  const [fd, speed, name, dm] = result;
  expect([fd, speed, name]).toEqual([1234, 4000, 'an opcode']);
  expect(named(calls, 'dm_export_dmabuf_fd', 'query_port_speed', 'wr_opcode_str')).toMatchObject([
    { dm },
    { port: 1 },
    { opcode: 14 },
  ]);
});

it('domains of a thread, of a parent, of XRC', () => {
  const { calls, result } = record(({ openDevice }) => {
    const context = openDevice('recorder0');
    const pd = context.allocPd();
    const td = context.allocTd();
    const parent = pd.allocParentDomain({ td });
    const plain = pd.allocParentDomain();
    // A region of the domain serves a queue pair of the parent domain.
    const cq = context.createCq();
    const mr = pd.regMrSync(64);
    const qp = parent.createQp({ type: 'ud', cq });
    const busy = [pd, td].map((one) => {
      try {
        one.close();
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    });
    return qp.start().then(() => {
      qp.postRecv({ sge: { mr } });
      const own = context.openXrcd();
      const shared = context.openXrcd({ fd: 5, create: false, exclusive: true });
      context.close({ cascade: true });
      return {
        busy,
        closed: [own, shared, td, plain].every((one) => one.closed),
        handles: [pd.handle, parent.handle],
      };
    });
  });
  const [pd, parent] = result.handles as [number, number];
  const td = named(calls, 'alloc_td')[0]!;
  expect(td).toMatchObject({ comp_mask: 0 });
  expect(named(calls, 'alloc_parent_domain')).toMatchObject([
    { pd, td: td.td, comp_mask: 0, allocators: 0, made: parent },
    { pd, comp_mask: 0, allocators: 0 },
  ]);
  expect(named(calls, 'alloc_parent_domain')[1]).not.toHaveProperty('td');
  expect(result.busy[0]).toMatch(/protection domain of recorder0/);
  expect(result.busy[1]).toMatch(/protection domain of recorder0 still hangs/);
  expect(named(calls, 'post_recv')).toHaveLength(1);
  // IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS; O_CREAT, O_EXCL
  expect(named(calls, 'open_xrcd')).toMatchObject([
    { comp_mask: 3, has_fd: 0, oflags: 0o100 },
    { comp_mask: 3, has_fd: 1, oflags: 0o200 },
  ]);
  expect(result.closed).toBe(true);
  const order = calls.map(({ call }) => call);
  expect(order.lastIndexOf('dealloc_pd')).toBeGreaterThan(order.indexOf('destroy_qp'));
  expect(named(calls, 'dealloc_td', 'close_xrcd')).toHaveLength(3);
});

describe('XRC', () => {
  it('queue pairs of both ends, a shared receive queue with its number, a request for it', () => {
    const { calls, result } = record(({ openDevice, Access }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const cq = context.createCq();
      const xrcd = context.openXrcd();
      const srq = pd.createSrq({ type: 'xrc', xrcd, cq, maxWr: 32, maxSge: 2 });
      const target = pd.createQp({ type: 'xrcRecv', xrcd, cq });
      const again = pd.createQp({ type: 'xrcRecv', xrcd, cq, openQpNum: 0xabcdef });
      const sender = pd.createQp({ type: 'xrcSend', cq, maxSendWr: 20, sqSigAll: true });
      const init = { qpState: 'init', portNum: 1, pkeyIndex: 0, qpAccessFlags: Access.REMOTE_WRITE } as const;
      const ahAttr = { dgid: '::ffff:10.0.0.2', sgidIndex: 0, portNum: 1 };
      const rtr = { qpState: 'rtr', ahAttr, pathMtu: 1024, destQpNum: 5, rqPsn: 1 } as const;
      sender.modifySync(init);
      sender.modifySync(rtr);
      sender.modifySync({ qpState: 'rts', timeout: 14, retryCnt: 6, rnrRetry: 6, sqPsn: 2, maxRdAtomic: 1 });
      target.modifySync(init);
      target.modifySync({ ...rtr, maxDestRdAtomic: 1, minRnrTimer: 12 });
      target.modifySync({ qpState: 'rts', timeout: 14, sqPsn: 2 });
      const mr = pd.regMrSync(64, { iova: 0x1000 });
      sender.postSend({ opcode: 'sendWithImm', immData: 0x01020304, sge: { mr }, remoteSrqn: srq.srqNum });
      sender.prepareSend({ opcode: 'send', sge: { mr, length: 8 }, remoteSrqn: srq.srqNum }).post();
      srq.postRecv({ sge: { mr, length: 8 } });
      let refusal = '';
      try {
        target.postSend({ opcode: 'send', sge: { mr } });
      } catch (error) {
        refusal = (error as { code: string }).code;
      }
      const { srqNum } = srq;
      context.close({ cascade: true });
      return { srqNum, refusal, qpNum: again.qpNum > 0, pd: pd.handle, lkey: mr.lkey };
    });
    expect(result).toMatchObject({ srqNum: 0x654321, qpNum: true });
    expect(result.refusal).toMatch(/^ERR_RDMA_/);
    const cq = named(calls, 'create_srq_ex')[0]!.cq;
    const xrcd = named(calls, 'open_xrcd')[0]!.made;
    expect(named(calls, 'create_srq_ex')).toEqual([
      {
        call: 'create_srq_ex',
        max_wr: 32,
        max_sge: 2,
        srq_limit: 0,
        // TYPE | PD | XRCD | CQ
        comp_mask: 0xf,
        srq_type: 1,
        pd: result.pd,
        xrcd,
        cq,
        max_num_tags: 0,
        max_ops: 0,
      },
    ]);
    const [target] = named(calls, 'create_qp_ex');
    // What needs nothing but a domain goes the plain way.
    const [sender] = named(calls, 'create_qp');
    expect(target).toMatchObject({ qp_type: 10, comp_mask: 2, xrcd, max_send_wr: 0, max_recv_wr: 0 });
    for (const absent of ['pd', 'send_cq', 'recv_cq', 'srq']) expect(target).not.toHaveProperty(absent);
    expect(sender).toMatchObject({
      qp_type: 9,
      send_cq: cq,
      pd: result.pd,
      max_send_wr: 20,
      max_recv_wr: 0,
      sq_sig_all: 1,
    });
    for (const absent of ['xrcd', 'recv_cq']) expect(sender).not.toHaveProperty(absent);
    // NUM | XRCD | TYPE
    expect(named(calls, 'open_qp')).toMatchObject([{ comp_mask: 11, qp_num: 0xabcdef, xrcd, qp_type: 10 }]);
    expect(named(calls, 'post_send')).toMatchObject([
      {
        opcode: 3,
        imm: '01020304',
        remote_srqn: 0x654321,
        sge: [{ addr: String(0x1000), length: 64, lkey: result.lkey }],
      },
      { opcode: 2, remote_srqn: 0x654321, sge: [{ addr: String(0x1000), length: 8 }] },
    ]);
  });

  it('tags of a shared receive queue', () => {
    const { calls, result } = record(({ openDevice }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const cq = context.createCq();
      const srq = pd.createSrq({ type: 'tm', cq, maxWr: 16, maxNumTags: 8, maxOps: 4 });
      const mr = pd.regMrSync(64, { iova: 0x2000 });
      const handle = srq.postTagOp({
        opcode: 'add',
        wrId: 1,
        recvWrId: 2,
        tag: 0xfedcba9876543210n,
        mask: 0xffffffff00000000n,
        sge: { mr, offset: 8, length: 16 },
        unexpectedCount: 3,
      });
      srq.postTagOp({ opcode: 'del', handle, signaled: false });
      srq.postTagOp({ opcode: 'sync', unexpectedCount: 9 });
      let room = '';
      try {
        pd.createSrq({ type: 'tm', cq, maxWr: 250, maxNumTags: 8 });
      } catch (error) {
        room = (error as { code: string }).code;
      }
      const kept = cq.cqe - cq.room;
      let busy = '';
      try {
        mr.close();
      } catch (error) {
        busy = (error as { code: string }).code;
      }
      return { handle, busy, room, kept, lkey: mr.lkey };
    });
    // TYPE | PD | CQ | TM
    expect(named(calls, 'create_srq_ex')).toMatchObject([
      { comp_mask: 0x1b, srq_type: 2, max_num_tags: 8, max_ops: 4, max_wr: 16 },
      { comp_mask: 0x1b, srq_type: 2, max_num_tags: 8, max_ops: 0, max_wr: 250 },
    ]);
    expect(result).toMatchObject({ handle: 77, busy: 'ERR_RDMA_BUSY', room: 'ERR_RDMA_LIMIT', kept: 28 });
    expect(named(calls, 'post_srq_ops').map(({ call: _call, srq: _srq, ...rest }) => rest)).toEqual([
      {
        opcode: 0,
        flags: 3,
        unexpected_cnt: 3,
        handle: 0,
        sge: [{ addr: String(0x2008), length: 16, lkey: result.lkey }],
        tag: String(0xfedcba9876543210n),
        mask: String(0xffffffff00000000n),
        has_next: 0,
      },
      {
        opcode: 1,
        flags: 0,
        unexpected_cnt: 0,
        handle: 77,
        sge: [],
        tag: '0',
        mask: String(2n ** 64n - 1n),
        has_next: 0,
      },
      {
        opcode: 2,
        flags: 3,
        unexpected_cnt: 9,
        handle: 0,
        sge: [],
        tag: '0',
        mask: String(2n ** 64n - 1n),
        has_next: 0,
      },
    ]);
  });
});

describe('completion queues', () => {
  it('are moderated, and extended by all that there is', () => {
    const { calls, result } = record(({ openDevice, WcFlags }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const parentDomain = pd.allocParentDomain();
      const wcFlags = Object.values(WcFlags).reduce((all, flag) => all | flag, 0);
      const cq = context.createCqEx({
        cqe: 100,
        compVector: 2,
        wcFlags,
        singleThreaded: true,
        ignoreOverrun: true,
        parentDomain,
      });
      const without = context.createCqEx({ cqe: 50, channel: null, wcFlags: WcFlags.FLOW_TAG });
      cq.moderate({ count: 16, periodUs: 1000 });
      const read = (queue: typeof cq) => {
        const wq = pd.createWq({ cq: queue });
        wq.modify({ state: 'ready' });
        wq.postRecv({ wrId: 0x1234567890abcdefn, sge: { mr: pd.regMrSync(64) } });
        return queue.pollEx();
      };
      return { all: read(cq), few: read(without), parent: parentDomain.handle };
    });
    expect(named(calls, 'create_cq_ex')).toMatchObject([
      {
        cqe: 100,
        has_channel: 1,
        comp_vector: 2,
        wc_flags: String(0xfff),
        comp_mask: 3,
        flags: 3,
        parent_domain: result.parent,
      },
      { cqe: 50, has_channel: 0, comp_vector: 0, wc_flags: String(0x204), comp_mask: 0, flags: 0 },
    ]);
    expect(named(calls, 'modify_cq')).toMatchObject([{ attr_mask: 1, cq_count: 16, cq_period: 1000 }]);
    expect(result.all).toEqual([
      {
        wrId: String(0x1234567890abcdefn),
        status: 'success',
        qpNum: 0x111111,
        opcode: 'tmRecv',
        byteLen: 0x10203,
        wcFlags: 0x22,
        srcQp: 0x222222,
        slid: 0x3333,
        sl: 4,
        dlidPathBits: 5,
        pkeyIndex: 0,
        immData: 0x01020304,
        completionTs: String(0x1122334455667788n),
        completionWallclockNs: String(0x99aabbccddeeffn),
        cvlan: 0x6007,
        flowTag: 0x888888,
        tmInfo: { tag: String(0xfedcba9876543210n), priv: 0x76543210 },
      },
    ]);
    expect(result.few).toMatchObject([{ qpNum: 0x111111, flowTag: 0x888888, byteLen: 0, srcQp: 0 }]);
    for (const absent of ['completionTs', 'immData', 'cvlan', 'tmInfo'])
      expect(result.few[0]).not.toHaveProperty(absent);
    // A start for each completion, and an end for each start.
    const polls = named(calls, 'start_poll', 'next_poll', 'end_poll').map(({ call }) => call);
    expect(polls).toEqual(['start_poll', 'end_poll', 'start_poll', 'end_poll']);
  });
});

describe('queue pairs', () => {
  it('are created with all options', () => {
    const { calls, result } = record(({ openDevice, QpCreateFlags }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const [sendCq, recvCq] = [context.createCq(), context.createCq()];
      const qp = pd.createQp({
        type: 'ud',
        sendCq,
        recvCq,
        maxSendWr: 11,
        maxRecvWr: 12,
        maxSendSge: 3,
        maxRecvSge: 4,
        maxInlineData: 64,
        createFlags: QpCreateFlags.BLOCK_SELF_MCAST_LB | QpCreateFlags.CVLAN_STRIPPING,
        sourceQpn: 0xabcdef,
        maxTsoHeader: 128,
        sendOps: ['send', 'tso', 'flush', 'atomicWrite'],
      });
      return { qp: qp.qpNum, pd: pd.handle, inline: qp.maxInlineData };
    });
    const [made] = named(calls, 'create_qp_ex');
    expect(made).toMatchObject({
      qp_type: 4,
      // PD | CREATE_FLAGS | MAX_TSO_HEADER | SEND_OPS_FLAGS
      comp_mask: 0x4d,
      max_send_wr: 11,
      max_recv_wr: 12,
      max_send_sge: 3,
      max_recv_sge: 4,
      max_inline_data: 64,
      sq_sig_all: 0,
      pd: result.pd,
      // BLOCK_SELF_MCAST_LB | CVLAN_STRIPPING | SOURCE_QPN
      create_flags: 0x602,
      source_qpn: 0xabcdef,
      max_tso_header: 128,
      send_ops_flags: String(0x1c04),
    });
    expect(made!.send_cq).not.toBe(made!.recv_cq);
  });

  it('have enhanced connections, a pace, an order, groups', () => {
    const { calls, result } = record(async ({ openDevice }) => {
      const context = openDevice('recorder0');
      const cq = context.createCq();
      const qp = context.allocPd().createQp({ type: 'ud', cq });
      qp.setEce({ vendorId: 0x15b3, options: 0x80000001 });
      qp.modifyRateLimit({ rateLimit: 2_000_000, maxBurstSize: 65536, typicalPacketSize: 1024 });
      qp.attachMcast('ff0e::1234', 0xc001);
      qp.attachMcast('::ffff:239.1.2.3');
      qp.detachMcast('ff0e::1234', 0xc001);
      const facts = {
        ece: qp.queryEce(),
        inOrder: qp.queryDataInOrder('rdmaWrite'),
        clock: context.queryRawClock(),
      };
      await qp.closeAsync();
      return facts;
    });
    expect(result).toEqual({
      ece: { vendorId: 0x5678, options: 0x9abcdef0 },
      inOrder: true,
      clock: String(0x123456789abcn),
    });
    expect(named(calls, 'set_ece')).toMatchObject([{ vendor_id: 0x15b3, options: 0x80000001, comp_mask: 0 }]);
    expect(named(calls, 'modify_qp_rate_limit')).toMatchObject([
      { rate_limit: 2_000_000, max_burst_sz: 65536, typical_pkt_sz: 1024, comp_mask: 0 },
    ]);
    expect(named(calls, 'query_qp_data_in_order')).toMatchObject([{ opcode: 0, flags: 0 }]);
    expect(named(calls, 'query_rt_values')).toMatchObject([{ comp_mask: 1 }]);
    const ff0e = 'ff0e0000000000000000000000001234';
    const mapped = '00000000000000000000ffffef010203';
    expect(
      named(calls, 'attach_mcast', 'detach_mcast').map(({ call, gid, lid }) => [call, gid, lid]),
    ).toEqual([
      ['attach_mcast', ff0e, 0xc001],
      ['attach_mcast', mapped, 0],
      ['detach_mcast', ff0e, 0xc001],
      ['detach_mcast', mapped, 0],
    ]);
    const order = calls.map(({ call }) => call);
    expect(order.indexOf('destroy_qp')).toBeGreaterThan(order.lastIndexOf('detach_mcast'));
  });

  it('spread what they receive over work queues', () => {
    const { calls, result } = record(({ openDevice, RxHashFields, WqFlags, QpCreateFlags }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const cq = context.createCq();
      const one = pd.createWq({
        cq,
        maxWr: 33,
        maxSge: 2,
        flags: WqFlags.CVLAN_STRIPPING | WqFlags.DELAY_DROP,
      });
      const two = pd.createWq({ cq });
      const code = (work: () => unknown) => {
        try {
          work();
          return '';
        } catch (error) {
          return (error as { code: string }).code;
        }
      };
      const mr = pd.regMrSync(64, { iova: 0x3000 });
      const early = code(() => one.postRecv({ sge: { mr } }));
      one.modify({ state: 'ready', currentState: 'reset' });
      two.modify({ flags: WqFlags.SCATTER_FCS, flagsMask: WqFlags.SCATTER_FCS | WqFlags.DELAY_DROP });
      one.postRecv({ sge: { mr, offset: 4, length: 8 } });
      const table = context.createRwqIndTable([one, two, two, one]);
      const qp = pd.createRssQp({
        table,
        hashKey: Uint8Array.from({ length: 40 }, (_, i) => i),
        hashFields: RxHashFields.SRC_IPV4 + RxHashFields.DST_PORT_UDP + RxHashFields.INNER,
        createFlags: QpCreateFlags.CVLAN_STRIPPING,
      });
      qp.modify({ qpState: 'init', portNum: 1 });
      const busy = [code(() => one.close()), code(() => table.close()), code(() => mr.close())];
      const { state } = one;
      context.close({ cascade: true });
      return {
        early,
        busy,
        state,
        pd: pd.handle,
        closed: [one, two, table, qp].every((each) => each.closed),
      };
    });
    expect(result).toMatchObject({
      early: 'ERR_RDMA_INVALID_STATE',
      busy: ['ERR_RDMA_BUSY', 'ERR_RDMA_BUSY', 'ERR_RDMA_BUSY'],
      state: 'ready',
      closed: true,
    });
    const [one, two] = named(calls, 'create_wq');
    expect(one).toMatchObject({
      wq_type: 0,
      max_wr: 33,
      max_sge: 2,
      pd: result.pd,
      comp_mask: 1,
      create_flags: 5,
    });
    expect(two).toMatchObject({ wq_type: 0, max_wr: 128, max_sge: 1, comp_mask: 0, create_flags: 0 });
    const [first, second] = named(calls, 'modify_wq');
    expect(first).toMatchObject({ attr_mask: 3, wq_state: 1, curr_wq_state: 0 });
    expect(second).toMatchObject({ attr_mask: 4, flags: 2, flags_mask: 6 });
    expect(named(calls, 'post_recv')).toMatchObject([{ sge: [{ addr: String(0x3004), length: 8 }] }]);
    const [a, b] = [first!.wq, second!.wq];
    expect(named(calls, 'create_rwq_ind_table')).toMatchObject([
      { log_ind_tbl_size: 2, comp_mask: 0, ind_tbl: [a, b, b, a] },
    ]);
    expect(named(calls, 'create_qp_ex')).toMatchObject([
      {
        qp_type: 8,
        // PD | CREATE_FLAGS | IND_TABLE | RX_HASH
        comp_mask: 0x35,
        create_flags: 0x200,
        rx_hash_function: 1,
        rx_hash_key: Buffer.from(Array.from({ length: 40 }, (_, i) => i)).toString('hex'),
        rx_hash_fields_mask: String(0x80000081),
      },
    ]);
    expect(named(calls, 'modify_qp')).toMatchObject([{ mask: 0x21, qp_state: 1, port_num: 1 }]);
    const order = calls.map(({ call }) => call);
    expect(order.indexOf('destroy_rwq_ind_table')).toBeGreaterThan(order.indexOf('destroy_qp'));
    expect(order.indexOf('destroy_wq')).toBeGreaterThan(order.indexOf('destroy_rwq_ind_table'));
  });
});

describe('extended posting', () => {
  it('calls the function of each opcode, with its target and its bytes', () => {
    const { calls, result } = record(async ({ openDevice }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const cq = context.createCq({ cqe: 1024 });
      const qp = pd.createQp({
        type: 'rc',
        cq,
        maxInlineData: 64,
        maxSendSge: 3,
        sendOps: [
          'send',
          'sendWithImm',
          'sendWithInv',
          'rdmaWrite',
          'rdmaWriteWithImm',
          'rdmaRead',
          'atomicCmpAndSwp',
          'atomicFetchAndAdd',
          'atomicWrite',
          'flush',
          'bindMw',
          'localInv',
        ],
      });
      await qp.connect({
        type: 'rc',
        qpNum: 5,
        psn: 1,
        gid: '::ffff:10.0.0.2',
        lid: 0,
        mtu: 1024,
        maxDestRdAtomic: 4,
      });
      const mr = pd.regMrSync(4096, { iova: 0x4000, access: 31 });
      const remote = { address: 0x1122334455667788n, rkey: 0xaabbccdd };
      const sge = { mr, offset: 8, length: 8 };
      qp.postSendEx([
        { opcode: 'send', sge: [sge, { mr, length: 3 }], signaled: false, fence: true, solicited: true },
        { opcode: 'sendWithImm', immData: 0x01020304, inline: Buffer.from('inline') },
        { opcode: 'sendWithInv', invalidateRkey: 0x99887766, sge },
        { opcode: 'rdmaWrite', sge, remote },
        { opcode: 'rdmaWriteWithImm', immData: 5, sge, remote },
        { opcode: 'rdmaRead', sge, remote },
        { opcode: 'atomicCmpAndSwp', compareAdd: 0x1111222233334444n, swap: 7, sge, remote },
        { opcode: 'atomicFetchAndAdd', compareAdd: 9, sge, remote },
        { opcode: 'atomicWrite', value: 0x0102030405060708n, remote, fence: true },
        { opcode: 'flush', length: 2 ** 33, global: true, persistent: true, remote },
        { opcode: 'flush', length: 0, wholeRegion: true, global: true, remote, signaled: false },
      ]);
      const [type1, type2] = [pd.allocMw(1), pd.allocMw(2)];
      const keys = [
        qp.bindMw(type2, { mr, offset: 16, length: 32, access: 2, fence: true }),
        qp.bindMw(type1, { mr, length: 64, access: 4, signaled: false }),
      ];
      qp.invalidateMw(type2);
      qp.bindMw(type1, {});
      return { lkey: mr.lkey, keys, outstanding: cq.cqe - cq.room };
    });
    const { lkey } = result;
    const sge = [{ addr: String(0x4008), length: 8, lkey }];
    const target = { rkey: 0xaabbccdd, remote_addr: String(0x1122334455667788n) };
    const SIGNALED = 2;
    const posted = calls.slice(calls.findIndex(({ call }) => call === 'wr_start'));
    const list = posted.slice(0, posted.findIndex(({ call }) => call === 'wr_complete') + 1);
    expect(list).toEqual([
      { call: 'wr_start' },
      { call: 'wr_send', wr_flags: 1 | 4 },
      { call: 'wr_set_sge_list', sge: [...sge, { addr: String(0x4000), length: 3, lkey }] },
      { call: 'wr_send_imm', wr_flags: SIGNALED | 8, imm: '01020304' },
      { call: 'wr_set_inline_data', data: Buffer.from('inline').toString('hex') },
      { call: 'wr_send_inv', wr_flags: SIGNALED, rkey: 0x99887766 },
      { call: 'wr_set_sge', sge },
      { call: 'wr_rdma_write', wr_flags: SIGNALED, ...target },
      { call: 'wr_set_sge', sge },
      { call: 'wr_rdma_write_imm', wr_flags: SIGNALED, ...target, imm: '00000005' },
      { call: 'wr_set_sge', sge },
      { call: 'wr_rdma_read', wr_flags: SIGNALED, ...target },
      { call: 'wr_set_sge', sge },
      {
        call: 'wr_atomic_cmp_swp',
        wr_flags: SIGNALED,
        ...target,
        compare: String(0x1111222233334444n),
        swap: '7',
      },
      { call: 'wr_set_sge', sge },
      { call: 'wr_atomic_fetch_add', wr_flags: SIGNALED, ...target, add: '9' },
      { call: 'wr_set_sge', sge },
      // In the order of the machine's own 64-bit number.
      { call: 'wr_atomic_write', wr_flags: SIGNALED | 1, ...target, data: '0807060504030201' },
      { call: 'wr_flush', wr_flags: SIGNALED, ...target, length: String(2 ** 33), type: 3, level: 0 },
      { call: 'wr_flush', wr_flags: 0, ...target, length: '0', type: 1, level: 1 },
      { call: 'wr_complete' },
    ]);
    // The low 8 bits of the key are counted up, and wrap.
    expect(result.keys).toEqual([0x400000, 0x400000]);
    expect(named(calls, 'wr_bind_mw')).toMatchObject([
      { wr_flags: SIGNALED | 1, rkey: 0x400000, addr: String(0x4010), length: '32', access: 2 },
    ]);
    expect(named(calls, 'bind_mw')).toMatchObject([
      { send_flags: 0, addr: String(0x4000), length: '64', access: 4 },
      { send_flags: SIGNALED, length: '0', access: 0 },
    ]);
    expect(named(calls, 'wr_local_inv')).toMatchObject([{ wr_flags: SIGNALED, rkey: 0x400000 }]);
    expect(result.outstanding).toBe(15);
  });

  it('sends datagrams, segments, and to shared receive queues', () => {
    const { calls, result } = record(async ({ openDevice, Access }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const cq = context.createCq();
      const qp = pd.createQp({ type: 'ud', cq, sendOps: ['send', 'tso'], maxTsoHeader: 64 });
      await qp.start();
      const ah = pd.createAhSync({ dgid: '::ffff:10.0.0.2' });
      const mr = pd.regMrSync(4096, { iova: 0x5000 });
      const ud = { ah, remoteQpn: 0xabcdef, remoteQkey: 0x89abcdef };
      qp.postSendEx({ opcode: 'send', sge: { mr, length: 5 }, ud });
      qp.sendTso({ header: Buffer.from('head'), mss: 1460, sge: { mr, offset: 1, length: 3000 }, ud });
      const codes = [
        () => qp.sendTso({ header: Buffer.from('head'), mss: 0, sge: { mr }, ud }),
        () => qp.sendTso({ header: Buffer.from('head'), mss: 1, sge: { mr } }),
        () => ah.close(),
      ].map((work) => {
        try {
          work();
          return '';
        } catch (error) {
          return (error as { code: string }).code;
        }
      });
      const xrc = pd.createQp({ type: 'xrcSend', cq, sendOps: ['send'] });
      xrc.modifySync({ qpState: 'init', portNum: 1, pkeyIndex: 0, qpAccessFlags: Access.REMOTE_WRITE });
      const ahAttr = { dgid: '::ffff:10.0.0.2', sgidIndex: 0, portNum: 1 };
      xrc.modifySync({ qpState: 'rtr', ahAttr, pathMtu: 1024, destQpNum: 5, rqPsn: 1 });
      xrc.modifySync({ qpState: 'rts', timeout: 14, retryCnt: 6, rnrRetry: 6, sqPsn: 2, maxRdAtomic: 1 });
      xrc.postSendEx({ opcode: 'send', sge: { mr, length: 6 }, remoteSrqn: 0x123456 });
      return { codes, lkey: mr.lkey };
    });
    const { lkey } = result;
    expect(result.codes).toEqual(['ERR_OUT_OF_RANGE', 'ERR_RDMA_INVALID_STATE', 'ERR_RDMA_BUSY']);
    const ud = { remote_qpn: 0xabcdef, remote_qkey: 0x89abcdef };
    expect(named(calls, 'wr_set_ud_addr')).toMatchObject([ud, ud]);
    expect(named(calls, 'wr_send_tso')).toEqual([
      { call: 'wr_send_tso', wr_flags: 2, hdr: Buffer.from('head').toString('hex'), mss: 1460 },
    ]);
    expect(named(calls, 'wr_set_sge_list')).toMatchObject([
      { sge: [{ addr: String(0x5001), length: 3000, lkey }] },
    ]);
    expect(named(calls, 'wr_set_xrc_srqn')).toMatchObject([{ remote_srqn: 0x123456 }]);
    expect(named(calls, 'wr_set_sge')).toMatchObject([{ sge: [{ length: 5 }] }, { sge: [{ length: 6 }] }]);
  });
});

describe('flow steering', () => {
  it('has every kind of spec, in network order', () => {
    const { calls, result } = record(({ openDevice }) => {
      const context = openDevice('recorder0');
      const pd = context.allocPd();
      const qp = pd.createQp({ type: 'rawPacket', cq: context.createCq() });
      const counters = context.createCounters();
      const handle = context.createFlowActionEsp({ spi: 1 });
      const flow = qp.createFlow({
        priority: 0x1234,
        dontTrap: true,
        egress: true,
        specs: [
          {
            match: 'eth',
            value: {
              dstMac: '02:00:00:00:00:01',
              srcMac: 'AA:bb:cc:dd:ee:ff',
              etherType: 0x0800,
              vlanTag: 0x6007,
            },
            mask: { vlanTag: 0x0fff },
          },
          {
            match: 'ipv4',
            value: { srcIp: '10.0.0.1', dstIp: '192.168.1.2' },
            mask: { dstIp: '255.255.0.0' },
          },
          {
            match: 'ipv4Ext',
            value: { srcIp: '1.2.3.4', proto: 17, tos: 0xb8, ttl: 64, flags: 2 },
            inner: true,
          },
          {
            match: 'ipv6',
            value: {
              srcIp: 'fe80::1',
              dstIp: '2001:db8::2',
              flowLabel: 0x12345,
              nextHdr: 6,
              trafficClass: 3,
              hopLimit: 4,
            },
          },
          { match: 'esp', value: { spi: 0x01020304 }, mask: { seq: 0xff } },
          { match: 'tcp', value: { dstPort: 80, srcPort: 0x1234 } },
          { match: 'udp', value: { dstPort: 4791 }, inner: true },
          { match: 'vxlan', value: { tunnelId: 0x00abcdef } },
          { match: 'gre', value: { flagsAndVersion: 0x2000, protocol: 0x6558, key: 0x11223344 } },
          { match: 'mpls', value: { label: 0x55667788 } },
          { action: 'tag', tag: 0x123456 },
          { action: 'count', counters },
          { action: 'handle', handle },
          { action: 'drop' },
        ],
      });
      const sniffer = qp.createFlow({ type: 'sniffer' });
      counters.attach('packets', 0);
      counters.attach('bytes', 1, flow);
      const values = [...counters.read(3), ...counters.read(1, { preferCached: true })];
      let busy = '';
      try {
        counters.close();
      } catch (error) {
        busy = (error as Error).message;
      }
      context.close({ cascade: true });
      return { values, busy, closed: [flow, sniffer, counters, handle].every((one) => one.closed) };
    });
    const [rule, sniffer] = named(calls, 'create_flow');
    expect(rule).toMatchObject({
      comp_mask: 0,
      type: 0,
      priority: 0x1234,
      num_of_specs: 14,
      port: 1,
      flags: 6,
      rest: 0,
    });
    const counters = named(calls, 'create_counters')[0]!.made;
    expect(rule!.specs).toEqual([
      {
        type: 0x20,
        size: 40,
        dst_mac: '020000000001',
        mask_dst_mac: 'ffffffffffff',
        src_mac: 'aabbccddeeff',
        mask_src_mac: 'ffffffffffff',
        ether_type: '0800',
        mask_ether_type: 'ffff',
        vlan_tag: '6007',
        mask_vlan_tag: '0fff',
      },
      {
        type: 0x30,
        size: 24,
        src_ip: '0a000001',
        mask_src_ip: 'ffffffff',
        dst_ip: 'c0a80102',
        mask_dst_ip: 'ffff0000',
      },
      {
        type: 0x132,
        size: 32,
        src_ip: '01020304',
        mask_src_ip: 'ffffffff',
        dst_ip: '00000000',
        mask_dst_ip: '00000000',
        proto: '11',
        mask_proto: 'ff',
        tos: 'b8',
        mask_tos: 'ff',
        ttl: '40',
        mask_ttl: 'ff',
        flags: '02',
        mask_flags: 'ff',
      },
      {
        type: 0x31,
        size: 88,
        src_ip: 'fe800000000000000000000000000001',
        mask_src_ip: 'f'.repeat(32),
        dst_ip: '20010db8000000000000000000000002',
        mask_dst_ip: 'f'.repeat(32),
        flow_label: '00012345',
        mask_flow_label: '000fffff',
        next_hdr: '06',
        mask_next_hdr: 'ff',
        traffic_class: '03',
        mask_traffic_class: 'ff',
        hop_limit: '04',
        mask_hop_limit: 'ff',
      },
      { type: 0x34, size: 24, spi: '01020304', mask_spi: 'ffffffff', seq: '00000000', mask_seq: '000000ff' },
      {
        type: 0x40,
        size: 16,
        dst_port: '0050',
        mask_dst_port: 'ffff',
        src_port: '1234',
        mask_src_port: 'ffff',
      },
      {
        type: 0x141,
        size: 16,
        dst_port: '12b7',
        mask_dst_port: 'ffff',
        src_port: '0000',
        mask_src_port: '0000',
      },
      { type: 0x50, size: 16, tunnel_id: '00abcdef', mask_tunnel_id: 'ffffffff' },
      {
        type: 0x51,
        size: 24,
        c_ks_res0_ver: '2000',
        mask_c_ks_res0_ver: 'ffff',
        protocol: '6558',
        mask_protocol: 'ffff',
        key: '11223344',
        mask_key: 'ffffffff',
      },
      { type: 0x60, size: 16, label: '55667788', mask_label: 'ffffffff' },
      { type: 0x1000, size: 12, tag_id: 0x123456 },
      { type: 0x1003, size: 16, counters },
      { type: 0x1002, size: 16, action: expect.any(Number) as number },
      { type: 0x1001, size: 8 },
    ]);
    expect(sniffer).toMatchObject({ type: 3, num_of_specs: 0, specs: [], priority: 0, flags: 0, rest: 0 });
    expect(named(calls, 'attach_counters_point_flow')).toMatchObject([
      { counters, counter_desc: 0, index: 0, comp_mask: 0 },
      { counters, counter_desc: 1, index: 1, flow: expect.any(Number) as number },
    ]);
    expect(named(calls, 'attach_counters_point_flow')[0]).not.toHaveProperty('flow');
    expect(named(calls, 'read_counters')).toMatchObject([
      { ncounters: 3, flags: 0 },
      { ncounters: 1, flags: 1 },
    ]);
    expect(result).toMatchObject({
      values: ['4294967296', '8589934593', '12884901890', '4294967296'],
      busy: expect.stringContaining('flow still hangs on it') as string,
      closed: true,
    });
    const order = calls.map(({ call }) => call);
    expect(order.indexOf('destroy_flow')).toBeLessThan(order.indexOf('destroy_counters'));
    expect(order.indexOf('destroy_flow')).toBeLessThan(order.indexOf('destroy_flow_action'));
  });

  it('has actions for IPsec', () => {
    const { calls } = record(({ openDevice }) => {
      const context = openDevice('recorder0');
      const aes = Uint8Array.from({ length: 16 }, (_, i) => i + 1);
      const action = context.createFlowActionEsp({
        spi: 0x01020304,
        seq: 5,
        tfcPad: 6,
        encrypt: true,
        transport: true,
        fullOffload: true,
        esnNewWindow: true,
        esn: 0x0a0b0c0d,
        hardLimitPackets: 0x1122334455667788n,
        key: { aes, salt: 0x99aabbcc, iv: 0xfedcba9876543210n, icvLength: 8 },
        replayWindow: 64,
      });
      action.modify({ esn: 1 });
    });
    const [made] = named(calls, 'create_flow_action_esp');
    expect(made).toEqual({
      call: 'create_flow_action_esp',
      spi: 0x01020304,
      seq: 5,
      tfc_pad: 6,
      flags: 15,
      hard_limit_pkts: String(0x1122334455667788n),
      keymat_proto: 0,
      keymat_len: 56,
      iv: String(0xfedcba9876543210n),
      iv_algo: 0,
      salt: 0x99aabbcc,
      icv_len: 8,
      key_len: 16,
      aes_key: '0102030405060708090a0b0c0d0e0f10' + '00'.repeat(16),
      replay_proto: 1,
      replay_len: 4,
      replay_size: 64,
      has_encap: 0,
      comp_mask: 1,
      esn: 0x0a0b0c0d,
    });
    expect(named(calls, 'modify_flow_action_esp')).toMatchObject([
      { spi: 0, flags: 0, keymat_len: 0, replay_proto: 0, replay_len: 0, comp_mask: 1, esn: 1 },
    ]);
  });
});
