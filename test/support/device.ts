// Two ends on the machine's wire, for tests on a real device.
import { onTestFinished } from 'vitest';
import {
  Access,
  openDevice,
  type CompletionQueue,
  type ConnectOptions,
  type Context,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type QueuePairOptions,
  type WorkCompletion,
} from '../../lib/index.js';

export const ALL_REMOTE =
  Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

/** Names of the devices at the two ends; the same twice where there is one only. */
export const deviceA = process.env.NODE_RDMA_RXE_DEVICE_A;
export const deviceB = process.env.NODE_RDMA_RXE_DEVICE_B ?? deviceA;

export interface End {
  context: Context;
  pd: ProtectionDomain;
  cq: CompletionQueue;
  mr: MemoryRegion;
  qp: QueuePair;
}

/** A device that is closed, with all that hangs on it, when the test ends. */
export function device(name = deviceA): Context {
  const context = openDevice(name);
  // Not by afterEach() here: this module is loaded once for all files, and would only serve the first.
  onTestFinished(() => context.close({ cascade: true }));
  return context;
}

export interface PairOptions {
  qp?: Partial<QueuePairOptions>;
  bytes?: number;
  access?: number;
  cqe?: number;
}

/** One end, its queue pair in RESET. */
export function end(name: string | undefined, options: PairOptions = {}): End {
  const context = device(name);
  const pd = context.allocPd();
  const cq = context.createCq({ cqe: options.cqe ?? 512 });
  const mr = pd.regMrSync(options.bytes ?? 1 << 16, { access: options.access ?? ALL_REMOTE });
  const qp = pd.createQp({ type: 'rc', cq, ...options.qp });
  return { context, pd, cq, mr, qp };
}

/** Two ends, connected over the wire. */
export async function connectedPair(
  options: PairOptions & { connect?: ConnectOptions } = {},
): Promise<{ a: End; b: End }> {
  const a = end(deviceA, options);
  const b = end(deviceB, options);
  await connect(a, b, options.connect);
  return { a, b };
}

export async function connect(a: End, b: End, options: ConnectOptions = {}): Promise<void> {
  const [endpointA, endpointB] = [a.qp.endpoint(options), b.qp.endpoint(options)];
  await a.qp.connect(endpointB, options);
  await b.qp.connect(endpointA, options);
}

/** Polls until `count` completions have come; says what came when they do not in time. */
export async function completions(
  cq: CompletionQueue,
  count = 1,
  timeoutMs = 20_000,
): Promise<WorkCompletion[]> {
  const all: WorkCompletion[] = [];
  const deadline = Date.now() + timeoutMs;
  while (all.length < count) {
    const some = cq.poll();
    all.push(...some);
    if (some.length > 0) continue;
    if (Date.now() > deadline) {
      throw new Error(
        `${all.length} of ${count} completions came in ${timeoutMs} ms: ${JSON.stringify(all, (_key, value) => (typeof value === 'bigint' ? String(value) : value) as unknown)}`,
      );
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  return all;
}

/** The only completion, which must be a success. */
export async function succeeded(cq: CompletionQueue): Promise<WorkCompletion> {
  const [completion] = await completions(cq);
  if (completion!.error) throw completion!.error;
  return completion!;
}

/** Bytes that differ by seed and by place. */
export function pattern(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; ++i) bytes[i] = (i * 31 + (i >> 8) * 7 + seed * 101) & 0xff;
  return bytes;
}
