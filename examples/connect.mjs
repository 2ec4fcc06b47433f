// A connection by the connection manager: who listens needs no more than an address and a port, as with sockets.
// Both ends in one process; between two hosts, run one half on each.
import { createEventChannel } from 'node-rdma';

const [address = process.env.NODE_RDMA_RXE_ADDRESS_B, source = process.env.NODE_RDMA_RXE_ADDRESS_A] =
  process.argv.slice(2);
if (address === undefined)
  throw new Error('usage: node connect.mjs ADDRESS [OWN_ADDRESS], of interfaces with an RDMA device');

const channel = createEventChannel();
const listener = channel.createId();
listener.bindAddr(address); // port 0: any that is free
listener.listen();

async function serve() {
  const id = await listener.getRequest();
  console.log(`asked: ${id.request.data}`);
  id.createQp();
  const memory = await id.regMsgs(4096);
  id.postRecv({ sge: { mr: memory } }); // before it accepts, so that no message finds none
  await id.accept({ data: Buffer.from('welcome') });
  const { byteLen } = await id.getRecvComp();
  console.log(`received: ${memory.buffer.toString('utf8', 0, byteLen)}`);
  await id.disconnected();
}
const serving = serve();

const id = channel.createId();
await id.resolveAddr(address, listener.localAddress.port, source && { source });
await id.resolveRoute();
id.createQp();
const memory = await id.regMsgs(4096);
const accepted = await id.connect({ data: Buffer.from('may I?'), timeoutMs: 5000 });
console.log(`accepted: ${accepted.data}`);

const length = memory.buffer.write('Hello over rdma_cm');
id.postSend({ opcode: 'send', sge: { mr: memory, length } });
const { error } = await id.getSendComp();
if (error) throw error;
await id.disconnect();
await serving;
channel.close({ cascade: true });
