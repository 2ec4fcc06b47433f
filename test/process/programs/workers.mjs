// Workers with work in flight, terminated or ending by themselves, one after the other and two at once.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { listDevices } from '../../../dist/index.js';

const file = new URL('worker.mjs', import.meta.url);
const [rounds] = process.argv.slice(2).map(Number);

async function life(way) {
  const worker = new Worker(file, { workerData: way });
  const [message] = await once(worker, 'message');
  if (!(message.qpNum > 0)) throw new Error('the worker has no queue pair');
  if (way === 'wait') await worker.terminate();
  else await once(worker, 'exit');
}

for (let i = 0; i < rounds; ++i) {
  await life('wait');
  await life('end');
  await Promise.all([life('wait'), life('wait')]);
}
if (listDevices().length === 0) throw new Error('the devices are gone');
process.stdout.write('all workers ended\n');
