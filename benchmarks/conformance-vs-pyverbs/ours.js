// @ts-check
// Our side: the capabilities of theirs.py by the same names, each a promise that rejects where it cannot.
import assert from 'node:assert/strict';
import { Access, createEventChannel, GRH_BYTES, openDevice } from '../../dist/index.js';

/** @typedef {import('../../dist/index.js').QueuePairOptions} QueuePairOptions */
/** @typedef {import('../../dist/index.js').SendRequest} SendRequest */

const devices = [process.env.NODE_RDMA_RXE_DEVICE_A, process.env.NODE_RDMA_RXE_DEVICE_B];
const addresses = [process.env.NODE_RDMA_RXE_ADDRESS_A ?? '', process.env.NODE_RDMA_RXE_ADDRESS_B ?? ''];
const access =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC | Access.MW_BIND;
const inTime = { timeoutMs: 10_000 };

/**
 * @param {0 | 1} which
 * @param {Partial<QueuePairOptions> & { extended?: boolean }} [options]
 */
function end(which, { extended = false, ...options } = {}) {
  const context = openDevice(devices[which]);
  const pd = context.allocPd();
  const cq = extended ? context.createCqEx({ cqe: 256 }) : context.createCq();
  return {
    context,
    pd,
    cq,
    mr: pd.regMrSync(4096, { access }),
    qp: pd.createQp({ type: 'rc', cq, ...options }),
  };
}
/** @typedef {ReturnType<typeof end>} End */

/**
 * @param {Parameters<typeof end>[1]} [ofA]
 * @param {Parameters<typeof end>[1]} [ofB]
 */
async function pair(ofA, ofB) {
  const [a, b] = [end(0, ofA), end(1, ofB)];
  if (a.qp.type === 'ud') await Promise.all([a.qp.start(), b.qp.start()]);
  else {
    const [toA, toB] = [a.qp.endpoint(), b.qp.endpoint()];
    await a.qp.connect(toB);
    await b.qp.connect(toA);
  }
  return { a, b };
}

/** @param {End} one */
async function done({ cq }) {
  await cq.wait(inTime);
  const [completion, ...more] = cq.poll();
  assert.deepEqual(more, []);
  if (completion?.error) throw completion.error;
  return completion;
}

/** @param {'rc' | 'uc' | 'ud'} type */
async function message(type) {
  const { a, b } = await pair({ type }, { type });
  a.mr.buffer.fill('m', 0, 64);
  b.qp.postRecv({ sge: { mr: b.mr, length: 200 } });
  const { gid, qpNum, qkey } = b.qp.endpoint();
  a.qp.postSend({
    opcode: 'send',
    sge: { mr: a.mr, length: 64 },
    ...(type === 'ud' && {
      ud: { ah: await a.pd.createAh({ dgid: gid }), remoteQpn: qpNum, remoteQkey: qkey ?? 0 },
    }),
  });
  await done(a);
  await done(b);
  const at = type === 'ud' ? GRH_BYTES : 0;
  assert.equal(b.mr.buffer.toString('latin1', at, at + 64), 'm'.repeat(64));
}

/** @param {'rdmaWrite' | 'rdmaRead'} opcode */
async function oneSided(opcode) {
  const { a, b } = await pair();
  const [source, sink] = opcode === 'rdmaWrite' ? [a, b] : [b, a];
  source.mr.buffer.fill('o', 0, 64);
  a.qp.postSend({ opcode, sge: { mr: a.mr, length: 64 }, remote: b.mr.remote() });
  await done(a);
  assert.equal(sink.mr.buffer.toString('latin1', 0, 64), 'o'.repeat(64));
}

/** @param {Pick<SendRequest, 'opcode' | 'compareAdd' | 'swap'>} request of which 5 is the result */
async function atomic(request) {
  const { a, b } = await pair();
  a.qp.postSend({ ...request, sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
  await done(a);
  assert.equal(b.mr.buffer.readBigUInt64LE(), 5n);
}

/** @param {1 | 2} type */
async function windowOf(type) {
  const { a, b } = await pair();
  const mw = b.pd.allocMw(type);
  b.qp.bindMw(mw, { mr: b.mr });
  await done(b);
  a.mr.buffer.fill('w', 0, 64);
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 64 }, remote: mw.remote() });
  await done(a);
  assert.equal(b.mr.buffer.toString('latin1', 0, 64), 'w'.repeat(64));
}

async function connection() {
  const channel = createEventChannel();
  const [listener, client] = [channel.createId('tcp'), channel.createId('tcp')];
  listener.bindAddr(/** @type {string} */ (addresses[1]));
  listener.listen();
  await client.resolve(/** @type {string} */ (addresses[1]), listener.localAddress?.port ?? 0, {
    source: /** @type {string} */ (addresses[0]),
  });
  client.createQp();
  const connecting = client.connect();
  const server = await listener.getRequest(inTime);
  server.createQp();
  const sink = await server.regMsgs(64);
  server.postRecv({ sge: { mr: sink } });
  await Promise.all([connecting, server.accept()]);
  const source = await client.regMsgs(64);
  source.buffer.write('hello');
  client.postSend({ opcode: 'send', sge: { mr: source } });
  assert.equal((await server.getRecvComp(inTime)).status, 'success');
  assert.equal(sink.buffer.toString('latin1', 0, 5), 'hello');
  channel.close({ cascade: true });
}

/** @type {Record<string, () => Promise<unknown>>} */
export const ours = {
  'connection manager: connect, send': connection,
  'device, port, P_Key and GID queries': async () => {
    const { context } = end(0);
    assert.ok(context.queryDevice().maxQp > 0);
    assert.equal(context.queryPort().state, 'active');
    assert.equal(context.queryPkey(), 0xffff);
    assert.equal(context.queryGid(0), context.queryGidEntry(0).gid);
  },
  'messages of RC': () => message('rc'),
  'messages of UC': () => message('uc'),
  'datagrams, address handles': () => message('ud'),
  WRITE: () => oneSided('rdmaWrite'),
  READ: () => oneSided('rdmaRead'),
  'compare-and-swap': () => atomic({ opcode: 'atomicCmpAndSwp', compareAdd: 0, swap: 5 }),
  'fetch-and-add': () => atomic({ opcode: 'atomicFetchAndAdd', compareAdd: 5 }),
  'extended posting: WRITE': async () => {
    const { a, b } = await pair({ sendOps: ['rdmaWrite'] });
    a.mr.buffer.fill('e', 0, 64);
    a.qp.postSendEx({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 64 }, remote: b.mr.remote() });
    await done(a);
    assert.equal(b.mr.buffer.toString('latin1', 0, 64), 'e'.repeat(64));
  },
  'extended posting: atomic write': async () => {
    const { a, b } = await pair({ sendOps: ['atomicWrite'] });
    a.qp.postSendEx({ opcode: 'atomicWrite', value: 0x3837363534333231n, remote: b.mr.remote() });
    await done(a);
    assert.equal(b.mr.buffer.toString('latin1', 0, 8), '12345678');
  },
  'memory windows of type 1': () => windowOf(1),
  'memory windows of type 2': () => windowOf(2),
  'completion events': async () => {
    const { a, b } = await pair();
    b.qp.postRecv({ sge: { mr: b.mr } });
    const woken = b.cq.wait({ ...inTime, spinMicroseconds: 0 });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 64 } });
    await woken;
    await done(b);
  },
  'extended completion queues': async () => {
    const { a, b } = await pair({}, { extended: true });
    b.qp.postRecv({ sge: { mr: b.mr } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 33 } });
    assert.equal((await done(b))?.byteLen, 33);
  },
  'resizing a completion queue': async () => {
    const cq = openDevice(devices[0]).createCq({ cqe: 8 });
    await cq.resize(100);
    assert.ok(cq.cqe >= 100);
  },
  'shared receive queues': async () => {
    const [a, b] = [end(0), end(1)];
    const srq = b.pd.createSrq({ maxWr: 16 });
    const qp = b.pd.createQp({ type: 'rc', cq: b.cq, srq });
    const [toA, toB] = [a.qp.endpoint(), qp.endpoint()];
    await a.qp.connect(toB);
    await qp.connect(toA);
    a.mr.buffer.fill('s', 0, 64);
    srq.postRecv({ sge: { mr: b.mr } });
    a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 64 } });
    await done(b);
    assert.equal(b.mr.buffer.toString('latin1', 0, 64), 's'.repeat(64));
  },
  'resizing a shared receive queue': async () => {
    const srq = end(0).pd.createSrq({ maxWr: 16 });
    await srq.resize(64);
    assert.ok(srq.query().maxWr >= 64);
  },
  'relaxed ordering': async () => end(0).pd.regMrSync(64, { access: access | Access.RELAXED_ORDERING }),
  'registering a region anew': () => end(0).mr.rereg({ access: Access.LOCAL_WRITE }),
  'paging on demand': () => end(0).pd.regMr(4096, { access: Access.LOCAL_WRITE | Access.ON_DEMAND }),
  'advice about a region': () => {
    const { pd, mr } = end(0);
    return pd.adviseMr({ mr }, { advice: 'prefetch', flush: true });
  },
  'device memory': async () => end(0).context.allocDm({ length: 4096 }),
  'XRC domains': async () => end(0).context.openXrcd(),
  'raw packets': async () => end(0, { type: 'rawPacket' }),
  'flow steering': async () => end(0).qp.createFlow({}),
  'work queues (RSS)': async () => {
    const { pd, cq } = end(0);
    return pd.createWq({ cq });
  },
  'parent domains': async () => end(0).pd.allocParentDomain(),
};
