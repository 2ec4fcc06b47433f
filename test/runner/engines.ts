import { umlEngine } from '../../lib/rxe/engines/uml.js';
import { qemuEngine } from '../../lib/rxe/engines/qemu.js';
import type { EngineName } from '../../lib/rxe/options.js';

const options = { memory: 512, mtu: 1500 };
const possible = await Promise.all(
  [umlEngine, qemuEngine].map(async (engine) => ((await engine.unusable(options)) ? [] : [engine.name])),
);

/** NODE_RDMA_TEST_ENGINES (names with commas between), or all engines with machines that work here. */
export const engines: EngineName[] =
  process.env.NODE_RDMA_TEST_ENGINES === undefined
    ? possible.flat()
    : (process.env.NODE_RDMA_TEST_ENGINES.split(',').filter((name) => name !== 'host') as EngineName[]);
