// A worker that waits for completions, with none coming or with no end of them, until it is terminated.
import { parentPort, workerData } from 'node:worker_threads';
import { connectedPair } from './with-pair.mjs';

const { a, b } = await connectedPair();
a.context.events.on('event', () => {});
const write = () =>
  a.qp.postSend({ opcode: 'rdmaWrite', sge: { mr: a.mr, length: 8 }, remote: b.mr.remote() });
if (workerData === 'flooded') write();
setTimeout(() => parentPort.postMessage('waiting'), 50);
for await (const batch of a.cq.completions({ spinMicroseconds: 0 })) for (const _ of batch) write();
