import { setImmediate } from 'node:timers/promises';
import { RdmaError, type CompletionOpcode, type WorkCompletion } from '../../index.js';
import type { Endpoint } from '../../perf/pair/endpoint-pair.js';

/** A completion that must come. */
export interface Expected {
  end: Endpoint;
  wrId: bigint;
  opcode: CompletionOpcode;
  /** Of a receive. */
  byteLen?: number;
  /** Of a receive: absent where none must come. */
  immData?: number;
}

/**
 * Waits until all the completions have come, and nothing else has; compares each with what it should be.
 *
 * @throws WorkCompletionError for a request that failed; RdmaError `ERR_RDMA_TIMEOUT` with what is outstanding
 */
export async function awaitCompletions(
  operation: string,
  expected: readonly Expected[],
  timeout = 5000,
): Promise<void> {
  const deadline = performance.now() + timeout;
  const missing = new Set(expected);
  while (missing.size > 0) {
    for (const end of new Set([...missing].map((one) => one.end))) {
      for (const completion of end.cq.poll()) missing.delete(match(operation, completion, end, missing));
    }
    if (missing.size > 0 && performance.now() > deadline) {
      throw new RdmaError(
        'ERR_RDMA_TIMEOUT',
        `${operation}: still outstanding after ${timeout} ms: ${[...missing].map(describe).join('; ')}`,
      );
    }
    await setImmediate();
  }
}

function match(
  operation: string,
  completion: WorkCompletion,
  end: Endpoint,
  missing: ReadonlySet<Expected>,
): Expected {
  if (completion.error) throw completion.error;
  const found = [...missing].find((one) => one.end === end && one.wrId === completion.wrId);
  if (found === undefined) {
    throw new Error(`${operation}: a completion that nobody waits for: work request ${completion.wrId}`);
  }
  // Of sends only the opcode is defined; rxe says that a send with immediate data has some in its own completion, too.
  const fields = isReceive(found) ? (['opcode', 'byteLen', 'immData'] as const) : (['opcode'] as const);
  for (const field of fields) {
    if (completion[field] !== found[field]) {
      throw new Error(
        `${operation}: ${field} of the completion is ${completion[field]}, not ${found[field]} (${describe(found)})`,
      );
    }
  }
  return found;
}

const isReceive = ({ opcode }: Expected) => opcode === 'recv' || opcode === 'recvRdmaWithImm';

function describe({ end, wrId, opcode }: Expected): string {
  return `${opcode}, work request ${wrId} of ${end.qp.label} on ${end.context.device.name}`;
}
