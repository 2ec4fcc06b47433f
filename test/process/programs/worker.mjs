// A worker that has work in flight, a window that is bound and a member of a multicast group, tells so, and waits to be
// terminated, or ends by itself.
import { parentPort, workerData } from 'node:worker_threads';
import { Access } from '../../../dist/index.js';
import { pairInFlight } from './with-pair.mjs';

const pair = await pairInFlight();
const { pd, cq, qp } = pair.b;
const mw = pd.allocMw(2);
qp.bindMw(mw, { mr: pd.regMrSync(4096, { access: Access.MW_BIND | Access.REMOTE_READ }) });
await cq.wait({ timeoutMs: 20_000 });
const member = pd.createQp({ type: 'ud', cq });
await member.start();
member.attachMcast('ff0e::1234');
parentPort.postMessage({ qpNum: pair.a.qp.qpNum });
if (workerData === 'wait') setInterval(() => pair.a.cq.poll(), 5);
