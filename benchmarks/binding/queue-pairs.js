// @ts-check
// queue-pairs.js COUNT, with --expose-gc: prints what each of so many queue pairs takes, in bytes: on the JavaScript heap, and of the
// process's memory in all. The queues are as bench.js in ../rxe makes them for many queue pairs: 16 sends, 1 receive.
import { openDevice } from '../../dist/index.js';

const count = Number(process.argv[2]);
const context = openDevice('null0');
const pd = context.allocPd();
const cq = context.createCq({ cqe: 17 * count + 64, channel: null });
const make = () => pd.createQp({ type: 'rc', cq, maxSendWr: 16, maxRecvWr: 1 });

function measure() {
  globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  return { heap: heapUsed, all: rss };
}

const first = Array.from({ length: 64 }, make); // what is made once
const before = measure();
const queuePairs = Array.from({ length: count }, make);
const after = measure();
console.log(
  JSON.stringify({
    heap: Math.round((after.heap - before.heap) / count),
    all: Math.round((after.all - before.all) / count),
  }),
);
if (first.length + queuePairs.length !== count + 64) throw new Error('a queue pair was not made');
context.close({ cascade: true });
