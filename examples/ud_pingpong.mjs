// Ping-pong with datagrams. The other end may be this program or the C program ibv_ud_pingpong.
import { GRH_BYTES } from 'node-rdma';
import { openEnd } from './pingpong/end.mjs';
import { meet } from './pingpong/meeting.mjs';
import { readOptions } from './pingpong/options.mjs';
import { play } from './pingpong/rounds.mjs';

/** Both ends know it. */
const QKEY = 0x11111111;

const options = readOptions({ size: 1024 });
const end = await openEnd(options, { type: 'ud', header: GRH_BYTES, qkey: QKEY });
const { port, size, sl } = options;
const { activeMtu } = end.context.queryPort(port);
if (size > activeMtu)
  throw new RangeError(`a datagram holds ${activeMtu} bytes here (the active MTU): -s ${size} is too much`);

let target;
await meet(end, options, async (qp, { gid, qpNum }) => {
  await qp.start();
  const ah = await end.pd.createAh({ dgid: gid, gid: end.gid, portNum: port, sl });
  target = { ah, remoteQpn: qpNum, remoteQkey: QKEY };
});
await play(end, options, target);
end.context.close({ cascade: true });
