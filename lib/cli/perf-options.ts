import { InvalidArgumentError, Option, type Command } from 'commander';
import type { PerfOptions } from '../perf/options.js';
import { parseByteSize } from './byte-size.js';

/** The options of `node-rdma perf`, as commander hands them over. */
export interface PerfFlags {
  port?: number;
  sourceIp?: string;
  timeout?: number;
  stallTimeout?: number;
  ibDev?: string;
  ibPort?: number;
  gidIndex?: number;
  ipv6?: boolean;
  mtu?: number;
  size?: number;
  all?: boolean;
  iters?: number;
  duration?: number;
  margin?: number;
  bidirectional?: boolean;
  qp?: number;
  connection?: string;
  txDepth?: number;
  rxDepth?: number;
  cqMod?: number;
  events?: boolean;
  inlineSize?: number;
  outs?: number;
  atomicType?: string;
  qpTimeout?: number;
  retryCount?: number;
  sl?: number;
  tclass?: number;
  pkeyIndex?: number;
  noPeak?: boolean;
  reportGbits?: boolean;
  reportBoth?: boolean;
  reportCycles?: boolean;
  histogram?: boolean;
  unsorted?: boolean;
  limitBw?: number;
  limitMsgrate?: number;
  json?: boolean;
  report?: string;
  compare?: string[];
  CPUFreq?: boolean;
  rdmaCm?: boolean;
  commRdmaCm?: boolean;
}

type Parse = (text: string) => unknown;
type Row = readonly [flags: string, description: string, parse?: Parse];

const groups: Record<string, readonly Row[]> = {
  'What is sent:': [
    ['-s, --size <bytes>', 'of a message: 64, 4K, 1M (default: 65536; latency 2)', bytes],
    ['-a, --all', 'all sizes from 2 bytes to 8 MiB, in powers of two'],
    ['-n, --iters <n>', 'messages on each queue pair (default: 1000; write-bw 5000)', wholeNumber],
    ['-D, --duration <seconds>', 'measure for so long instead', seconds],
    [
      '-f, --margin <seconds>',
      'of it, not counted at its start and at its end (default: a quarter)',
      seconds,
    ],
    ['-b, --bidirectional', 'bandwidth: both ends send'],
    ['-c, --connection <type>', 'RC, UC (send, write) or UD (send) (default: RC)', lowerCase],
    ['-q, --qp <n>', 'bandwidth: queue pairs (default: 1)', wholeNumber],
    ['-A, --atomic-type <type>', 'FETCH_AND_ADD or CMP_AND_SWAP (default: FETCH_AND_ADD)', atomic],
  ],
  'How it is done:': [
    ['-e, --events', 'sleep until a completion comes; not for write-lat'],
    ['-t, --tx-depth <n>', 'bandwidth: messages outstanding (default: 128)', wholeNumber],
    ['-r, --rx-depth <n>', 'send: receives posted (default: 512)', wholeNumber],
    ['-Q, --cq-mod <n>', 'bandwidth: messages for a completion (default: 100; 1 above 8 KiB)', wholeNumber],
    ['-I, --inline-size <bytes>', 'send, write: messages up to this are sent inline (default: 0)', bytes],
    ['-o, --outs <n>', 'read, atomic: outstanding at a time (default: what the device offers)', wholeNumber],
    ['-u, --qp-timeout <code>', 'RC: acknowledge timeout, 4.096 µs × 2^code (default: 14)', wholeNumber],
    ['--retry-count <n>', 'RC: tries after it, up to 7 (default: 6)', wholeNumber],
    ['-S, --sl <n>', 'service level (default: 0)', wholeNumber],
    ['--tclass <n>', 'traffic class, DSCP in its upper six bits (default: 0)', wholeNumber],
    ['--pkey-index <n>', 'partition key (default: 0)', wholeNumber],
  ],
  'Where:': [
    ['-d, --ib-dev <name>', 'RDMA device (default: the first)'],
    ['-i, --ib-port <n>', 'its port (default: 1)', wholeNumber],
    ['-x, --gid-index <n>', "index in the port's GID table (default: the best for RoCE v2)", wholeNumber],
    ['--ipv6', 'choose a GID of an IPv6 address'],
    ['-m, --mtu <bytes>', 'path MTU (default: the active MTU of the port)', wholeNumber],
    ['-p, --port <n>', 'port of the server, of TCP or of rdma_cm (default: 18515)', wholeNumber],
    ['-z, --comm-rdma-cm', 'talk over rdma_cm instead of TCP'],
    ['-R, --rdma-cm', 'connect the queue pairs by rdma_cm, too; the address decides on the device'],
    ['--source-ip <address>', 'local address that a client connects from'],
    ['--timeout <seconds>', 'for each step of the talk with the peer (default: 30)', seconds],
    ['--stall-timeout <seconds>', 'without any completion (default: 10)', seconds],
  ],
  'What is shown:': [
    ['--json', 'one JSON object with the whole configuration, in place of the table'],
    ['--report <file>', 'write a page of HTML with charts, too'],
    ['--compare <results...>', 'two files of --json: say what has changed from the first to the second'],
    ['--report-gbits', 'Gb/s (10^9 bits) instead of MiB/s (2^20 bytes)'],
    ['--report-both', 'with -b: each way by itself, too'],
    ['-N, --no-peak', 'bandwidth: no peak rate'],
    ['-C, --report-cycles', 'latency in nanoseconds (nothing here counts cycles)'],
    ['-H, --histogram', 'latency: all samples, sorted'],
    ['-U, --unsorted', 'latency: all samples, in the order in which they came'],
    ['-w, --limit-bw <rate>', 'exit with status 1 below this bandwidth', positive],
    ['-y, --limit-msgrate <Mpps>', 'exit with status 1 below so many million messages a second', positive],
  ],
};

/** As perftest spells them; understood, and not shown. */
const otherSpellings = [
  'inline_size',
  'retry_count',
  'pkey_index',
  'report_gbits',
  'atomic_type',
  'rdma_cm',
  'comm_rdma_cm',
];

export function addPerfOptions(command: Command): Command {
  const known = new Map<string, Row>();
  for (const [heading, rows] of Object.entries(groups)) {
    for (const row of rows) {
      command.addOption(optionOf(row).helpGroup(heading));
      known.set(/--([\w-]+)/.exec(row[0])![1]!, row);
    }
  }
  for (const name of otherSpellings) {
    const [flags, description, parse] = known.get(name.replaceAll('_', '-'))!;
    const argument = / <.*>$/.exec(flags)?.[0] ?? '';
    command.addOption(optionOf([`--${name}${argument}`, description, parse]).hideHelp());
  }
  return command.addOption(new Option('-F, --CPU-freq', 'no clock here needs it').hideHelp());
}

function optionOf([flags, description, parse]: Row): Option {
  const option = new Option(flags, description);
  return parse === undefined ? option : option.argParser(parse);
}

/** perftest's spellings become ours. */
export function normalize(flags: Record<string, unknown>): PerfFlags {
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(flags)) {
    own[name.replace(/_(\w)/g, (_all, letter: string) => letter.toUpperCase())] = value;
  }
  // Of --no-peak commander makes a `peak` that is true without it.
  own.noPeak = own.peak === false;
  return own;
}

/** What each option of the library is called here, for messages. */
const flagOf: Partial<Record<keyof PerfOptions, string>> = {
  port: '-p',
  sourceAddress: '--source-ip',
  commRdmaCm: '-z',
  rdmaCm: '-R',
  device: '-d',
  devicePort: '-i',
  gidIndex: '-x',
  mtu: '-m',
  size: '-s',
  iterations: '-n',
  duration: '-D',
  margin: '-f',
  bidirectional: '-b',
  queuePairs: '-q',
  connection: '-c',
  txDepth: '-t',
  rxDepth: '-r',
  cqModeration: '-Q',
  events: '-e',
  inlineSize: '-I',
  outstandingReads: '-o',
  atomic: '-A',
  qpTimeout: '-u',
  retryCount: '--retry-count',
  serviceLevel: '-S',
  trafficClass: '--tclass',
  pkeyIndex: '--pkey-index',
  samples: '-H and -U',
  timeout: '--timeout',
  stallTimeout: '--stall-timeout',
};

/** The message, with the names of options as they are here. */
export function inFlags(message: string): string {
  return message.replace(/"(\w+)"|^(\w+)(?= \d)/g, (all: string, quoted?: string, bare?: string) => {
    const flag = flagOf[(quoted ?? bare) as keyof PerfOptions];
    return flag ?? all;
  });
}

/** @throws Error for what is not offered, or does not go together */
export function toPerfOptions(test: string, host: string | undefined, flags: PerfFlags): PerfOptions {
  if (flags.all && flags.size !== undefined) throw new Error('-a and -s exclude each other');
  const milliseconds = (value: number | undefined) => (value === undefined ? undefined : value * 1000);
  return {
    test: test as PerfOptions['test'],
    host,
    port: flags.port,
    sourceAddress: flags.sourceIp,
    commRdmaCm: flags.commRdmaCm,
    rdmaCm: flags.rdmaCm,
    device: flags.ibDev,
    devicePort: flags.ibPort,
    gidIndex: flags.gidIndex,
    ipv6: flags.ipv6,
    mtu: flags.mtu as PerfOptions['mtu'],
    size: flags.all ? 'all' : flags.size,
    iterations: flags.iters,
    duration: flags.duration,
    margin: flags.margin,
    bidirectional: flags.bidirectional,
    queuePairs: flags.qp,
    connection: flags.connection as PerfOptions['connection'],
    txDepth: flags.txDepth,
    rxDepth: flags.rxDepth,
    cqModeration: flags.cqMod,
    events: flags.events,
    inlineSize: flags.inlineSize,
    outstandingReads: flags.outs,
    atomic: flags.atomicType as PerfOptions['atomic'],
    qpTimeout: flags.qpTimeout,
    retryCount: flags.retryCount,
    serviceLevel: flags.sl,
    trafficClass: flags.tclass,
    pkeyIndex: flags.pkeyIndex,
    peak: !flags.noPeak,
    samples: flags.histogram === true || flags.unsorted === true,
    timeout: milliseconds(flags.timeout),
    stallTimeout: milliseconds(flags.stallTimeout),
  };
}

function bytes(text: string): number {
  const size = parseByteSize(text);
  if (size !== undefined) return size;
  throw new InvalidArgumentError('It must be a number of bytes: 64, 4K, 1M.');
}

function wholeNumber(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number.');
}

function positive(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0.');
}

function seconds(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a number of seconds.');
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}

function atomic(text: string): string {
  const known: Record<string, string> = { FETCH_AND_ADD: 'fetch-add', CMP_AND_SWAP: 'compare-swap' };
  const name = known[text.toUpperCase()];
  if (name !== undefined) return name;
  throw new InvalidArgumentError(`It must be one of ${Object.keys(known).join(', ')}.`);
}
