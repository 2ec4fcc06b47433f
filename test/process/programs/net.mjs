// What connections of node-rdma/net do to the life of a process, and the end of a process to its peer.
import { once } from 'node:events';
import { connect, createServer, createSocket } from '../../../dist/net/index.js';

const [localAddress, host] = [process.env.NODE_RDMA_RXE_ADDRESS_A, process.env.NODE_RDMA_RXE_ADDRESS_B];

async function pair() {
  const server = createServer();
  await server.listen({ host });
  const accepted = once(server, 'connection');
  const client = await connect({ host, port: server.address().port, localAddress });
  const [peer] = await accepted;
  return { server, client, peer };
}

const ways = {
  /** All that was told not to keep the process alive does not. */
  async unref() {
    const { server, client, peer } = await pair();
    const socket = createSocket().unref();
    await socket.bind({ host: localAddress });
    void client.receive();
    for (const each of [server, client, peer]) each.unref();
    process.stdout.write('connected\n');
  },
  /** It ends by itself when all is over. */
  async over() {
    const { server, client, peer } = await pair();
    void server.close();
    void peer.receive();
    await client.end('bye');
    for await (const _ of peer);
    process.stdout.write('over\n');
  },
  async exit() {
    const { client } = await pair();
    for (let i = 0; i < 100; ++i) void client.send(Buffer.alloc(100_000));
    process.stdout.write('sending\n');
    process.exit(0);
  },
  /** Nobody listens to an error: the process ends with it. */
  async uncaught() {
    const { client, peer } = await pair();
    peer.on('error', () => undefined);
    client.destroy(new Error('nobody takes this'));
  },
  /** Serves one connection, sends and receives without end, and tells what became of it. */
  async serve() {
    const server = createServer();
    await server.listen({ host });
    process.stdout.write(`${server.address().port}\n`);
    const [connection] = await once(server, 'connection');
    void server.close();
    const sent = (async () => {
      for (;;) await connection.send(Buffer.alloc(500_000));
    })();
    const came = (async () => {
      for await (const _ of connection);
    })();
    const outcomes = await Promise.allSettled([sent, came]);
    process.stdout.write(`${outcomes.map(({ reason }) => reason?.code).join(' ')}\n`);
  },
  /** Connects to a port, takes one message, tells so, and stays. */
  async stay() {
    const client = await connect({ host, port: Number(process.argv[3]), localAddress });
    await client.send('hello');
    await client.receive();
    process.stdout.write('connected\n');
    await once(client, 'close');
  },
};

await ways[process.argv[2]]();
