// A world of verbs objects on both devices, and beside each what the specification says of it. A step does the same to both: what is
// legal must succeed, what is not must be refused and change nothing, and memory must hold the bytes that the model has.
import { expect } from 'vitest';
import {
  Access,
  openDevice,
  type CompletionQueue,
  type Context,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type WorkCompletion,
} from '../../lib/index.js';
import { ALL_REMOTE, deviceA, deviceB, pattern } from './device.js';

interface Side {
  name: string | undefined;
  context: Context;
  domains: ProtectionDomain[];
  queues: CompletionQueue[];
  regions: Region[];
  pairs: Pair[];
}

interface Region {
  pd: ProtectionDomain;
  mr: MemoryRegion;
  /** What its bytes must be. */
  bytes: Buffer;
}

/** One end of what may be a connection. */
interface Pair {
  side: Side;
  pd: ProtectionDomain;
  cq: CompletionQueue;
  qp: QueuePair;
  depth: { maxSendWr: number; maxRecvWr: number };
  state: 'reset' | 'rts' | 'err';
  peer?: Pair;
  sends: Request[];
  receives: Request[];
}

interface Request {
  id: bigint;
  pair: Pair;
  receive: boolean;
  length: number;
  /** None for data that was copied into the request. */
  place?: { region: Region; offset: number };
  inline?: Buffer;
  /** Bytes that its completion must tell of, for a receive. */
  arrived?: number;
}

/** The choices of a step, each a whole number from 0. */
export interface Choices {
  a: number;
  b: number;
  c: number;
  d: number;
}

const MOST = { domains: 2, queues: 2, regions: 6, pairs: 4 };
const MOST_INLINE = 64;
const PATIENCE_MS = 60_000;
const CONNECT = { rnrRetry: 7, minRnrTimer: 1, timeout: 14, retryCnt: 7 };

/** The refusals of verbs and of arguments. Anything else, a TypeError of our own code above all, is a defect. */
const REFUSED =
  /^ERR_(RDMA_(BUSY|CLOSED|FOREIGN_OBJECT|INVALID_DESCRIPTOR|INVALID_STATE|LIMIT|QUEUE_FULL)|OUT_OF_RANGE)$/;

/** How often what came about, over all worlds: steps alone do not tell whether there was anything to do them to. */
export const tally = {
  ...{ received: 0, waited: 0, tooLong: 0, rdmaWrite: 0, rdmaRead: 0, atomicFetchAndAdd: 0, outside: 0 },
  ...{ flushed: 0, forgotten: 0, full: 0, refused: 0 },
};

export class World {
  /** What was done, in words: for whoever looks into a failure. */
  readonly trace: string[] = [];
  readonly #sides: [Side, Side] = [open(deviceA), open(deviceB)];
  readonly #outstanding = new Map<bigint, Request>();
  /** Requests of queue pairs that were reset or closed: their completions may still come, or not. */
  readonly #forgotten = new Set<bigint>();
  #nextId = 1n;

  readonly steps: Record<string, (choices: Choices) => void | Promise<void>> = {
    allocPd: ({ a }) => {
      const side = this.#side(a);
      if (side.domains.length < MOST.domains) side.domains.push(side.context.allocPd());
    },
    createCq: ({ a, b }) => {
      const side = this.#side(a);
      if (side.queues.length < MOST.queues) side.queues.push(side.context.createCq({ cqe: 1 + (b % 40) }));
    },
    regMr: ({ a, b, c, d }) => {
      const side = this.#side(a);
      const pd = pick(side.domains, b);
      if (pd && side.regions.length < MOST.regions) side.regions.push(register(pd, 1 + (c % 12_000), d));
    },
    regManyAtOnce: async ({ a, b, c }) => {
      const side = this.#side(a);
      const pd = pick(side.domains, b);
      if (!pd) return;
      const all = await Promise.all([1, 2, 3].map((times) => pd.regMr(times * (1 + (c % 5000)))));
      await Promise.all(all.map((mr) => mr.closeAsync()));
    },
    createQp: ({ a, b, c, d }) => {
      const side = this.#side(a);
      const [pd, cq] = [pick(side.domains, b), pick(side.queues, c)];
      if (!pd || !cq || side.pairs.length >= MOST.pairs) return;
      const depth = { maxSendWr: 1 + (d % 8), maxRecvWr: 1 + (d % 5) };
      const qp = pd.createQp({ type: 'rc', cq, ...depth, maxInlineData: MOST_INLINE });
      side.pairs.push({ side, pd, cq, qp, depth, state: 'reset', sends: [], receives: [] });
    },
    connect: async ({ a, b }) => {
      const fresh = (side: Side) => side.pairs.filter(({ state }) => state === 'reset');
      const [one, other] = [pick(fresh(this.#sides[0]), a), pick(fresh(this.#sides[1]), b)];
      if (!one || !other) return;
      const [endpointOne, endpointOther] = [one.qp.endpoint(), other.qp.endpoint()];
      await one.qp.connect(endpointOther, CONNECT);
      await other.qp.connect(endpointOne, CONNECT);
      for (const pair of [one, other]) pair.state = 'rts';
      this.trace.push(`connected ${name(one)} to ${name(other)}`);
      one.peer = other;
      other.peer = one;
    },
    postReceive: async (choices) => {
      const pair = this.#connected(choices.a);
      const place = pair && this.#place(pair, choices, true);
      if (!pair || !place) return;
      const request = this.#request(pair, { receive: true, ...place });
      const { mr } = place.place.region;
      const posted = this.#try('receive', pair, request, pair.state === 'rts', () =>
        pair.qp.postRecv({ wrId: request.id, sge: { mr, offset: place.place.offset, length: place.length } }),
      );
      if (posted) await this.#deliver(pair.peer!);
    },
    send: async (choices) => {
      const { d } = choices;
      const pair = this.#connected(choices.a);
      const place = pair && this.#place(pair, choices);
      if (!pair || !place) return;
      const { region, offset } = place.place;
      const inline = place.length <= MOST_INLINE && d % 2 === 0;
      const request = this.#request(
        pair,
        inline
          ? { receive: false, length: place.length, inline: pattern(place.length, d) }
          : { receive: false, ...place },
      );
      const data = inline
        ? { inline: request.inline! }
        : { sge: { mr: region.mr, offset, length: place.length } };
      const posted = this.#try('send', pair, request, pair.state === 'rts', () =>
        pair.qp.postSend({ wrId: request.id, opcode: 'send', ...data }),
      );
      if (posted) await this.#deliver(pair);
    },
    write: (choices) => this.#oneSided(choices, 'rdmaWrite'),
    read: (choices) => this.#oneSided(choices, 'rdmaRead'),
    fetchAdd: (choices) => this.#oneSided(choices, 'atomicFetchAndAdd'),
    outsideTheRegion: ({ a, b, c }) => {
      const pair = this.#pair(a);
      const region = pair && pick(this.#regionsOf(pair), b);
      if (!pair || !region) return;
      const { length } = region.mr;
      for (const sge of [
        { mr: region.mr, offset: length - (c % length), length: 1 + (c % length) },
        { mr: region.mr, offset: length + 1 },
        { mr: region.mr, offset: 0, length: 2 ** 32 },
      ]) {
        this.#refused(() => pair.qp.postRecv({ sge }));
        this.#refused(() => pair.qp.postSend({ opcode: 'send', sge }));
      }
    },
    ofAnotherDomain: ({ a, b }) => {
      const pair = this.#pair(a);
      const others = this.#sides.flatMap(({ regions }) => regions).filter(({ pd }) => pd !== pair?.pd);
      const region = pick(others, b);
      if (!pair || !region) return;
      this.#refused(() => pair.qp.postRecv({ sge: { mr: region.mr } }));
      this.#refused(() => pair.qp.postSend({ opcode: 'send', sge: { mr: region.mr } }));
    },
    fail: async ({ a }) => {
      const pair = this.#pair(a);
      if (pair?.state === 'rts') await this.#die(pair);
    },
    reset: ({ a }) => {
      const pair = this.#pair(a);
      if (!pair) return;
      for (const end of ends(pair)) this.#reset(end);
    },
    resizeCq: async ({ a, b, c }) => {
      const cq = pick(this.#side(a).queues, b);
      if (!cq) return;
      const cqe = 1 + (c % 60);
      const taken = [...this.#outstanding.values()].filter(({ pair }) => pair.cq === cq).length;
      const refused = await settled(cq.resize(cqe));
      // The completions that nobody waits for any more may take entries too.
      if (refused) expectRefusal(refused);
      else expect(cqe).toBeGreaterThanOrEqual(taken);
    },
    closeQp: async ({ a }) => {
      const pair = this.#pair(a);
      if (!pair) return;
      const { peer } = pair;
      this.trace.push(`closes ${name(pair)}`);
      pair.qp.close();
      this.#forget(pair);
      remove(pair.side.pairs, pair);
      if (peer) await this.#end(peer);
      this.#refused(() => pair.qp.postRecv({}));
    },
    closeMr: ({ a, b }) => {
      const side = this.#side(a);
      const region = pick(side.regions, b);
      if (!region) return;
      const named = [...this.#outstanding.values()].some(({ place }) => place?.region === region);
      if (named) return this.#refused(() => region.mr.close());
      region.mr.close();
      remove(side.regions, region);
      const pair = side.pairs.find(({ pd }) => pd === region.pd);
      if (pair) this.#refused(() => pair.qp.postRecv({ sge: { mr: region.mr } }));
    },
    closeCq: ({ a, b }) => {
      const side = this.#side(a);
      const cq = pick(side.queues, b);
      if (!cq) return;
      if (side.pairs.some((pair) => pair.cq === cq)) return this.#refused(() => cq.close());
      cq.close();
      remove(side.queues, cq);
      this.#refused(() => cq.poll());
    },
    closePd: ({ a, b }) => {
      const side = this.#side(a);
      const pd = pick(side.domains, b);
      if (!pd) return;
      const inUse = [...side.pairs, ...side.regions].some((child) => child.pd === pd);
      if (inUse) return this.#refused(() => pd.close());
      pd.close();
      remove(side.domains, pd);
      this.#refused(() => pd.regMrSync(64));
    },
    closeDevice: async ({ a, b }) => {
      if (b % 8 !== 0) return; // it takes the whole world with it
      const side = this.#side(a);
      const peers = side.pairs.flatMap(({ peer }) => peer ?? []);
      for (const pair of side.pairs) this.#forget(pair);
      this.trace.push(`closes ${side.context.label}`);
      side.context.close({ cascade: true });
      Object.assign(side, open(side.name));
      for (const peer of peers) await this.#end(peer);
    },
    compare: () => this.compare(),
  };

  /** @throws where memory is not as the model has it */
  compare(): void {
    for (const { regions } of this.#sides) {
      for (const { mr, bytes } of regions) {
        if (!mr.buffer.equals(bytes)) throw new Error(`${mr.label} does not have the bytes of the model`);
      }
    }
  }

  close(): void {
    for (const { context } of this.#sides) context.close({ cascade: true });
  }

  #side(choice: number): Side {
    return this.#sides[choice & 1]!;
  }

  #pair(choice: number): Pair | undefined {
    return pick(
      this.#sides.flatMap(({ pairs }) => pairs),
      choice,
    );
  }

  /** Mostly one that is connected. */
  #connected(choice: number): Pair | undefined {
    const all = this.#sides.flatMap(({ pairs }) => pairs).filter(({ state }) => state === 'rts');
    return (choice % 5 === 0 ? undefined : pick(all, choice)) ?? this.#pair(choice);
  }

  #regionsOf(pair: Pair): Region[] {
    return pair.side.regions.filter(({ pd }) => pd === pair.pd);
  }

  #place(pair: Pair, { b, c, d }: Choices, receive = false) {
    const region = pick(this.#regionsOf(pair), b);
    if (!region) return undefined;
    const offset = c % Math.ceil(region.mr.length / 4);
    const length = Math.min(
      receive ? 9000 - (d % 3000) : d % 4 === 0 ? d % 65 : d % 8000,
      region.mr.length - offset,
    );
    return { place: { region, offset }, length };
  }

  #request(pair: Pair, rest: Omit<Request, 'id' | 'pair'>): Request {
    return { id: this.#nextId++, pair, ...rest };
  }

  /** Posts a request, which is refused where the state forbids it or a queue is full. @returns whether it was posted */
  #try(what: string, pair: Pair, request: Request, legal: boolean, post: () => void): boolean {
    const mine = request.receive ? pair.receives : pair.sends;
    try {
      post();
    } catch (error) {
      expectRefusal(error);
      ++tally[legal ? 'full' : 'refused'];
      if (legal) expect((error as { code: string }).code).toBe('ERR_RDMA_QUEUE_FULL');
      return false;
    }
    // In ERR a request is taken, and flushed.
    if (!legal) expect(pair.state).toBe('err');
    expect(mine.length).toBeLessThan(request.receive ? pair.depth.maxRecvWr : pair.depth.maxSendWr);
    this.#outstanding.set(request.id, request);
    mine.push(request);
    this.trace.push(`posted ${what} ${request.id} of ${request.length} bytes on ${name(pair)}`);
    if (legal && !request.receive && pair.peer!.receives.length === 0) ++tally.waited;
    return legal;
  }

  /** What waits to be sent on one end and the receives of its peer meet, in order. */
  async #deliver(from: Pair): Promise<void> {
    const to = from.peer!;
    while (from.sends.length > 0 && to.receives.length > 0) {
      const [sent, received] = [from.sends[0]!, to.receives[0]!];
      if (sent.length > received.length) {
        await this.#until(() => !this.#outstanding.has(sent.id), [from, to], [from, to]);
        ++tally.tooLong;
        return this.#die(from, received);
      }
      received.arrived = sent.length;
      ++tally.received;
      const data =
        sent.inline ??
        sent.place!.region.bytes.subarray(sent.place!.offset, sent.place!.offset + sent.length);
      data.copy(received.place!.region.bytes, received.place!.offset);
      await this.#until(() => ![sent, received].some(({ id }) => this.#outstanding.has(id)), [from, to]);
    }
  }

  async #oneSided(choices: Choices, opcode: 'rdmaWrite' | 'rdmaRead' | 'atomicFetchAndAdd'): Promise<void> {
    const { b, c, d } = choices;
    const pair = this.#connected(choices.a);
    const own = pair && this.#place(pair, choices);
    const theirs = pair?.peer && pick(this.#regionsOf(pair.peer), d);
    // Behind a SEND that waits for its receive, nothing goes.
    if (!pair || !own || !theirs || pair.state !== 'rts' || pair.sends.length > 0) return;
    const atomic = opcode === 'atomicFetchAndAdd';
    const length = atomic ? 8 : own.length;
    const { region } = own.place;
    const offset = atomic ? 0 : own.place.offset;
    const at = atomic ? 0 : b % theirs.mr.length;
    if (atomic && (region.mr.length < 8 || theirs.mr.length < 8)) return;
    const outside = at + length > theirs.mr.length;
    const request = this.#request(pair, { receive: false, length, place: { region, offset } });
    const posted = this.#try(opcode, pair, request, true, () =>
      pair.qp.postSend({
        wrId: request.id,
        opcode,
        sge: { mr: region.mr, offset, length },
        remote: { address: theirs.mr.address + BigInt(at), rkey: theirs.mr.rkey },
        compareAdd: BigInt(c),
      }),
    );
    if (!posted) return;
    if (outside && length > 0) {
      await this.#until(() => !this.#outstanding.has(request.id), [pair], ends(pair));
      ++tally.outside;
      return this.#die(pair, request);
    }
    if (opcode === 'rdmaWrite') region.bytes.copy(theirs.bytes, at, offset, offset + length);
    else if (opcode === 'rdmaRead') theirs.bytes.copy(region.bytes, offset, at, at + length);
    else {
      const before = theirs.bytes.readBigUInt64LE(at);
      theirs.bytes.writeBigUInt64LE(BigInt.asUintN(64, before + BigInt(c)), at);
      region.bytes.writeBigUInt64LE(before, offset);
    }
    await this.#until(() => !this.#outstanding.has(request.id), [pair]);
    ++tally[opcode];
  }

  /** Both ends of a connection go to ERR, and all that was posted is flushed. */
  async #die(pair: Pair, ...failed: Request[]): Promise<void> {
    const all = ends(pair);
    const requests = [...failed, ...all.flatMap(({ sends, receives }) => [...sends, ...receives])];
    for (const end of all) await this.#end(end);
    // A message that was too long, or a READ that failed, may have left a part of itself.
    for (const { place } of requests) place?.region.mr.buffer.copy(place.region.bytes);
  }

  async #end(pair: Pair): Promise<void> {
    this.trace.push(`to ERR ${name(pair)}`);
    pair.qp.modifySync({ qpState: 'err' });
    pair.state = 'err';
    delete pair.peer;
    const flushed = [...pair.sends, ...pair.receives];
    tally.flushed += flushed.length;
    await this.#until(() => !flushed.some(({ id }) => this.#outstanding.has(id)), [pair]);
  }

  #reset(pair: Pair): void {
    this.trace.push(`to RESET ${name(pair)}`);
    pair.qp.modifySync({ qpState: 'reset' });
    pair.state = 'reset';
    delete pair.peer;
    for (const { place } of [...pair.sends, ...pair.receives])
      place?.region.mr.buffer.copy(place.region.bytes);
    this.#forget(pair);
  }

  #forget(pair: Pair): void {
    for (const { id } of [...pair.sends.splice(0), ...pair.receives.splice(0)]) {
      this.#outstanding.delete(id);
      this.#forgotten.add(id);
      ++tally.forgotten;
    }
  }

  /** @param failing whose requests must not succeed */
  async #until(done: () => boolean, pairs: Pair[], failing: Pair[] = []): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!done()) {
      for (const { cq } of pairs) for (const completion of cq.poll()) this.#take(completion, failing);
      if (Date.now() > deadline)
        throw new Error(`completions do not come: ${[...this.#outstanding.keys()].join()}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #take({ wrId, status, byteLen, qpNum }: WorkCompletion, failing: Pair[]): void {
    const request = this.#outstanding.get(wrId);
    if (request === undefined) {
      if (!this.#forgotten.delete(wrId)) throw new Error(`a second completion, or one of nothing: ${wrId}`);
      return;
    }
    this.#outstanding.delete(wrId);
    this.trace.push(`completed ${wrId}: ${status}`);
    const { pair, receive } = request;
    remove(receive ? pair.receives : pair.sends, request);
    expect(qpNum).toBe(pair.qp.qpNum);
    const fails = failing.includes(pair) || pair.state === 'err';
    if (fails) expect(status).not.toBe('success');
    else expect(status).toBe('success');
    if (receive && !fails) expect(byteLen).toBe(request.arrived);
  }

  #refused(action: () => unknown): void {
    try {
      action();
    } catch (error) {
      ++tally.refused;
      return expectRefusal(error);
    }
    throw new Error(`not refused: ${String(action)}`);
  }
}

const name = ({ side, qp }: Pair) => `${side.context.device.name} QP ${qp.qpNum}`;

function open(name: string | undefined): Side {
  const context = openDevice(name);
  return { name, context, domains: [], queues: [], regions: [], pairs: [] };
}

function register(pd: ProtectionDomain, length: number, seed: number): Region {
  const mr = pd.regMrSync(length, { access: seed % 16 === 0 ? Access.LOCAL_WRITE | ALL_REMOTE : ALL_REMOTE });
  const bytes = pattern(length, seed);
  bytes.copy(mr.buffer);
  return { pd, mr, bytes };
}

const ends = (pair: Pair): Pair[] => (pair.peer ? [pair, pair.peer] : [pair]);

function pick<T>(list: readonly T[], choice: number): T | undefined {
  return list.length === 0 ? undefined : list[choice % list.length];
}

function remove<T>(list: T[], item: T): void {
  list.splice(list.indexOf(item), 1);
}

function expectRefusal(error: unknown): void {
  expect(error).toMatchObject({ code: expect.stringMatching(REFUSED) as string });
}

async function settled(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error;
  }
}
