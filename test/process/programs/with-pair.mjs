// Two connected ends, also with work in flight: what the programs beside this one start from.
import { openDevice, Access } from '../../../dist/index.js';

export async function connectedPair() {
  const access = Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE;
  const end = (name) => {
    const context = openDevice(name);
    const pd = context.allocPd();
    const cq = context.createCq();
    const mr = pd.regMrSync(1 << 20, { access });
    const qp = pd.createQp({ type: 'rc', cq });
    return { context, pd, cq, mr, qp };
  };
  const a = end(process.env.NODE_RDMA_RXE_DEVICE_A);
  const b = end(process.env.NODE_RDMA_RXE_DEVICE_B);
  const [endpointA, endpointB] = [a.qp.endpoint(), b.qp.endpoint()];
  await a.qp.connect(endpointB, { rnrRetry: 7 });
  await b.qp.connect(endpointA);
  return { a, b };
}

export async function pairInFlight() {
  const { a, b } = await connectedPair();
  // READs that take a while, and a SEND that nobody receives.
  a.qp.postSend(
    Array.from({ length: 8 }, (_, i) => ({
      wrId: i,
      opcode: 'rdmaRead',
      sge: { mr: a.mr },
      remote: b.mr.remote(),
    })),
  );
  a.qp.postSend({ wrId: 99, opcode: 'send', sge: { mr: a.mr, length: 100 } });
  return { a, b };
}
