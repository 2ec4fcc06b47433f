// Ping-pong over a reliable connection. The other end may be this program or the C program ibv_rc_pingpong.
import { connecting } from './pingpong/connect.mjs';
import { openEnd } from './pingpong/end.mjs';
import { meet } from './pingpong/meeting.mjs';
import { readOptions } from './pingpong/options.mjs';
import { play } from './pingpong/rounds.mjs';

const options = readOptions({ size: 4096, mtu: 1024 });
const end = await openEnd(options, { type: 'rc' });
await meet(end, options, connecting(options));
await play(end, options);
end.context.close({ cascade: true });
