import { randomInt } from 'node:crypto';
import { Access, type SendRequest } from '../../index.js';
import type { Endpoint, EndpointPair } from '../../perf/pair/endpoint-pair.js';
import { awaitCompletions, type Expected } from './completions.js';
import { guard, GuardedMemory, pattern } from './guarded-memory.js';

/** What became of one kind of operation. */
export interface OperationReport {
  name: string;
  /** Payloads in bytes; each went both ways. */
  sizes: number[];
  /** Payload bytes that were compared, of all messages; the memory around them, too, was. */
  bytesVerified: number;
  /** Why it was left out; null where it was not. */
  skipped: string | null;
}

interface Side {
  end: Endpoint;
  memory: GuardedMemory;
}

/** Does an operation from one side to the other, and throws unless all is as it should be. */
type Check = (from: Side, to: Side, size: number, name: string) => Promise<void>;

const operations: { name: string; check: Check; atomic?: true }[] = [
  { name: 'SEND, RECV', check: (...args) => checkSend(...args) },
  { name: 'SEND with immediate data, RECV', check: (...args) => checkSend(...args, randomInt(2 ** 32)) },
  { name: 'RDMA WRITE', check: checkWrite },
  { name: 'RDMA WRITE with immediate data', check: checkWriteWithImm },
  { name: 'RDMA READ', check: checkRead },
  {
    name: 'Compare and swap, equal: swaps',
    check: (...args) => checkCompareSwap(...args, true),
    atomic: true,
  },
  {
    name: 'Compare and swap, unequal: does not',
    check: (...args) => checkCompareSwap(...args, false),
    atomic: true,
  },
  { name: 'Fetch and add, past 2^64', check: checkFetchAdd, atomic: true },
];

/** Does every operation both ways, and reports each when it is verified. After a failure the pair can only be closed. */
export async function* verifyOperations(pair: EndpointPair): AsyncGenerator<OperationReport> {
  const { pathMtu } = pair;
  // One byte; one full packet; first, middle and last packets, the last one with padding.
  const sizes = [1, pathMtu, 3 * pathMtu + 5];
  const sides = [pair.a, pair.b].map((end) => openSide(end, Math.max(...sizes)));
  const [a, b] = sides as [Side, Side];
  for (const { name, check, atomic } of operations) {
    const lacking = [pair.a, pair.b].find(({ context }) => context.queryDevice().atomicCap === 'none');
    if (atomic && lacking) {
      const skipped = `${lacking.context.device.name} has no atomic operations`;
      yield { name, sizes: [], bytesVerified: 0, skipped };
      continue;
    }
    const used = atomic ? [8] : sizes;
    for (const size of used) {
      await check(a, b, size, name);
      await check(b, a, size, name);
    }
    yield { name, sizes: used, bytesVerified: 2 * used.reduce((sum, size) => sum + size, 0), skipped: null };
  }
  for (const { memory } of sides) memory.mr.close();
}

function openSide(end: Endpoint, largest: number): Side {
  const access = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
  const mr = end.pd.regMrSync(guard + largest + guard, { access });
  return {
    end,
    memory: new GuardedMemory(mr, `the memory of ${end.qp.label} on ${end.context.device.name}`),
  };
}

let requests = 0n;
let patterns = 0;
const nextId = () => ++requests;
const freshBytes = (size: number) => pattern(++patterns, size);

async function checkSend({ end, memory }: Side, peer: Side, size: number, name: string, immData?: number) {
  const message = freshBytes(size);
  memory.prepare(++patterns, message);
  peer.memory.prepare(++patterns);
  // The receive has room to spare, so that the length in its completion means something.
  const received = postReceive(peer, size + guard / 2, { opcode: 'recv', byteLen: size, immData });
  const sent = postSend({ end, memory }, 'send', {
    opcode: immData === undefined ? 'send' : 'sendWithImm',
    sge: { mr: memory.mr, offset: guard, length: size },
    ...(immData !== undefined && { immData }),
  });
  await awaitCompletions(name, [received, sent]);
  peer.memory.expect(message);
  verifyBoth(memory, peer.memory, name);
}

async function checkWrite(side: Side, peer: Side, size: number, name: string) {
  const { memory } = side;
  const message = freshBytes(size);
  memory.prepare(++patterns, message);
  peer.memory.prepare(++patterns);
  const told = postReceive(peer, 0, { opcode: 'recv', byteLen: 0 });
  const written = postSend(side, 'rdmaWrite', {
    opcode: 'rdmaWrite',
    sge: { mr: memory.mr, offset: guard, length: size },
    remote: peer.memory.mr.remote(guard, size),
  });
  const telling = tell(side);
  await awaitCompletions(name, [written, telling, told]);
  peer.memory.expect(message);
  verifyBoth(memory, peer.memory, name);
}

async function checkWriteWithImm(side: Side, peer: Side, size: number, name: string) {
  const { memory } = side;
  const message = freshBytes(size);
  const immData = randomInt(2 ** 32);
  memory.prepare(++patterns, message);
  peer.memory.prepare(++patterns);
  const told = postReceive(peer, 0, { opcode: 'recvRdmaWithImm', byteLen: size, immData });
  const written = postSend(side, 'rdmaWrite', {
    opcode: 'rdmaWriteWithImm',
    sge: { mr: memory.mr, offset: guard, length: size },
    remote: peer.memory.mr.remote(guard, size),
    immData,
  });
  await awaitCompletions(name, [written, told]);
  peer.memory.expect(message);
  verifyBoth(memory, peer.memory, name);
}

async function checkRead(side: Side, peer: Side, size: number, name: string) {
  const { memory } = side;
  const content = freshBytes(size);
  memory.prepare(++patterns);
  peer.memory.prepare(++patterns, content);
  const read = postSend(side, 'rdmaRead', {
    opcode: 'rdmaRead',
    sge: { mr: memory.mr, offset: guard, length: size },
    remote: peer.memory.mr.remote(guard, size),
  });
  await awaitCompletions(name, [read]);
  memory.expect(content);
  verifyBoth(memory, peer.memory, name);
}

// All eight bytes of each value differ, so that a wrong order of bytes or halves shows.
const before = 0x8123_4567_89ab_cdefn;
const swapped = 0xfedc_ba98_7654_3210n;

async function checkCompareSwap(side: Side, peer: Side, _size: number, name: string, equal: boolean) {
  const request: SendRequest = {
    opcode: 'atomicCmpAndSwp',
    compareAdd: equal ? before : before ^ 1n,
    swap: swapped,
  };
  await checkAtomic(side, peer, name, request, 'compSwap', before, equal ? swapped : before);
}

async function checkFetchAdd(side: Side, peer: Side, _size: number, name: string) {
  const request: SendRequest = { opcode: 'atomicFetchAndAdd', compareAdd: swapped };
  const sum = BigInt.asUintN(64, before + swapped);
  await checkAtomic(side, peer, name, request, 'fetchAdd', before, sum);
}

async function checkAtomic(
  side: Side,
  peer: Side,
  name: string,
  request: SendRequest,
  opcode: Expected['opcode'],
  from: bigint,
  to: bigint,
) {
  const { memory } = side;
  memory.prepare(++patterns);
  peer.memory.prepare(++patterns, hostOrder(from));
  const told = postReceive(peer, 0, { opcode: 'recv', byteLen: 0 });
  const done = postSend(side, opcode, {
    ...request,
    sge: { mr: memory.mr, offset: guard, length: 8 },
    remote: peer.memory.mr.remote(guard, 8),
  });
  const telling = tell(side);
  await awaitCompletions(name, [done, telling, told]);
  memory.expect(hostOrder(from));
  peer.memory.expect(hostOrder(to));
  verifyBoth(memory, peer.memory, name);
}

/** A message of no bytes: once it has come, the peer sees what was written or changed before it. */
function tell(side: Side): Expected {
  return postSend(side, 'send', { opcode: 'send' });
}

function postSend({ end }: Side, opcode: Expected['opcode'], request: SendRequest): Expected {
  const wrId = nextId();
  end.qp.postSend({ ...request, wrId });
  return { end, wrId, opcode };
}

function postReceive(
  { end, memory }: Side,
  length: number,
  expected: { opcode: Expected['opcode']; byteLen: number; immData?: number | undefined },
): Expected {
  const wrId = nextId();
  end.qp.postRecv({ wrId, ...(length > 0 && { sge: { mr: memory.mr, offset: guard, length } }) });
  const { opcode, byteLen, immData } = expected;
  return { end, wrId, opcode, byteLen, ...(immData !== undefined && { immData }) };
}

function verifyBoth(one: GuardedMemory, other: GuardedMemory, name: string): void {
  one.verify(name);
  other.verify(name);
}

function hostOrder(value: bigint): Uint8Array {
  return new Uint8Array(BigUint64Array.of(value).buffer);
}
