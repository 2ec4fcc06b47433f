// Publish and subscribe: one datagram reaches all that have joined the group.
//   node publish-subscribe.mjs subscribe OWN_ADDRESS GROUP PORT [COUNT]
//   node publish-subscribe.mjs publish OWN_ADDRESS GROUP PORT MESSAGE...
// GROUP is a multicast address, 239.1.2.3 for example; OWN_ADDRESS one of an interface with an RDMA device.
import { createSocket } from 'node-rdma/net';

const [role, own, group, port, ...rest] = process.argv.slice(2);
if (port === undefined)
  throw new Error(
    'usage: node publish-subscribe.mjs subscribe|publish OWN_ADDRESS GROUP PORT [COUNT | MESSAGE...]',
  );

const socket = createSocket();
if (role === 'subscribe') {
  let left = Number(rest[0] ?? Infinity);
  socket.on('message', (data, { address }) => {
    console.log(`${address}: ${data}`);
    if (--left === 0) void socket.close();
  });
  await socket.bind({ host: own, port: Number(port) });
  await socket.addMembership(group);
  console.log(`subscribed to ${group}:${port}`);
} else {
  await socket.bind({ host: own });
  for (const message of rest) await socket.send(message, { host: group, port: Number(port) });
  await socket.close();
}
