// @ts-check
// The data path through node-rdma, as loop.c has it, with a queue pair that is connected to itself.
import { Access, CompletionRing, openDevice, SendRing } from '../../dist/index.js';

const batchSize = 32;
const length = 64;
const memory = 1 << 16;

export const context = openDevice('null0');
export const pd = context.allocPd();
const cq = context.createCq({ cqe: 256, channel: null });
const mr = pd.regMrSync(memory, { access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });
const qp = pd.createQp({ type: 'rc', cq });
await qp.connect(qp.endpoint());
const remote = mr.remote();
const sends = new SendRing(qp);
const completions = new CompletionRing(cq);

/** @param {number} id */
function write(id) {
  const at = id % (memory - length);
  sends.rdmaWrite(id, mr, at, length, remote, at);
}

/** @param {number} count */
function poll(count) {
  for (let taken = 0; taken < count;) {
    const some = completions.poll();
    for (let i = 0; i < some; ++i) if (completions.status(i) !== 0) throw completions.completion(i).error;
    taken += some;
  }
}

/** @type {Record<string, (operations: number) => void>} */
export const paths = {
  batch(operations) {
    for (let done = 0; done < operations; done += batchSize) {
      for (let i = 0; i < batchSize; ++i) write(done + i);
      sends.post();
      poll(batchSize);
    }
  },
  single(operations) {
    for (let i = 0; i < operations; ++i) {
      write(i);
      sends.post();
      poll(1);
    }
  },
  prepared(operations) {
    const request = qp.prepareSend({ opcode: 'rdmaWrite', wrId: 1, sge: { mr, offset: 1, length }, remote });
    for (let i = 0; i < operations; ++i) {
      request.post();
      poll(1);
    }
  },
  objects(operations) {
    for (let i = 0; i < operations; ++i) {
      qp.postSend({
        opcode: 'rdmaWrite',
        wrId: i,
        sge: { mr, offset: i % (memory - length), length },
        remote,
      });
      for (const { error } of cq.poll()) if (error) throw error;
    }
  },
  empty(operations) {
    for (let i = 0; i < operations; ++i)
      if (completions.poll() !== 0) throw new Error('an empty poll found something');
  },
};
