// Ping-pong over many reliable connections, which share one queue of receives. The other end may be this program or the C
// program ibv_srq_pingpong.
import { connecting } from './pingpong/connect.mjs';
import { openEnd } from './pingpong/end.mjs';
import { meet } from './pingpong/meeting.mjs';
import { readOptions } from './pingpong/options.mjs';
import { play } from './pingpong/rounds.mjs';

/** The C program tells of so many queue pairs, however few it has. */
const RECORDS = 256;

const options = readOptions({ size: 4096, mtu: 1024, queuePairs: 16 });
const end = await openEnd(options, { type: 'rc', shared: true });
await meet(end, options, connecting(options), RECORDS);
await play(end, options);
end.context.close({ cascade: true });
