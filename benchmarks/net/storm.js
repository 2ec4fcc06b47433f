// @ts-check
// Connections: made and closed one after the other, and many at once; and what is left of them in the kernel.
import { execFileSync } from 'node:child_process';
import { connect, createServer } from '../../dist/net/index.js';

const { NODE_RDMA_RXE_ADDRESS_A: localAddress, NODE_RDMA_RXE_ADDRESS_B: host = localAddress } = process.env;

/** Queue pairs, completion queues, memory regions and identifiers of this process. */
function held() {
  return ['qp', 'cq', 'mr', 'cm_id'].map((kind) => {
    const lines = execFileSync('rdma', ['resource', 'show', kind], { encoding: 'utf8' }).split('\n');
    return lines.filter((line) => line.includes(` pid ${process.pid} `)).length;
  });
}

/** @param {{ inTurn: number, atOnce: number }} counts */
export async function measureConnects({ inTurn, atOnce }) {
  const server = createServer(async (connection) => {
    for await (const message of connection) await connection.send(message);
  });
  await server.listen({ host: /** @type {string} */ (host) });
  const { port } = /** @type {{ port: number }} */ (server.address());
  const greet = async () => {
    const connection = await connect({
      host: /** @type {string} */ (host),
      port,
      ...(localAddress && { localAddress }),
      timeoutMs: 60_000,
    });
    await connection.send('hello');
    if (String(await connection.receive({ timeoutMs: 60_000 })) !== 'hello')
      throw new Error('another answer came');
    return connection;
  };
  const timed = async (/** @type {() => Promise<void>} */ work) => {
    const began = performance.now();
    await work();
    return (performance.now() - began) / 1000;
  };
  const loop = await timed(async () => {
    for (let i = 0; i < inTurn; ++i) await (await greet())[Symbol.asyncDispose]();
  });
  /** @type {import('../../dist/net/index.js').Connection[]} */
  let all = [];
  const burst = await timed(async () => {
    all = await Promise.all(Array.from({ length: atOnce }, greet));
  });
  await Promise.all(all.map((connection) => connection[Symbol.asyncDispose]()));
  await server.close();
  return {
    inTurn,
    perSecond: inTurn / loop,
    atOnce,
    seconds: burst,
    left: held().reduce((sum, count) => sum + count),
  };
}
