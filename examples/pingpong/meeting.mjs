// How the ends find each other: over TCP, in the steps of the C programs.
import { once } from 'node:events';
import net from 'node:net';
import { decodeRecord, emptyRecord, encodeRecord, RECORD_BYTES } from './record.mjs';

const DONE = Buffer.from('done\0');

/**
 * Tells the peer of the queue pairs and connects each to the peer's. Client: send, receive, connect, "done". Server: receive,
 * connect, send, wait for "done"; so it is ready before the client knows whom to send to.
 *
 * @param connect brings a queue pair to RTS, given the peer's record
 * @param records how many the program exchanges, whether they are used or not
 */
export async function meet(end, options, connect, records = 1) {
  const { host, tcpPort, port } = options;
  const local = end.qps.map((qp) => qp.endpoint({ port, gid: end.gid }));
  local.forEach((endpoint) => showAddress('local', endpoint));
  // In one piece: the peer reads it with one call.
  const ours = Buffer.concat(
    Array.from({ length: records }, (_, i) => (local[i] ? encodeRecord(local[i]) : emptyRecord)),
  );
  const receiveAndConnect = async (socket) => {
    const theirs = await receive(socket, ours.length);
    for (const [i, qp] of end.qps.entries()) {
      const remote = decodeRecord(theirs.subarray(i * RECORD_BYTES, (i + 1) * RECORD_BYTES));
      showAddress('remote', remote);
      if (remote.gid === '::') throw new Error('the peer gave no GID: on RoCE the C programs need -g INDEX');
      await connect(qp, remote);
    }
  };

  if (host === undefined) {
    const socket = await client(tcpPort);
    await receiveAndConnect(socket);
    socket.write(ours);
    await receive(socket, DONE.length);
    socket.end();
  } else {
    const socket = net.connect({ host, port: tcpPort, noDelay: true });
    await once(socket, 'connect');
    socket.write(ours);
    await receiveAndConnect(socket);
    socket.end(DONE);
  }
}

async function client(tcpPort) {
  const server = net.createServer({ noDelay: true }).listen(tcpPort);
  const [socket] = await once(server, 'connection');
  server.close();
  return socket;
}

async function receive(socket, length) {
  let data = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    data = Buffer.concat([data, chunk]);
    if (data.length >= length) return data;
  }
  throw new Error(`the peer closed the connection after ${data.length} of ${length} bytes`);
}

function showAddress(whose, { lid, qpNum, psn, gid }) {
  const hex = (value, digits) => `0x${value.toString(16).padStart(digits, '0')}`;
  const words = [`LID ${hex(lid, 4)}`, `QPN ${hex(qpNum, 6)}`, `PSN ${hex(psn, 6)}`, `GID ${gid}`];
  console.log(`  ${`${whose} address:`.padEnd(15)} ${words.join(', ')}`);
}
