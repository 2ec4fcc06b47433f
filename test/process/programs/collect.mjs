// Forgets whole trees of objects, and has the garbage collector find them.
import { openDevice } from '../../../dist/index.js';

const warnings = [];
process.on('warning', (warning) => warnings.push(warning));

async function collect() {
  for (let i = 0; i < 10; ++i) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function forget() {
  const context = openDevice(process.env.NODE_RDMA_RXE_DEVICE_A);
  const pd = context.allocPd();
  const cq = context.createCq();
  const mr = pd.regMrSync(1 << 16);
  const qp = pd.createQp({ type: 'rc', cq });
  await qp.init();
  qp.postRecv({ sge: { mr, length: 100 } });
}

for (let i = 0; i < 5; ++i) await forget();
await collect();
const kinds = warnings
  .filter((warning) => warning.code === 'RDMA_LEAK')
  .map((warning) => /A (\w+) was/.exec(warning.message)[1]);
process.stdout.write(JSON.stringify(kinds.sort()) + '\n');

// Who keeps only the bytes keeps the region.
const buffer = openDevice(process.env.NODE_RDMA_RXE_DEVICE_A).allocPd().regMrSync(4096).buffer;
await collect();
process.stdout.write(`${buffer.length}\n`);
