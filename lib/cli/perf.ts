import type { Command } from 'commander';
import { perfTests } from '../perf/kinds.js';
import { addPerfOptions, normalize } from './perf-options.js';

/** Adds `node-rdma perf`: bandwidth and latency, with another one of these or with a program of perftest. */
export function addPerfCommand(program: Command): void {
  addPerfOptions(
    program
      .command('perf')
      .description('measure bandwidth or latency, with another one of these or with the program of perftest')
      .argument('[test]', `one of ${perfTests.join(', ')}; write-bw plays with ib_write_bw, and so on`)
      .argument('[host]', 'the server to connect to; without one this end is the server, for one client'),
  )
    .addHelpText(
      'after',
      `
Both ends must have the same test, -s or -a, -n or -D, -b, -c, -q, -R and -z. The letters and their meaning are those of perftest.
Exit status: 0; 1 if anything failed, or a rate is below its limit; 130 after Ctrl-C, which prints what was measured.

  node-rdma perf write-bw                          on one host
  node-rdma perf write-bw 192.0.2.1 --json         on the other; or ib_write_bw 192.0.2.1`,
    )
    .action(
      async (
        test: string | undefined,
        host: string | undefined,
        flags: Record<string, unknown>,
        command: Command,
      ) => {
        const { runPerf, runCompare } = await import('./perf/run.js');
        const own = normalize(flags);
        if (own.compare !== undefined)
          process.exitCode = await runCompare(own.compare, own.json === true, process.stdout);
        else if (test === undefined) command.help({ error: true });
        else process.exitCode = await runPerf(test, host, own, process.stdout);
      },
    );
}
