import type { Writable } from 'node:stream';
import type { PerfOptions, PerfProgress } from '../../perf/options.js';
import type { PerfResult } from '../../perf/perf.js';
import type { SizeResult } from '../../perf/results.js';
import { partsOf } from '../../perf/kinds.js';
import type { PerfFlags } from '../perf-options.js';
import { bandwidthColumns, columnsFor, heading, rowOf, type Column } from './columns.js';
import { peerCommands } from './peer-command.js';

/** What `node-rdma perf` prints: the table as its rows come, or one JSON object at the end; on a terminal how far it is. */
export class PerfOutput {
  readonly #flags: PerfFlags;
  readonly #stdout: Writable;
  readonly #stderr: Writable & { isTTY?: boolean };
  #columns: Column[] | undefined;
  #described: PerfResult | undefined;
  #inProgress = false;

  constructor(flags: PerfFlags, stdout: Writable, stderr: Writable & { isTTY?: boolean }) {
    this.#flags = flags;
    this.#stdout = stdout;
    this.#stderr = stderr;
  }

  /** A server waits. */
  listening(port: number, options: PerfOptions): void {
    this.#say(
      `Waiting for a client on ${this.#flags.rdmaCm || this.#flags.commRdmaCm ? 'rdma_cm' : 'TCP'} port ${port}. On the other host, with the address of this one as HOST:`,
    );
    for (const command of peerCommands(options, port)) this.#say(`  ${command}`);
  }

  /** The ends are connected. */
  begin(result: PerfResult): void {
    this.#described = result;
    if (this.#flags.json) return;
    this.#line(describe(result));
  }

  row(one: SizeResult): void {
    if (this.#flags.json) return;
    if (this.#columns === undefined) {
      this.#columns = columnsFor(partsOf(this.#described!.test).measure, this.#flags);
      this.#line(heading(this.#columns));
    }
    const marks = [
      one.incomplete && 'incomplete',
      one.measuredBy === 'peer' && "the peer's figures",
      one.lost && `${one.lost} lost`,
    ].filter(Boolean);
    this.#line(`${rowOf(this.#columns, one)}${marks.length > 0 ? `  ${marks.join(', ')}` : ''}`);
  }

  progress({ size, messages, of, messagesPerSecond }: PerfProgress): void {
    if (!this.#stderr.isTTY) return;
    const rate = messagesPerSecond === null ? '' : `, ${rateOf(size, messagesPerSecond, this.#flags)}`;
    this.#stderr.write(
      `\r\x1b[K${size} bytes: ${messages}${of === undefined ? '' : ` of ${of}`} messages${rate}`,
    );
    this.#inProgress = true;
  }

  failed(message: string): void {
    this.#clearProgress();
    this.#stderr.write(`node-rdma perf: ${message}\n`);
  }

  end(result: PerfResult): void {
    this.#clearProgress();
    if (this.#flags.json) {
      this.#stdout.write(`${JSON.stringify(result, null, 2)}\n`);
      return;
    }
    if (result.results.length === 0 && result.error === null)
      this.#line('The client has measured: see there.');
    if (this.#flags.reportBoth) this.#directions(result);
    this.#samples(result);
  }

  #directions({ results }: PerfResult): void {
    const both = results.filter(({ directions }) => directions !== undefined);
    if (both.length === 0) return;
    for (const [title, way] of [
      ['From this end', 'outgoing'],
      ['From the peer', 'incoming'],
    ] as const) {
      const columns = bandwidthColumns(({ directions }) => directions?.[way], this.#flags);
      this.#line(`${title}:`);
      this.#line(heading(columns));
      for (const one of both) this.#line(rowOf(columns, one));
    }
  }

  #samples({ results }: PerfResult): void {
    const { histogram, unsorted, reportCycles } = this.#flags;
    if (!histogram && !unsorted) return;
    for (const { size, latency } of results) {
      const samples = latency?.samples ?? [];
      const unit = reportCycles ? 'nanoseconds' : 'microseconds';
      this.#line(`${samples.length} samples of ${size} bytes, in ${unit}${histogram ? ', sorted' : ''}:`);
      const shown = histogram ? samples.toSorted((a, b) => a - b) : samples;
      for (const sample of shown) this.#line(reportCycles ? (sample * 1000).toFixed(0) : sample.toFixed(3));
    }
  }

  /** What is no result: beside the JSON, not in it. */
  #say(text: string): void {
    (this.#flags.json ? this.#stderr : this.#stdout).write(`${text}\n`);
  }

  #line(text: string): void {
    this.#clearProgress();
    this.#stdout.write(`${text}\n`);
  }

  #clearProgress(): void {
    if (this.#inProgress) this.#stderr.write('\r\x1b[K');
    this.#inProgress = false;
  }
}

function describe({ test, role, device, connection, configuration }: PerfResult): string {
  const { gid } = device;
  const { peer, pathMtu, queuePairs } = connection!;
  const kind = peer.nodeRdma === null ? `perftest ${peer.perftest}` : `node-rdma ${peer.nodeRdma.nodeRdma}`;
  const { connection: type, txDepth, rxDepth, events, cqModeration } = configuration;
  const { verb, measure } = partsOf(test);
  const facts = [
    type.toUpperCase(),
    `path MTU ${pathMtu}`,
    `${queuePairs.length} queue pair${queuePairs.length > 1 ? 's' : ''}`,
    measure === 'bw' && `window ${txDepth}`,
    measure === 'bw' && `a completion every ${[...new Set(cqModeration)].join(', ')}`,
    verb === 'send' && `${rxDepth} receives`,
    (verb === 'read' || verb === 'atomic') && `${configuration.outstandingReads} outstanding`,
    events ? 'by events' : 'polling',
  ].filter(Boolean);
  const [first] = queuePairs;
  return [
    `${test}, ${role}, with ${peer.address} (${kind}): ${facts.join(', ')}`,
    `  here   ${device.device} port ${device.port}, GID ${gid.index}: ${gid.address}, QP ${first!.local.qpNum} (${gid.reason})`,
    `  there  ${first!.remote.gid}, QP ${first!.remote.qpNum}`,
  ].join('\n');
}

function rateOf(size: number, messagesPerSecond: number, { reportGbits }: PerfFlags): string {
  const bytes = size * messagesPerSecond;
  return reportGbits ? `${((bytes * 8) / 1e9).toFixed(2)} Gb/s` : `${(bytes / 2 ** 20).toFixed(2)} MiB/s`;
}
