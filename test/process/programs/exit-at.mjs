// Ends the process at the stage that the first argument names, in the way that the second does.
import { openDevice } from '../../../dist/index.js';
import { pairInFlight } from './with-pair.mjs';

const [stage, way] = process.argv.slice(2);
const stages = [
  'import',
  'open',
  'pd',
  'cq',
  'mr',
  'registering',
  'qp',
  'modifying',
  'inFlight',
  'closing',
  'closed',
];
if (!stages.includes(stage)) throw new Error(`no stage ${stage}`);

function leave(at) {
  if (at !== stage) return false;
  process.stdout.write(`reached ${at}\n`);
  if (way === 'exit') process.exit(0);
  if (way === 'throw') throw new Error('thrown on purpose');
  return true; // return: the event loop runs dry
}

async function run() {
  if (leave('import')) return;
  const context = openDevice(process.env.NODE_RDMA_RXE_DEVICE_A);
  if (leave('open')) return;
  const pd = context.allocPd();
  if (leave('pd')) return;
  const cq = context.createCq();
  if (leave('cq')) return;
  pd.regMrSync(1 << 16);
  if (leave('mr')) return;
  const registering = pd.regMr(64 << 20);
  if (leave('registering')) return;
  await registering;
  const qp = pd.createQp({ type: 'rc', cq });
  if (leave('qp')) return;
  await qp.init();
  const modifying = qp.connect(qp.endpoint());
  if (leave('modifying')) return;
  await modifying;
  const { a } = await pairInFlight();
  if (leave('inFlight')) return;
  const closing = context.closeAsync({ cascade: true });
  if (leave('closing')) return;
  await closing;
  a.context.close({ cascade: true });
  if (leave('closed')) return;
}

await run();
