import { openDevice } from 'node-rdma';

async function openEnd(deviceName) {
  const context = openDevice(deviceName); // without a name: the first device
  const pd = context.allocPd();
  const cq = context.createCq();
  return { context, cq, memory: await pd.regMr(4096), qp: pd.createQp({ type: 'rc', cq }) };
}

async function completion({ cq }) {
  await cq.wait(); // asleep until one comes
  const [done] = cq.poll(1);
  if (done.error) throw done.error;
  return done;
}

const alice = await openEnd(process.env.NODE_RDMA_RXE_DEVICE_A);
const bob = await openEnd(process.env.NODE_RDMA_RXE_DEVICE_B);
const [toBob, toAlice] = [bob.qp.endpoint(), alice.qp.endpoint()]; // plain data: between hosts, send it as JSON
await bob.qp.connect(toAlice);
await alice.qp.connect(toBob);

bob.qp.postRecv({ sge: { mr: bob.memory } });
const length = alice.memory.buffer.write('Hello from Node.js over RDMA');
alice.qp.postSend({ opcode: 'send', sge: { mr: alice.memory, length } });

await completion(alice); // acknowledged; or an error, after seven tries
const { byteLen } = await completion(bob);
console.log(bob.memory.buffer.toString('utf8', 0, byteLen));
for (const { context } of [alice, bob]) context.close({ cascade: true });
