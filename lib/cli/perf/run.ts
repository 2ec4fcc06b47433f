import { readFile, writeFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { RdmaError } from '../../index.js';
import { compareResults } from '../../perf/compare.js';
import { measure, type PerfResult } from '../../perf/perf.js';
import { renderReport } from '../../perf/report/page.js';
import { inFlags, toPerfOptions, type PerfFlags } from '../perf-options.js';
import { renderComparison } from './comparison.js';
import { belowLimits } from './limits.js';
import { PerfOutput } from './output.js';

const interrupted = 130;

/** Measures and shows it. Returns the exit status. */
export async function runPerf(
  test: string,
  host: string | undefined,
  flags: PerfFlags,
  stdout: Writable,
): Promise<number> {
  const output = new PerfOutput(flags, stdout, process.stderr);
  const stop = new AbortController();
  // A second one ends the process at once.
  const onSignal = () => stop.abort();
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  let status = 0;
  let result: PerfResult | undefined;
  try {
    const options = toPerfOptions(test, host, flags);
    result = await measure(
      {
        ...options,
        signal: stop.signal,
        onListening: (port) => output.listening(port, options),
        onProgress: (progress) => output.progress(progress),
      },
      { onDescribed: (described) => output.begin(described), onResult: (one) => output.row(one) },
    );
  } catch (error) {
    result = (error as { result?: PerfResult }).result;
    status = stop.signal.aborted ? interrupted : 1;
    output.failed(
      stop.signal.aborted ? 'interrupted: these are the figures until then' : describeFailure(error),
    );
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
  if (result === undefined) return status;
  output.end(result);
  for (const complaint of belowLimits(result, flags)) {
    output.failed(complaint);
    status ||= 1;
  }
  if (flags.report !== undefined) status ||= await save(flags.report, renderReport(result), output);
  return status;
}

/** Sets two results that were saved against each other. Returns the exit status. */
export async function runCompare(files: readonly string[], json: boolean, stdout: Writable): Promise<number> {
  try {
    if (files.length !== 2) throw new Error(`--compare takes two files, and ${files.length} are given`);
    const [before, after] = (await Promise.all(files.map(read))) as [PerfResult, PerfResult];
    const comparison = compareResults(before, after);
    stdout.write(json ? `${JSON.stringify(comparison, null, 2)}\n` : renderComparison(comparison, files));
    return 0;
  } catch (error) {
    process.stderr.write(`node-rdma perf: ${(error as Error).message}\n`);
    return 1;
  }
}

async function read(file: string): Promise<PerfResult> {
  const text = await readFile(file, 'utf8');
  try {
    return JSON.parse(text) as PerfResult;
  } catch (cause) {
    throw new Error(`${file} is no JSON: save the output of node-rdma perf --json`, { cause });
  }
}

async function save(file: string, page: string, output: PerfOutput): Promise<number> {
  try {
    await writeFile(file, page);
    return 0;
  } catch (error) {
    output.failed(`the report was not written: ${(error as Error).message}`);
    return 1;
  }
}

/** A failure of RDMA or of an option says all in its message; anything else is a mistake in the program. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const known = error instanceof RdmaError || error instanceof TypeError || error instanceof RangeError;
  return known || !('code' in error) ? inFlags(error.message) : (error.stack ?? error.message);
}
