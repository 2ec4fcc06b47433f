import { openDevice } from 'node-rdma';

/** One end: a device, registered memory, a completion queue and a reliable queue pair. */
async function openEnd(device) {
  const context = openDevice(device);
  const pd = context.allocPd();
  const cq = context.createCq();
  return { context, cq, memory: await pd.regMr(4096), qp: pd.createQp({ type: 'rc', cq }) };
}

async function completion({ cq }) {
  for (;;) {
    const [done] = cq.poll(1);
    if (done?.error) throw done.error;
    if (done) return done;
    await new Promise(setImmediate); // a program of its own would do something else here
  }
}

const alice = await openEnd(process.env.NODE_RDMA_RXE_DEVICE_A); // undefined: the first device
const bob = await openEnd(process.env.NODE_RDMA_RXE_DEVICE_B);
const [aliceEnd, bobEnd] = [alice.qp.endpoint(), bob.qp.endpoint()]; // plain data: send it as JSON between hosts
await bob.qp.connect(aliceEnd);
await alice.qp.connect(bobEnd);

bob.qp.postRecv({ sge: { mr: bob.memory } });
const length = alice.memory.buffer.write('Hello from Node.js over RDMA');
alice.qp.postSend({ opcode: 'send', sge: { mr: alice.memory, length } });

const { byteLen } = await completion(bob);
await completion(alice);
console.log(bob.memory.buffer.toString('utf8', 0, byteLen));

for (const { context } of [alice, bob]) context.close({ cascade: true });
