import type { PerfOptions } from '../../perf/options.js';
import { partsOf, programOf } from '../../perf/kinds.js';

/** How the client is started that fits a server: a program of perftest, or one of ours. */
export function peerCommands(options: PerfOptions, port: number): string[] {
  const { verb } = partsOf(options.test);
  const { size, iterations, duration, bidirectional, queuePairs, connection, atomic, rdmaCm } = options;
  const common = [
    size === 'all' ? '-a' : size !== undefined && verb !== 'atomic' && `-s ${size}`,
    iterations !== undefined && `-n ${iterations}`,
    duration !== undefined && `-D ${duration}`,
    bidirectional && '-b',
    queuePairs !== undefined && `-q ${queuePairs}`,
    connection !== undefined && connection !== 'rc' && `-c ${connection.toUpperCase()}`,
    atomic === 'compare-swap' && '-A CMP_AND_SWAP',
    rdmaCm ? '-R' : options.commRdmaCm && '-z',
    port !== 18_515 && `-p ${port}`,
    'HOST',
  ].filter((word) => typeof word === 'string');
  return [
    ['node-rdma perf', options.test, ...common].join(' '),
    [programOf(options.test), '-d DEVICE -x GID_INDEX', ...common].join(' '),
  ];
}
