// A worker that has work in flight, tells so, and waits to be terminated, or ends by itself.
import { parentPort, workerData } from 'node:worker_threads';
import { pairInFlight } from './with-pair.mjs';

const pair = await pairInFlight();
parentPort.postMessage({ qpNum: pair.a.qp.qpNum });
if (workerData === 'wait') setInterval(() => pair.a.cq.poll(), 5);
