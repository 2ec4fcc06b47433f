// An echo server, and a client that sends it messages, many at a time.
//   node echo.mjs serve ADDRESS [PORT]
//   node echo.mjs ADDRESS PORT MESSAGE...
// ADDRESS is the server's, of an interface with an RDMA device.
import { connect, createServer } from 'node-rdma/net';

const [first, ...rest] = process.argv.slice(2);
if (rest.length === 0) throw new Error('usage: node echo.mjs serve ADDRESS [PORT] | ADDRESS PORT MESSAGE...');

async function serve(host, port = 7471) {
  const server = createServer(async (connection) => {
    const peer = `${connection.remoteAddress}:${connection.remotePort}`;
    connection.on('error', ({ message }) => console.error(`${peer}: ${message}`));
    // When the client ends, so does this end of the connection.
    for await (const message of connection) await connection.send(message);
    console.log(`${peer} has ended`);
  });
  await server.listen({ host, port: Number(port) });
  console.log(`listening on ${server.address().address}:${server.address().port}`);
}

async function send(host, port, messages) {
  // Where one machine has both ends of a wire, it must be said which one to start from.
  const localAddress = process.env.NODE_RDMA_RXE_ADDRESS_A;
  const connection = await connect({ host, port: Number(port), localAddress });
  const sending = Promise.all(messages.map((message) => connection.send(message)));
  for (const _ of messages) console.log(String(await connection.receive({ timeoutMs: 10_000 })));
  await sending;
  await connection.end();
}

if (first === 'serve') await serve(...rest);
else await send(first, rest[0], rest.slice(1));
