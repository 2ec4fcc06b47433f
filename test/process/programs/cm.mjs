// What identifiers of the connection manager do to the life of a process.
import { once } from 'node:events';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { createEventChannel } from '../../../dist/index.js';

const [addressA, addressB] = [process.env.NODE_RDMA_RXE_ADDRESS_A, process.env.NODE_RDMA_RXE_ADDRESS_B];

function listener(channel, port = 0) {
  const id = channel.createId('tcp');
  id.bindAddr(addressB, port);
  id.listen();
  return id;
}

async function client(channel, port) {
  const id = channel.createId('tcp');
  await id.resolveAddr(addressB, port, { source: addressA });
  await id.resolveRoute();
  id.createQp();
  return id;
}

async function pair() {
  const channel = createEventChannel();
  const listening = listener(channel);
  const id = await client(channel, listening.localAddress.port);
  const connecting = id.connect();
  const server = await listening.getRequest();
  server.createQp();
  await Promise.all([connecting, server.accept()]);
  listening.close();
  return { id, server };
}

const ways = {
  /** Nothing is awaited: the process ends by itself. */
  async idle() {
    const { id } = await pair();
    id.events.on('disconnected', () => process.stdout.write('must not come\n'));
    process.stdout.write('connected\n');
  },
  /** A listener that was told not to keep the process alive does not. */
  async unref() {
    listener(createEventChannel()).unref();
    process.stdout.write('listening\n');
  },
  async exit() {
    const { server } = await pair();
    void server.disconnected();
    process.stdout.write('waiting\n');
    process.exit(0);
  },
  async exitConnecting() {
    const channel = createEventChannel();
    const { port } = listener(channel).localAddress;
    const id = await client(channel, port);
    void id.connect();
    process.stdout.write('connecting\n');
    process.exit(0);
  },
  async throw() {
    await pair();
    process.stdout.write('connected\n');
    throw new Error('thrown on purpose');
  },
  /** Serves one connection, and tells when its peer is gone. */
  async serve() {
    const listening = listener(createEventChannel());
    process.stdout.write(`${listening.localAddress.port}\n`);
    const id = await listening.getRequest();
    listening.close();
    id.createQp();
    await id.accept();
    await id.disconnected();
    process.stdout.write('the peer is gone\n');
    id.channel.close({ cascade: true });
  },
  /** Connects to a port, tells so, and stays. */
  async stay() {
    const id = await client(createEventChannel(), Number(process.argv[3]));
    await id.connect();
    process.stdout.write('connected\n');
    await id.disconnected();
  },
  /** Workers with identifiers in every state are terminated; the others go on. */
  async terminate() {
    const channel = createEventChannel();
    const listening = listener(channel);
    for (let i = 0; i < 3; ++i) {
      const worker = new Worker(new URL(import.meta.url), {
        argv: ['work', String(listening.localAddress.port)],
      });
      const request = await listening.getRequest();
      request.createQp();
      const [accepted] = await Promise.all([request.accept(), once(worker, 'message')]);
      void accepted;
      const gone = request.disconnected({ timeoutMs: 60_000 });
      await worker.terminate();
      await gone;
      request.close({ cascade: true });
    }
    channel.close({ cascade: true });
    process.stdout.write('all workers ended\n');
  },
  async work() {
    const channel = createEventChannel();
    void listener(channel).getRequest();
    const id = await client(channel, Number(process.argv[3]));
    await id.connect();
    void id.disconnected();
    parentPort.postMessage('connected');
  },
  /** What is forgotten is found. */
  async collect() {
    const warnings = [];
    process.on(
      'warning',
      ({ code, message }) => code === 'RDMA_LEAK' && warnings.push(/A (\w+) was/.exec(message)[1]),
    );
    await (async () => {
      const { id, server } = await pair();
      await id.disconnect();
      void server;
    })();
    for (let i = 0; i < 20; ++i) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    process.stdout.write(`${JSON.stringify(warnings.sort())}\n`);
  },
};

await ways[process.argv[2]](isMainThread);
