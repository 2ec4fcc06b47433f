import { mtuBytes, type Mtu } from '../verbs/constants.js';
import { invalidArgType, outOfRange } from '../verbs/errors.js';
import { abortSignal, integer, options as checkOptions, wordIndex } from '../verbs/validate.js';
import { partsOf, perfTests, type Measure, type PerfTest, type Verb } from './kinds.js';

/** How a measurement is done. What is not given is as perftest has it. */
export interface PerfOptions {
  test: PerfTest;
  /** The server to connect to; without one this end is the server, for one client. */
  host?: string | undefined;
  /** Port of the server, of TCP or of rdma_cm; 18515 by default; a server may take 0, for any. */
  port?: number | undefined;
  /** Local address that a client connects from. */
  sourceAddress?: string | undefined;

  /** Talk to the peer over a connection of rdma_cm instead of TCP; `host` is an address with an RDMA device. */
  commRdmaCm?: boolean | undefined;
  /** Connect the queue pairs by rdma_cm, too. Not for `'uc'`. MTU, GID, service level and P_Key are then those of the address. */
  rdmaCm?: boolean | undefined;

  /** By default the first one; with `rdmaCm` that of the address. */
  device?: string | undefined;
  /** Port of the device, from 1; 1 by default. */
  devicePort?: number | undefined;
  /** Index in the port's GID table; by default the best GID for RoCE v2 is chosen. */
  gidIndex?: number | undefined;
  /** Choose a GID of an IPv6 address. */
  ipv6?: boolean | undefined;
  /** Path MTU in bytes, up to the port's active MTU, which is the default. The smaller of both ends' is used. */
  mtu?: Mtu | undefined;

  /**
   * Bytes of a message, or `'all'` for the powers of two from 2 to 8 MiB (UD: to the MTU). 65536 by default for bandwidth and 2 for
   * latency; atomics have 8.
   */
  size?: number | 'all' | undefined;
  /** Messages on each queue pair, 5 to 10^8; 5000 by default for `write-bw`, else 1000. */
  iterations?: number | undefined;
  /** Seconds, instead of a number of messages. */
  duration?: number | undefined;
  /** Of `duration`, seconds at its start and at its end that do not count; a quarter of it by default. */
  margin?: number | undefined;
  /** Bandwidth: both ends send. */
  bidirectional?: boolean | undefined;
  /** Bandwidth: queue pairs, 1 to 16384; 1 by default. */
  queuePairs?: number | undefined;
  /** `'rc'` by default. Writes take `'uc'` too, sends `'uc'` and `'ud'`. */
  connection?: 'rc' | 'uc' | 'ud' | undefined;

  /** Bandwidth: messages outstanding on a queue pair, 1 to 15000; 128 by default. */
  txDepth?: number | undefined;
  /** Sends: receives posted on a queue pair, 1 to 16384; 512 by default, UC and UD as many as messages come, up to 16000. */
  rxDepth?: number | undefined;
  /** Bandwidth: every so many messages make a completion; 100 by default, and 1 for messages above 8 KiB. */
  cqModeration?: number | undefined;
  /** Sleep until a completion comes instead of polling for it. Not for `write-lat`. */
  events?: boolean | undefined;
  /** Sends and writes: bytes up to which a message is sent inline; 0 by default. */
  inlineSize?: number | undefined;
  /** Reads and atomics outstanding, by default as many as the device offers. */
  outstandingReads?: number | undefined;
  /** `'fetch-add'` by default. */
  atomic?: 'fetch-add' | 'compare-swap' | undefined;

  /** RC: code of the acknowledge timeout, 4.096 µs × 2^code, 1 to 31; 14 (67 ms) by default. */
  qpTimeout?: number | undefined;
  /** RC: tries after the first, 0 to 7; 6 by default. With 7 rxe tries for ever. */
  retryCount?: number | undefined;
  /** 0 to 15; 0 by default. */
  serviceLevel?: number | undefined;
  /** 0 to 255: DSCP in the upper six bits; 0 by default. */
  trafficClass?: number | undefined;
  /** 0 by default. */
  pkeyIndex?: number | undefined;

  /** Bandwidth: find the peak rate too, for up to 20000 messages; true by default. */
  peak?: boolean | undefined;
  /** Latency: put every sample into the result, in the order in which they came; false by default. Up to 10^6. */
  samples?: boolean | undefined;

  /** Milliseconds that each step of the talk with the peer may take; 30 000 by default. */
  timeout?: number | undefined;
  /** Milliseconds without any completion after which the measurement fails; 10 000 by default. */
  stallTimeout?: number | undefined;
  /** Ends it: the error that the promise rejects with has what was measured until then as `result`. */
  signal?: AbortSignal | undefined;
  /** A server: it waits for its client on this port. */
  onListening?: ((port: number) => void) | undefined;
  /** A few times a second, while it measures. */
  onProgress?: ((progress: PerfProgress) => void) | undefined;
}

export interface PerfProgress {
  /** Bytes of a message. */
  size: number;
  /** Messages that have completed, of this size. */
  messages: number;
  /** Of how many; absent where time decides. */
  of?: number;
  /** Messages a second, lately; null before the first. */
  messagesPerSecond: number | null;
}

/** Options that were checked, with all that was not given. */
export interface Settings {
  test: PerfTest;
  verb: Verb;
  measure: Measure;
  connection: 'rc' | 'uc' | 'ud';
  /** `'default'`: 65536, which UD cuts to the MTU. */
  size: number | 'all' | 'default';
  /** Infinity where `duration` decides. */
  iterations: number;
  /** In milliseconds; Infinity where `iterations` decides. */
  duration: number;
  /** In milliseconds. */
  margin: number;
  bidirectional: boolean;
  queuePairs: number;
  txDepth: number;
  rxDepth: number;
  /** Undefined: see {@link cqModerationFor}. */
  cqModeration: number | undefined;
  events: boolean;
  inlineSize: number;
  outstandingReads: number | undefined;
  atomic: 'fetch-add' | 'compare-swap';
  devicePort: number;
  gidIndex: number | undefined;
  ipv6: boolean;
  mtu: Mtu | undefined;
  qpTimeout: number;
  retryCount: number;
  serviceLevel: number;
  trafficClass: number;
  pkeyIndex: number;
  peak: boolean;
  samples: boolean;
  timeout: number;
  stallTimeout: number;
  commRdmaCm: boolean;
  rdmaCm: boolean;
}

const defaultSize = { bw: 65536, lat: 2 } as const;
const largestOfAll = 2 ** 23;
const knownOptions: Record<keyof PerfOptions, true> = {
  test: true,
  host: true,
  port: true,
  sourceAddress: true,
  commRdmaCm: true,
  rdmaCm: true,
  device: true,
  devicePort: true,
  gidIndex: true,
  ipv6: true,
  mtu: true,
  size: true,
  iterations: true,
  duration: true,
  margin: true,
  bidirectional: true,
  queuePairs: true,
  connection: true,
  txDepth: true,
  rxDepth: true,
  cqModeration: true,
  events: true,
  inlineSize: true,
  outstandingReads: true,
  atomic: true,
  qpTimeout: true,
  retryCount: true,
  serviceLevel: true,
  trafficClass: true,
  pkeyIndex: true,
  peak: true,
  samples: true,
  timeout: true,
  stallTimeout: true,
  signal: true,
  onListening: true,
  onProgress: true,
};

/**
 * The options with what perftest would assume; as far as they can be judged without a device.
 *
 * @throws TypeError, RangeError that name the option
 */
export function resolveOptions(options: PerfOptions): Settings {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(knownOptions, name)) throw outOfRange('options', 'of those of PerfOptions', name);
  }
  wordIndex('test', perfTests, options.test);
  const { test } = options;
  const { verb, measure } = partsOf(test);
  checkPlace(options);
  const connection = options.connection ?? 'rc';
  wordIndex('connection', connectionsOf(verb), connection);

  const forBandwidth = (name: keyof PerfOptions) => {
    if (measure !== 'bw' && options[name] !== undefined && options[name] !== false)
      throw outOfRange(name, `absent for ${test}: only the tests of bandwidth have it`, options[name]);
  };
  (['bidirectional', 'queuePairs', 'txDepth', 'cqModeration'] as const).forEach(forBandwidth);
  if (options.samples && measure !== 'lat') {
    throw outOfRange('samples', `absent for ${test}: only the tests of latency have them`, options.samples);
  }
  const duration = millisecondsOf('duration', options.duration, Infinity);
  const margin = millisecondsOf('margin', options.margin, duration === Infinity ? 0 : duration / 4);
  if (duration === Infinity) {
    if (options.margin !== undefined) throw outOfRange('margin', 'absent without duration', options.margin);
  } else {
    if (options.iterations !== undefined)
      throw outOfRange('iterations', 'absent with duration', options.iterations);
    if (options.size === 'all') throw outOfRange('size', 'one size, with duration', 'all');
    if (2 * margin >= duration)
      throw outOfRange('margin', `less than half of duration, ${duration / 2000} s`, margin / 1000);
  }
  const iterations =
    duration === Infinity
      ? integer('iterations', options.iterations ?? (test === 'write-bw' ? 5000 : 1000), 5, 1e8)
      : Infinity;
  const txDepth =
    measure === 'bw' ? Math.min(integer('txDepth', options.txDepth ?? 128, 1, 15_000), iterations) : 1;
  const { cqModeration } = options;
  if (cqModeration !== undefined) integer('cqModeration', cqModeration, 1, Math.min(txDepth, 1024));

  return {
    test,
    verb,
    measure,
    connection,
    size: sizeOf(options, verb, measure),
    iterations,
    duration,
    margin,
    bidirectional: options.bidirectional ?? false,
    queuePairs: integer('queuePairs', options.queuePairs ?? 1, 1, 16_384),
    txDepth,
    rxDepth: receiveDepth(options, verb, connection, iterations),
    cqModeration,
    events: eventsOf(options),
    inlineSize: inlineOf(options, verb),
    outstandingReads: outstandingOf(options, verb),
    atomic: atomicOf(options, verb),
    devicePort: options.devicePort ?? 1,
    gidIndex: options.gidIndex,
    ipv6: options.ipv6 ?? false,
    mtu: options.mtu,
    qpTimeout: integer('qpTimeout', options.qpTimeout ?? 14, 1, 31),
    retryCount: integer('retryCount', options.retryCount ?? 6, 0, 7),
    serviceLevel: integer('serviceLevel', options.serviceLevel ?? 0, 0, 15),
    trafficClass: integer('trafficClass', options.trafficClass ?? 0, 0, 255),
    pkeyIndex: integer('pkeyIndex', options.pkeyIndex ?? 0, 0, 65_535),
    peak: options.peak ?? true,
    samples: options.samples ?? false,
    timeout: integer('timeout', options.timeout ?? 30_000, 1, 2 ** 31 - 1),
    stallTimeout: integer('stallTimeout', options.stallTimeout ?? 10_000, 1, 2 ** 31 - 1),
    commRdmaCm: (options.commRdmaCm ?? false) || (options.rdmaCm ?? false),
    rdmaCm: rdmaCmOf(options),
  };
}

/** How many messages make one completion, by perftest's rule. */
export function cqModerationFor(settings: Settings, size: number): number {
  if (settings.measure === 'lat') return 1;
  if (settings.cqModeration !== undefined) return settings.cqModeration;
  const each = size > 8192 && settings.connection !== 'ud' && settings.size !== 'all' && !settings.events;
  return each ? 1 : Math.min(100, settings.txDepth);
}

function connectionsOf(verb: Verb): readonly string[] {
  if (verb === 'send') return ['rc', 'uc', 'ud'];
  return verb === 'write' ? ['rc', 'uc'] : ['rc'];
}

function checkPlace({
  host,
  port = 18_515,
  sourceAddress,
  device,
  devicePort = 1,
  gidIndex = 0,
  mtu,
  ...rest
}: PerfOptions): void {
  for (const [name, value] of Object.entries({ host, sourceAddress, device })) {
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw invalidArgType(name, 'a string', value);
  }
  if (sourceAddress !== undefined && host === undefined)
    throw outOfRange('sourceAddress', 'absent for a server', sourceAddress);
  integer('port', port, host === undefined ? 0 : 1, 65_535);
  integer('devicePort', devicePort, 1, 255);
  integer('gidIndex', gidIndex, 0, 255);
  const mtus: number[] = Object.values(mtuBytes);
  if (mtu !== undefined && !mtus.includes(mtu)) throw outOfRange('mtu', `one of ${mtus.join(', ')}`, mtu);
  if (rest.signal !== undefined) abortSignal('signal', rest.signal);
}

function sizeOf({ size }: PerfOptions, verb: Verb, measure: Measure): Settings['size'] {
  if (verb === 'atomic') {
    if (size !== undefined && size !== 8) throw outOfRange('size', '8 for atomics', size);
    return 8;
  }
  if (size === 'all') return 'all';
  if (size === undefined) return measure === 'bw' ? 'default' : defaultSize.lat;
  return integer('size', size, 1, 2 ** 31 - 1);
}

/** Sizes in their order. `largest`: what one message can have, of those that are chosen for the caller. */
export function sizesOf({ size }: Settings, largest: number): number[] {
  if (size === 'default') return [Math.min(defaultSize.bw, largest)];
  if (size !== 'all') return [size];
  const sizes: number[] = [];
  for (let next = 2; next <= Math.min(largestOfAll, largest); next *= 2) sizes.push(next);
  return sizes;
}

function receiveDepth({ rxDepth }: PerfOptions, verb: Verb, connection: string, iterations: number): number {
  if (verb !== 'send') {
    if (rxDepth !== undefined) throw outOfRange('rxDepth', 'absent where nothing is received', rxDepth);
    return 0;
  }
  const usual = connection === 'rc' ? 512 : Math.min(iterations, 16_000);
  const depth = Math.min(integer('rxDepth', rxDepth ?? usual, 1, 16_384), iterations);
  return depth === 1 ? 1 : depth + (depth % 2);
}

function eventsOf({ test, events = false }: PerfOptions): boolean {
  if (events && test === 'write-lat')
    throw outOfRange('events', 'absent for write-lat: a write makes no event where it arrives', events);
  return events;
}

function inlineOf({ test, inlineSize = 0 }: PerfOptions, verb: Verb): number {
  if (inlineSize !== 0 && (verb === 'read' || verb === 'atomic'))
    throw outOfRange('inlineSize', `absent for ${test}: its data comes from the peer`, inlineSize);
  return integer('inlineSize', inlineSize, 0, 912);
}

const ofAddress = ['gidIndex', 'ipv6', 'mtu', 'serviceLevel', 'pkeyIndex'] as const;

function rdmaCmOf(options: PerfOptions): boolean {
  const { rdmaCm = false, connection } = options;
  if (!rdmaCm) return false;
  if (connection === 'uc') throw outOfRange('rdmaCm', 'absent for UC, which rdma_cm does not connect', true);
  for (const name of ofAddress) {
    if (options[name] !== undefined && options[name] !== false)
      throw outOfRange(name, 'absent with rdmaCm: it is that of the address', options[name]);
  }
  return true;
}

function outstandingOf({ test, outstandingReads }: PerfOptions, verb: Verb): number | undefined {
  if (outstandingReads === undefined) return undefined;
  if (verb !== 'read' && verb !== 'atomic')
    throw outOfRange('outstandingReads', `absent for ${test}`, outstandingReads);
  return integer('outstandingReads', outstandingReads, 1, 255);
}

function atomicOf({ test, atomic }: PerfOptions, verb: Verb): Settings['atomic'] {
  if (atomic === undefined) return 'fetch-add';
  if (verb !== 'atomic') throw outOfRange('atomic', `absent for ${test}`, atomic);
  wordIndex('atomic', ['fetch-add', 'compare-swap'], atomic);
  return atomic;
}

/** Timers take 31 bits of milliseconds. */
function millisecondsOf(name: string, seconds: number | undefined, otherwise: number): number {
  if (seconds === undefined) return otherwise;
  if (typeof seconds !== 'number') throw invalidArgType(name, 'a number', seconds);
  const least = name === 'margin' ? 0 : 0.001;
  if (!(seconds >= least && seconds <= 2_000_000))
    throw outOfRange(name, `seconds from ${least} to 2000000`, seconds);
  return seconds * 1000;
}
