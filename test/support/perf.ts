// Both ends of a measurement in this process, on the wire of the machine.
import type { PerfOptions, PerfResult } from '../../lib/perf/index.js';
import { measure } from '../../lib/perf/perf.js';
import { deviceA, deviceB } from './device.js';

/** What an end had in its memory when it ended. */
export interface Memory {
  /** What it sent from, or read into. */
  sent: Buffer;
  /** Where something came to, or the peer read from. */
  came: Buffer;
}

export interface Side {
  result: PerfResult;
  memory: Memory[];
}

type Options = Partial<PerfOptions>;

/** What became of one end. */
export type Outcome = Promise<Side>;

export function run(options: PerfOptions): Outcome {
  const memory: Memory[] = [];
  const finished = measure(options, {
    onFinished: ({ flows, mr, room }) => {
      for (const { sendAt, receiveAt } of flows) {
        memory.push({
          sent: Buffer.from(mr.buffer.subarray(sendAt, sendAt + room)),
          came: Buffer.from(mr.buffer.subarray(receiveAt, receiveAt + room)),
        });
      }
    },
  }).then((result) => ({ result, memory }));
  finished.catch(() => undefined); // whoever awaits it hears of it
  return finished;
}

/** A server on device B, and the TCP port that it listens on. */
export async function serve(options: PerfOptions): Promise<{ port: number; finished: Outcome }> {
  let finished: Outcome | undefined;
  const port = await new Promise<number>((resolve, reject) => {
    finished = run({ port: 0, device: deviceB, ...options, onListening: resolve });
    finished.catch(reject);
  });
  return { port, finished: finished! };
}

/** A server on device B and a client on device A, with options that each has for itself. */
export async function meet(
  common: PerfOptions,
  own: { client?: Options; server?: Options } = {},
): Promise<{ client: Outcome; server: Outcome }> {
  const { port, finished } = await serve({ ...common, ...own.server });
  const client = run({ device: deviceA, host: '127.0.0.1', port, ...common, ...own.client });
  return { client, server: finished };
}
