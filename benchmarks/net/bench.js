// @ts-check
// One measurement of node-rdma/net, or of a ring, with both ends in this process: seconds for all messages.
import { once } from 'node:events';
import { CompletionRing, openDevice, ReceiveRing, SendRing } from '../../dist/index.js';
import { connect, createServer } from '../../dist/net/index.js';

const { NODE_RDMA_RXE_DEVICE_A: deviceA, NODE_RDMA_RXE_DEVICE_B: deviceB } = process.env;
const { NODE_RDMA_RXE_ADDRESS_A: addressA, NODE_RDMA_RXE_ADDRESS_B: addressB = addressA } = process.env;

/** @typedef {import('../../dist/net/index.js').Connection} Connection */
/** @typedef {Pick<import('./plan.js').Measure, 'bytes' | 'messages' | 'window'>} Work */

/** A connection over the wire: the client sends. */
export async function openPair() {
  const server = createServer();
  await server.listen({ host: /** @type {string} */ (addressB) });
  const accepted = once(server, 'connection');
  const { port } = /** @type {{ port: number }} */ (server.address());
  const client = await connect({
    host: /** @type {string} */ (addressB),
    port,
    ...(addressA && { localAddress: addressA }),
  });
  const [peer] = /** @type {[Connection]} */ (await accepted);
  const close = async () => {
    client.destroy();
    await server[Symbol.asyncDispose]();
  };
  return { client, peer, close };
}

/** @param {AsyncIterable<Buffer>} from @param {number} expected */
async function take(from, expected) {
  let bytes = 0;
  for await (const piece of from) bytes += piece.length;
  if (bytes !== expected) throw new Error(`${bytes} of ${expected} bytes came`);
}

/** @type {Record<'send' | 'awaited' | 'alloc' | 'duplex', (client: Connection, work: Work) => Promise<void>>} */
const senders = {
  async send(client, { bytes, messages }) {
    const data = Buffer.alloc(bytes, 1);
    for (let i = 0; i < messages; ++i) {
      const sent = client.send(data);
      if (client.writableNeedDrain) await sent;
    }
    await client.end();
  },
  async awaited(client, { bytes, messages }) {
    const data = Buffer.alloc(bytes, 1);
    for (let i = 0; i < messages; ++i) await client.send(data);
    await client.end();
  },
  async alloc(client, { bytes, messages, window }) {
    const memory = await client.alloc(bytes * window);
    const sent = Array.from({ length: window }, () => Promise.resolve());
    for (let i = 0; i < messages; ++i) {
      await sent[i % window];
      sent[i % window] = client.send(memory.slice((i % window) * bytes, bytes));
    }
    await client.end();
  },
  async duplex(client, { bytes, messages }) {
    const stream = client.toDuplex();
    const data = Buffer.alloc(bytes, 1);
    for (let i = 0; i < messages; ++i) if (!stream.write(data)) await once(stream, 'drain');
    stream.end();
    await once(stream, 'finish');
  },
};

/**
 * @param {keyof typeof senders} who
 * @param {Work} work
 */
export async function measureNet(who, work) {
  const { client, peer, close } = await openPair();
  const began = performance.now();
  await Promise.all([
    take(who === 'duplex' ? peer.toDuplex() : peer, work.bytes * work.messages),
    senders[who](client, work),
  ]);
  const seconds = (performance.now() - began) / 1000;
  await close();
  return seconds;
}

/** A ring as fast as it goes: as many under way as the window has, both ends polled in turn. @param {Work} work */
export async function measureRing({ bytes, messages, window }) {
  const end = (/** @type {string | undefined} */ name) => {
    const context = openDevice(name);
    const pd = context.allocPd();
    const cq = context.createCq({ cqe: 2 * window });
    const qp = pd.createQp({ type: 'rc', cq, maxSendWr: window, maxRecvWr: window });
    return { context, cq: new CompletionRing(cq), mr: pd.regMrSync(bytes * window), qp };
  };
  const [a, b] = [end(deviceA), end(deviceB ?? deviceA)];
  const [toA, toB] = [a.qp.endpoint(), b.qp.endpoint()];
  await Promise.all([a.qp.connect(toB), b.qp.connect(toA)]);
  const [sends, receives] = [new SendRing(a.qp), new ReceiveRing(b.qp)];
  for (let i = 0; i < window; ++i) receives.receive(i, b.mr, i * bytes, bytes);
  receives.post();
  let [posted, sent, came] = [0, 0, 0];
  const began = performance.now();
  while (came < messages || sent < messages) {
    while (posted < messages && posted - Math.min(sent, came) < window) {
      sends.send(0, a.mr, (posted++ % window) * bytes, bytes);
    }
    sends.post();
    sent += a.cq.poll();
    const count = b.cq.poll();
    for (let i = 0; i < count; ++i) receives.receive(b.cq.id(i), b.mr, b.cq.id(i) * bytes, bytes);
    receives.post();
    came += count;
  }
  const seconds = (performance.now() - began) / 1000;
  for (const { context } of [a, b]) context.close({ cascade: true });
  return seconds;
}
