import Table from 'cli-table3';
import { formatBytes, formatFigure } from '../../perf/figures.js';
import type { PortReport } from '../../perf/platform.js';
import type { OperationReport } from './operations.js';
import type { Painter } from './paint.js';
import type { DemoReport, Measurement, QueuePairReport } from './report.js';

const engineNames: Record<string, string> = {
  host: 'Soft-RoCE of this host',
  uml: 'Soft-RoCE in a User-Mode Linux machine',
  qemu: 'Soft-RoCE in a QEMU machine',
};

export function renderPlatform(
  { nodeRdma, node, kernel, engine }: DemoReport['platform'],
  paint: Painter,
): string {
  const parts = [`node-rdma ${nodeRdma}`, `Node.js ${node.replace(/^v/, '')}`, `Linux ${kernel}`];
  if (engine !== null) parts.push(engineNames[engine] ?? engine);
  return paint.faint(parts.join(', '));
}

export function renderDevices({ reason, a, b }: DemoReport['devices'], paint: Painter): string {
  return [
    `${paint.heading('Devices')}: ${reason}`,
    ...renderPort('a', a, paint),
    ...renderPort('b', b, paint),
  ].join('\n');
}

function renderPort(end: string, port: PortReport, paint: Painter): string[] {
  const { device, linkLayer, state, activeMtu, maxMtu, firmware, vendorId, vendorPartId, gid } = port;
  const facts = [
    state.toUpperCase(),
    linkLayer,
    `MTU ${activeMtu} of ${maxMtu}`,
    `vendor ${hex(vendorId, 4)} part ${vendorPartId}`,
    firmware === null ? 'no firmware' : `firmware ${firmware}`,
  ];
  return [
    `  ${end}  ${device} port ${port.port}: ${facts.join(', ')}`,
    `     GID ${gid.index} of ${gid.tableLength}: ${gid.address}${gid.netdev && ` on ${gid.netdev}`}`,
    `     ${paint.faint(`why: ${gid.reason}`)}`,
  ];
}

export function renderConnection({ type, pathMtu, a, b }: DemoReport['connection'], paint: Painter): string {
  const heading = `${paint.heading('Connected')}: ${type.toUpperCase()}, path MTU ${pathMtu}`;
  return [heading, renderQueuePair('a', a), renderQueuePair('b', b)].join('\n');
}

function renderQueuePair(end: string, { qpNum, destQpNum, psn, state }: QueuePairReport): string {
  return `  ${end}  QP ${qpNum} to QP ${destQpNum}, first PSN ${hex(psn, 6)}, ${state.toUpperCase()}`;
}

export function renderOperation({ name, sizes, skipped }: OperationReport, paint: Painter): string {
  if (skipped !== null) return `  ${paint.doubtful('-')} ${name.padEnd(36)} skipped: ${skipped}`;
  return `  ${paint.good('✔')} ${name.padEnd(36)} ${sizes.map(formatBytes).join(', ')}`;
}

export function renderOperationsEnd(operations: readonly OperationReport[]): string {
  const bytes = operations.reduce((sum, { bytesVerified }) => sum + bytesVerified, 0);
  return `  each from a to b and from b to a: ${bytes} bytes, and the memory around them, are as they should be`;
}

export function renderMeasurements(measurements: readonly Measurement[]): string {
  const table = new Table({
    head: ['message', 'WRITE MiB/s', 'messages/s', 'window', 'SEND µs p50', 'p99', 'max', 'rounds'],
    colAligns: Array<'right'>(8).fill('right'),
    style: { head: [], border: [], compact: true },
  });
  for (const { size, write, send } of measurements) {
    const { p50, p99, max } = send.microseconds;
    table.push([
      formatBytes(size),
      formatFigure(write.mebibytesPerSecond),
      formatFigure(write.messagesPerSecond),
      String(write.window),
      formatFigure(p50),
      formatFigure(p99),
      formatFigure(max),
      String(send.rounds),
    ]);
  }
  return [
    table.toString(),
    'WRITE: with a window of messages outstanding. SEND: one way, half of the round trip, over all rounds.',
    'Both ends are polled by this one process.',
  ].join('\n');
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}
