// HTTP over RDMA: Node's own server and client, on a connection as a stream.
//   node http.mjs serve ADDRESS [PORT]
//   node http.mjs ADDRESS PORT PATH...
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { connect, createServer } from 'node-rdma/net';

const [first, ...rest] = process.argv.slice(2);
if (rest.length === 0) throw new Error('usage: node http.mjs serve ADDRESS [PORT] | ADDRESS PORT PATH...');

if (first === 'serve') {
  const website = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/plain');
    response.end(`${request.method} ${request.url} from ${request.socket.remoteAddress}\n`);
  });
  const server = createServer((connection) => void website.emit('connection', connection.toDuplex()));
  const [host, port = 7471] = rest;
  await server.listen({ host, port: Number(port) });
  console.log(`listening on ${host}:${server.address().port}`);
} else {
  const [port, ...paths] = rest;
  const localAddress = process.env.NODE_RDMA_RXE_ADDRESS_A;
  const connection = await connect({ host: first, port: Number(port), localAddress });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => connection.toDuplex();
  for (const path of paths) {
    const response = await new Promise((resolve, reject) => {
      http.get({ agent, host: first, path }, resolve).on('error', reject);
    });
    process.stdout.write(`${response.statusCode} ${await text(response)}`);
  }
  agent.destroy();
}
