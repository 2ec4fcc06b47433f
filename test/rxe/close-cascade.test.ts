import { expect, it } from 'vitest';
import { device } from '../support/device.js';

it.each(['completion queue first', 'protection domain first'])(
  'closing a context closes memory that a receive holds: %s',
  async (order) => {
    const context = device();
    const older = order === 'completion queue first' ? context.createCq() : undefined;
    const pd = context.allocPd();
    const cq = older ?? context.createCq();
    const qp = pd.createQp({ type: 'rc', cq });
    const mr = pd.regMrSync(4096);
    await qp.init();
    qp.postRecv({ sge: { mr } });
    expect(() => mr.close()).toThrow(expect.objectContaining({ code: 'ERR_RDMA_BUSY' }) as Error);
    context.close({ cascade: true });
    expect([context, pd, cq, qp, mr].map((object) => object.closed)).toEqual(Array(5).fill(true));
  },
);
