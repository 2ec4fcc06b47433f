import { InvalidArgumentError, type Command } from 'commander';
import { RdmaError } from '../verbs/errors.js';
import { parseByteSize } from './byte-size.js';

export interface DemoFlags {
  device?: string[];
  json?: boolean;
  quick?: boolean;
  /** In bytes. */
  sizes?: number[];
}

/** Adds `node-rdma demo`: RDMA at work on a device of this machine. */
export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('show RDMA at work: two ends connected, every operation verified, bandwidth and latency')
    .option('--device <name...>', 'one device for both ends, or two for one each (default: what there is)')
    .option('--sizes <list>', 'message sizes to measure, such as 8,4K,1M', parseSizes)
    .option('--quick', 'measure fewer sizes, and each for a shorter time')
    .option('--json', 'print the same as one JSON object')
    .addHelpText(
      'after',
      '\nNo device? On real Soft-RoCE: node-rdma rxe run -- npx node-rdma demo\nExit status: 0, or 1 if anything failed.',
    )
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import('./demo/run.js');
      try {
        await runDemo(flags, process.stdout);
      } catch (error) {
        process.stderr.write(`node-rdma demo: ${describeFailure(error)}\n`);
        process.exitCode = 1;
      }
    });
}

function parseSizes(text: string): number[] {
  const sizes = text.split(',').map(parseByteSize);
  if (sizes.some((size) => size === undefined || size === 0)) {
    throw new InvalidArgumentError('Give sizes from 1 byte, separated by commas: 8,4K,1M.');
  }
  return sizes as number[];
}

/** A failure of RDMA says all in its message; anything else is a mistake in the program. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof RdmaError ? error.message : (error.stack ?? error.message);
}
