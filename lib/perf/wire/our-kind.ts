// What two ends of this library tell each other, which perftest has no words for: with what options they were started.
import { RdmaError } from '../../verbs/errors.js';
import type { Plan } from '../plan.js';
import { packageVersion } from '../../package.js';
import type { Exchange } from './exchange.js';
import { encodeInteger, notPerftest } from './messages.js';

/** Both ends must have the same. */
interface Common {
  test: string;
  connection: string;
  size: number | 'all';
  /** Null where `duration` decides. */
  iterations: number | null;
  /** Seconds; null where `iterations` decides. */
  duration: number | null;
  queuePairs: number;
  bidirectional: boolean;
  rdmaCm: boolean;
}

/** What a peer of this library tells of itself. */
export interface OurPeer {
  nodeRdma: string;
  device: string;
  gid: { index: number; address: string };
}

interface Introduction extends OurPeer {
  options: Common;
}

const mostBytes = 65_536;

export function describeOurselves({ settings, context, gid, sizes }: Plan): Introduction {
  const { test, connection, size, iterations, duration, queuePairs, bidirectional, rdmaCm } = settings;
  return {
    nodeRdma: packageVersion(),
    device: context.device.name,
    gid: { index: gid.index, address: gid.address },
    options: {
      test,
      connection,
      size: size === 'all' ? 'all' : sizes[0]!,
      iterations: iterations === Infinity ? null : iterations,
      duration: duration === Infinity ? null : duration / 1000,
      queuePairs,
      bidirectional,
      rdmaCm,
    },
  };
}

/** @throws RdmaError `ERR_RDMA_MISMATCH`, with each option in which the ends differ */
export async function meetOurKind(exchange: Exchange, own: Introduction, timeout: number): Promise<OurPeer> {
  const words = Buffer.from(JSON.stringify(own));
  const theirLength = (await exchange.swap(encodeInteger(words.length), timeout)).readInt32BE();
  if (theirLength < 1 || theirLength > mostBytes)
    throw notPerftest(`it introduces itself in ${theirLength} bytes`);
  const message = Buffer.alloc(Math.max(words.length, theirLength), ' ');
  words.copy(message);
  const theirs = parse(await exchange.swap(message, timeout));
  const differences = differencesOf(own.options, theirs.options);
  if (differences.length > 0) {
    throw new RdmaError(
      'ERR_RDMA_MISMATCH',
      `this end and ${exchange.peer} were given different options: ${differences.join('; ')}. Give both the same.`,
    );
  }
  const { nodeRdma, device, gid } = theirs;
  return { nodeRdma, device, gid };
}

function parse(message: Buffer): Introduction {
  try {
    const introduction = JSON.parse(message.toString()) as Introduction;
    if (typeof introduction.options === 'object' && introduction.options !== null) return introduction;
  } catch {
    // Said below.
  }
  throw notPerftest('it does not introduce itself as this library does');
}

function differencesOf(own: Common, theirs: Common): string[] {
  return (Object.keys(own) as (keyof Common)[])
    .filter((name) => own[name] !== theirs[name])
    .map(
      (name) =>
        `${name} is ${String(own[name] ?? 'not given')} here and ${String(theirs[name] ?? 'not given')} there`,
    );
}
