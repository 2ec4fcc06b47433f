import { readFileSync } from 'node:fs';
import type { Mtu } from '../../verbs/constants.js';
import type { Plan } from '../plan.js';
import type { Exchange } from './exchange.js';
import { describeOurselves, meetOurKind, type OurPeer } from './our-kind.js';
import {
  decodeMtu,
  decodeVersion,
  encodeInteger,
  encodeMtu,
  encodeVersion,
  notPerftest,
} from './messages.js';

/** What both ends have in common after the first messages. */
export interface Agreement {
  mtu: Mtu;
  /** In bytes, the larger of both ends'. */
  pageSize: number;
  /** In bytes, the larger of both ends'. */
  cacheLine: number;
  peer: {
    /** Version that it announces, such as `6.06`. */
    version: string;
    /** What a peer of this library has told more. */
    ours: OurPeer | null;
  };
}

/** @throws RdmaError `ERR_RDMA_PROTOCOL`; `ERR_RDMA_MISMATCH` where a peer of ours was given other options */
export async function open(exchange: Exchange, plan: Plan): Promise<Agreement> {
  const { timeout } = plan.settings;
  const version = decodeVersion(await exchange.swap(encodeVersion(), timeout));
  const ours = version.ours ? await meetOurKind(exchange, describeOurselves(plan), timeout) : null;
  const larger = async (own: number, what: string) => {
    const theirs = (await exchange.swap(encodeInteger(own), timeout)).readInt32BE();
    if (theirs < 1 || theirs > 2 ** 24) throw notPerftest(`it has a ${what} of ${theirs} bytes`);
    return Math.max(own, theirs);
  };
  const pageSize = await larger(ownPageSize(), 'page size');
  const cacheLine = await larger(ownCacheLine(), 'cache line');
  const theirMtu = decodeMtu(await exchange.swap(encodeMtu(plan.mtu), timeout));
  return {
    mtu: Math.min(plan.mtu, theirMtu) as Mtu,
    pageSize,
    cacheLine,
    peer: { version: version.text, ours },
  };
}

/** `AT_PAGESZ` of the auxiliary vector, getauxval(3): pairs of machine words. */
function ownPageSize(): number {
  const [pageSizeKey, usual] = [6n, 4096];
  try {
    const words = new BigUint64Array(new Uint8Array(readFileSync('/proc/self/auxv')).buffer);
    for (let i = 0; i + 1 < words.length; i += 2) if (words[i] === pageSizeKey) return Number(words[i + 1]);
  } catch {
    // A system that does not tell has the usual ones.
  }
  return usual;
}

function ownCacheLine(): number {
  const usual = 64;
  try {
    const text = readFileSync('/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size', 'utf8');
    return Number(text) || usual;
  } catch {
    return usual;
  }
}
