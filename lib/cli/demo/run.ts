import type { Writable } from 'node:stream';
import { RdmaError } from '../../index.js';
import { measureWriteBandwidth } from '../../perf/pair/bandwidth.js';
import { EndpointPair } from '../../perf/pair/endpoint-pair.js';
import { measureSendLatency } from '../../perf/pair/latency.js';
import { describePlatform, describePort } from '../../perf/platform.js';
import { formatBytes } from '../../perf/figures.js';
import type { DemoFlags } from '../demo.js';
import { choosePorts, type ChosenPorts } from './choose-ports.js';
import { verifyOperations, type OperationReport } from './operations.js';
import { JsonOutput, TextOutput, type Output } from './output.js';
import { reportConnection, type Measurement } from './report.js';

const KiB = 1024;
const thorough = { sizes: [8, 256, 4 * KiB, 64 * KiB, 1024 * KiB], duration: 200, warmUp: 30 };
const quick = { sizes: [8, 4 * KiB, 64 * KiB], duration: 50, warmUp: 20 };

/**
 * Shows RDMA at work, and writes what it finds as it comes; as one JSON object at the end with `json`.
 *
 * @throws whatever fails first: RdmaError from RDMA, Error for data that is not as it should be
 */
export async function runDemo(flags: DemoFlags, stream: Writable): Promise<void> {
  const output: Output = flags.json ? new JsonOutput(stream) : new TextOutput(stream);
  const ports = choosePorts(flags.device);
  const { sizes: usualSizes, ...timing } = flags.quick ? quick : thorough;
  const sizes = flags.sizes ?? usualSizes;
  try {
    checkSizes(sizes, ports);
    output.platform(describePlatform());
    output.devices({ reason: ports.reason, a: describePort(ports.a), b: describePort(ports.b) });

    using pair = await EndpointPair.connect(
      { ...ports.a, gid: { address: ports.a.gid.gid } },
      { ...ports.b, gid: { address: ports.b.gid.gid } },
    );
    output.connection(reportConnection(pair));

    const operations: OperationReport[] = [];
    for await (const operation of verifyOperations(pair)) {
      output.operation(operation);
      operations.push(operation);
    }
    output.operationsEnd(operations);

    const measurements: Measurement[] = [];
    for (const size of sizes) {
      const write = await measureWriteBandwidth(pair, { size, ...timing });
      const send = await measureSendLatency(pair, { size, ...timing });
      measurements.push({ size, write, send });
    }
    output.measurements(measurements);
  } finally {
    closePorts(ports);
  }
}

function checkSizes(sizes: readonly number[], { a, b }: ChosenPorts): void {
  const largest = Math.max(...sizes);
  for (const { context, port } of [a, b]) {
    const { maxMsgSz } = context.queryPort(port);
    if (largest <= maxMsgSz) continue;
    throw new RdmaError(
      'ERR_RDMA_LIMIT',
      `messages of ${formatBytes(largest)} are above the ${formatBytes(maxMsgSz)} that port ${port} of ${context.device.name} takes`,
    );
  }
}

function closePorts({ a, b }: ChosenPorts): void {
  a.context.close();
  b.context.close();
}
