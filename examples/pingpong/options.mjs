// The command line: the options of the C programs, as far as they concern both ends.
import path from 'node:path';
import { parseArgs } from 'node:util';

const MTUS = ['256', '512', '1024', '2048', '4096'];

const usage = (
  program,
  { size, rxDepth, mtu, queuePairs },
) => `Usage: node ${program} [options]        waits for a client
       node ${program} [options] HOST   connects to the server there

  -p, --port N        TCP port of the server (18515)
  -d, --ib-dev NAME   RDMA device (the first)
  -i, --ib-port N     its port (1)
  -g, --gid-idx GID   own GID, by address or by index (the best for RoCE v2)
  -s, --size N        bytes of a message (${size})
  -n, --iters N       messages each way (1000)
  -r, --rx-depth N    receives to post (${rxDepth})
${mtu ? `  -m, --mtu N         path MTU, the same at both ends (${mtu})\n` : ''}${queuePairs ? `  -q, --num-qp N      queue pairs, the same at both ends (${queuePairs})\n` : ''}\
  -l, --sl N          service level (0)
  -c, --chk           check what arrives: at both ends, or here alone when this is the client
`;

/**
 * Reads the command line; where it is wrong, says so and ends the process.
 *
 * @param defaults what the C program takes: the size, the MTU and the number of queue pairs where there is a choice
 */
export function readOptions(defaults) {
  const all = { rxDepth: 64, ...defaults };
  const program = path.relative('', process.argv[1]);
  try {
    return options(all);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage(program, all)}`);
    process.exit(1);
  }
}

function options({ size, rxDepth, mtu, queuePairs }) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      port: { type: 'string', short: 'p', default: '18515' },
      'ib-dev': { type: 'string', short: 'd' },
      'ib-port': { type: 'string', short: 'i', default: '1' },
      'gid-idx': { type: 'string', short: 'g' },
      size: { type: 'string', short: 's', default: `${size}` },
      iters: { type: 'string', short: 'n', default: '1000' },
      'rx-depth': { type: 'string', short: 'r', default: `${rxDepth}` },
      ...(mtu && { mtu: { type: 'string', short: 'm', default: `${mtu}` } }),
      ...(queuePairs && { 'num-qp': { type: 'string', short: 'q', default: `${queuePairs}` } }),
      sl: { type: 'string', short: 'l', default: '0' },
      chk: { type: 'boolean', short: 'c', default: false },
    },
  });
  if (positionals.length > 1) throw new RangeError(`one HOST, not ${positionals.join(' ')}`);
  const number = (name, min, max) => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new RangeError(`--${name} must be an integer from ${min} to ${max}, not ${values[name]}`);
  };
  if (mtu && !MTUS.includes(values.mtu))
    throw new RangeError(`--mtu must be one of ${MTUS.join(', ')}, not ${values.mtu}`);
  const pairs = queuePairs ? number('num-qp', 1, 256) : 1;
  return {
    host: positionals[0],
    tcpPort: number('port', 1, 65535),
    deviceName: values['ib-dev'],
    port: number('ib-port', 1, 255),
    gid: values['gid-idx'],
    size: number('size', 1, 2 ** 30),
    iters: number('iters', 1, 2 ** 31),
    queuePairs: pairs,
    // While an answer is on its way, the next message may come.
    rxDepth: number('rx-depth', 2 * pairs, 2 ** 20),
    pathMtu: mtu && Number(values.mtu),
    sl: number('sl', 0, 15),
    check: values.chk,
  };
}
