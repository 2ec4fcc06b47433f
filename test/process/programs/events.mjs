// Waits for events in the way that the first argument names.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { openDevice } from '../../../dist/index.js';
import { connectedPair } from './with-pair.mjs';

const asleep = { spinMicroseconds: 0 };

/** Has `count` messages arrive, one after the other, from timers that do not keep the process alive. */
function messagesLater({ a, b }, count) {
  b.qp.postRecv(Array.from({ length: count }, () => ({ sge: { mr: b.mr, length: 8 } })));
  for (let i = 1; i <= count; ++i) {
    const send = () => a.qp.postSend({ opcode: 'send', sge: { mr: a.mr, length: 8 } });
    setTimeout(send, 150 * i).unref();
  }
}

const ways = {
  async listen() {
    const context = openDevice(process.env.NODE_RDMA_RXE_DEVICE_A);
    context.events.on('event', () => {});
    context.createCq({ channel: context.createCompletionChannel() }).reqNotify();
    context.createCq().reqNotify();
    process.stdout.write('listening\n');
  },

  async wait() {
    const pair = await connectedPair();
    messagesLater(pair, 1);
    await pair.b.cq.wait(asleep);
    process.stdout.write(`${pair.b.cq.poll()[0].opcode}\n`);
  },

  async iterate() {
    const opcodes = [];
    const iterate = async () => {
      const pair = await connectedPair();
      messagesLater(pair, 3);
      setTimeout(() => globalThis.gc?.(), 50).unref();
      for await (const batch of pair.b.cq.completions(asleep)) {
        opcodes.push(...batch.map((one) => one.opcode));
        if (opcodes.length === 3) break;
      }
    };
    await iterate();
    process.stdout.write(`${opcodes.join(' ')}\n`);
  },

  async ref() {
    const { events } = openDevice(process.env.NODE_RDMA_RXE_DEVICE_A);
    events.ref();
    const netdev = process.env.NODE_RDMA_RXE_NETDEV_A;
    setTimeout(() => execFileSync('ip', ['addr', 'add', '10.77.9.9/32', 'dev', netdev]), 150).unref();
    const [event] = await once(events, 'gidChange');
    execFileSync('ip', ['addr', 'del', '10.77.9.9/32', 'dev', netdev]);
    events.unref();
    process.stdout.write(`${event.type}\n`);
  },

  async exit() {
    const { b } = await connectedPair();
    void b.cq.wait();
    setTimeout(() => {
      process.stdout.write('waiting\n');
      process.exit(0);
    }, 50);
  },

  async terminate() {
    for (const way of ['asleep', 'flooded', 'asleep', 'flooded']) {
      const worker = new Worker(new URL('waiting-worker.mjs', import.meta.url), { workerData: way });
      await once(worker, 'message');
      await worker.terminate();
    }
    process.stdout.write('all workers ended\n');
  },
};

await ways[process.argv[2]]();
