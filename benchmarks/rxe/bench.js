// @ts-check
// node-rdma's side of the comparison on a device, as bench.c has it: both ends in one process.
//
// bench.js ring|objects DEVICE_A DEVICE_B: reads commands from standard input as bench.c does, and answers each with a number. Besides
// them: `register BYTES`, how late the event loop is while so much is registered.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Access, CompletionRing, openDevice, ReceiveRing, SendFlags, SendRing } from '../../dist/index.js';
import { percentile, summarize } from '../../build/lib/perf/statistics.js';

/** @import { CompletionQueue, Context, MemoryRegion, ProtectionDomain, QueuePair, RemoteRegion, SendRequest } from '../../dist/index.js' */
/** @typedef {'send' | 'write' | 'read'} Verb */
/** @typedef {{ context: Context, pd: ProtectionDomain, mr: MemoryRegion, remote: RemoteRegion }} End */

const mostWindow = 128;
const mostReceives = 256;
const pollBatch = 16;
const memory = 4 << 20;
const accessOfPeers = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ;

const opcodes = /** @type {const} */ ({ send: 'send', write: 'rdmaWrite', read: 'rdmaRead' });

/**
 * @param {string} name
 * @returns {End}
 */
function openEnd(name) {
  const context = openDevice(name);
  const pd = context.allocPd();
  const mr = pd.regMrSync(memory, { access: accessOfPeers });
  return { context, pd, mr, remote: mr.remote() };
}

/**
 * Messages lie one after the other, and begin again where the memory ends.
 * @param {number} number
 * @param {number} size
 */
const placeOf = (number, size) => (number % Math.floor(memory / size)) * size;

/** One end of one connection: descriptors in a ring. */
class RingFlow {
  /**
   * @param {QueuePair} qp
   * @param {End} local
   * @param {RemoteRegion} remote
   */
  constructor(qp, local, remote) {
    this.mr = local.mr;
    this.remote = remote;
    this.sends = new SendRing(qp);
    this.receives = new ReceiveRing(qp);
  }

  /**
   * @param {Verb} verb
   * @param {number} id
   * @param {number} number
   * @param {number} size
   * @param {boolean} signaled
   */
  write(verb, id, number, size, signaled) {
    const at = placeOf(number, size);
    const flags = signaled ? SendFlags.SIGNALED : 0;
    if (verb === 'send') this.sends.send(id, this.mr, at, size, flags);
    else if (verb === 'write') this.sends.rdmaWrite(id, this.mr, at, size, this.remote, at, flags);
    else this.sends.rdmaRead(id, this.mr, at, size, this.remote, at, flags);
  }

  post() {
    this.sends.post();
  }

  /**
   * @param {number} count
   * @param {number} size
   */
  receive(count, size) {
    for (let i = 0; i < count; ++i) this.receives.receive(0, this.mr, 0, size);
    this.receives.post();
  }
}

/** The same with objects. */
class ObjectFlow {
  /** @type {SendRequest[]} */
  #requests = [];

  /**
   * @param {QueuePair} qp
   * @param {End} local
   * @param {RemoteRegion} remote
   */
  constructor(qp, local, remote) {
    this.qp = qp;
    this.mr = local.mr;
    this.remote = remote;
  }

  /**
   * @param {Verb} verb
   * @param {number} id
   * @param {number} number
   * @param {number} size
   * @param {boolean} signaled
   */
  write(verb, id, number, size, signaled) {
    const sge = { mr: this.mr, offset: placeOf(number, size), length: size };
    const opcode = opcodes[verb];
    this.#requests.push(
      verb === 'send'
        ? { opcode, wrId: id, sge, signaled }
        : { opcode, wrId: id, sge, signaled, remote: this.remote },
    );
  }

  post() {
    this.qp.postSend(this.#requests);
    this.#requests = [];
  }

  /**
   * @param {number} count
   * @param {number} size
   */
  receive(count, size) {
    const request = { sge: { mr: this.mr, offset: 0, length: size } };
    this.qp.postRecv(Array.from({ length: count }, () => request));
  }
}

/** Completions of one end, read from the records. */
class RingCompletions {
  /** @param {CompletionQueue} cq */
  constructor(cq) {
    this.cq = cq;
    this.ring = new CompletionRing(cq);
  }

  /** @param {(id: number) => void} [take] @param {number} [most] @returns {number} */
  poll(take, most = pollBatch) {
    const count = this.ring.poll(most);
    for (let i = 0; i < count; ++i) {
      if (this.ring.status(i) !== 0) throw this.ring.completion(i).error;
      take?.(this.ring.id(i));
    }
    return count;
  }
}

/** The same as objects. */
class ObjectCompletions {
  /** @param {CompletionQueue} cq */
  constructor(cq) {
    this.cq = cq;
  }

  /** @param {(id: number) => void} [take] @param {number} [most] @returns {number} */
  poll(take, most = pollBatch) {
    const completions = this.cq.poll(most);
    for (const { wrId, error } of completions) {
      if (error) throw error;
      take?.(Number(wrId));
    }
    return completions.length;
  }
}

const [mode = '', nameA = '', nameB = ''] = process.argv.slice(2);
const [Flow, Completions] = mode === 'ring' ? [RingFlow, RingCompletions] : [ObjectFlow, ObjectCompletions];
const ends = /** @type {const} */ ([openEnd(nameA), openEnd(nameB)]);

/**
 * @typedef {{ flows: (RingFlow | ObjectFlow)[], completions: RingCompletions | ObjectCompletions }} Side
 * @type {Map<number, Promise<[Side, Side]>>}
 */
const sessions = new Map();

/** A queue pair for each connection, and one completion queue for each end. @param {number} queuePairs */
function sessionOf(queuePairs) {
  let session = sessions.get(queuePairs);
  if (session === undefined) sessions.set(queuePairs, (session = openSession(queuePairs)));
  return session;
}

/**
 * @param {number} queuePairs
 * @returns {Promise<[Side, Side]>}
 */
async function openSession(queuePairs) {
  const maxSendWr = queuePairs === 1 ? mostWindow : 16;
  const maxRecvWr = queuePairs === 1 ? mostReceives : 1;
  const sides = ends.map((end) => {
    const cq = end.context.createCq({ cqe: (maxSendWr + maxRecvWr) * queuePairs });
    const make = () => end.pd.createQp({ type: 'rc', cq, maxSendWr, maxRecvWr });
    return { end, cq, queuePairs: Array.from({ length: queuePairs }, make) };
  });
  const [a, b] = /** @type {[typeof sides[0], typeof sides[0]]} */ (sides);
  for (const [i, qp] of a.queuePairs.entries()) {
    const other = /** @type {QueuePair} */ (b.queuePairs[i]);
    const [endpoint, otherEndpoint] = [qp.endpoint(), other.endpoint()];
    await qp.connect(otherEndpoint, { rnrRetry: 7 });
    await other.connect(endpoint, { rnrRetry: 7 });
  }
  const side = (/** @type {typeof a} */ mine, /** @type {typeof a} */ theirs) => ({
    flows: mine.queuePairs.map((qp) => new Flow(qp, mine.end, theirs.end.remote)),
    completions: new Completions(mine.cq),
  });
  return [side(a, b), side(b, a)];
}

/** What streams one way, as fast as the window allows. */
class Stream {
  /**
   * @param {[Side, Side]} sides
   * @param {{ verb: Verb, size: number, window: number, signal: number, messages: number }} plan
   */
  constructor([from, to], plan) {
    this.from = from;
    this.to = to;
    this.plan = plan;
    this.posted = new Uint32Array(from.flows.length);
    this.completed = new Uint32Array(from.flows.length);
    this.open = from.flows.length;
    this.received = 0;
    this.ahead = 0;
    this.complete = this.complete.bind(this);
    if (plan.verb === 'send') this.replenish(mostReceives);
  }

  get done() {
    return this.open === 0 && (this.plan.verb !== 'send' || this.received === this.plan.messages);
  }

  /** Posts what there is room for. */
  fill() {
    const { flows } = this.from;
    const { verb, size, window, signal, messages } = this.plan;
    const { posted, completed } = this;
    for (let q = 0; q < flows.length; ++q) {
      const flow = /** @type {RingFlow | ObjectFlow} */ (flows[q]);
      const done = posted[q] ?? 0;
      const room = Math.min(window - (done - (completed[q] ?? 0)), messages - done);
      if (room === 0) continue;
      for (let number = done; number < done + room; ++number)
        flow.write(verb, q, number, size, (number + 1) % signal === 0 || number + 1 === messages);
      posted[q] = done + room;
      flow.post();
    }
  }

  /** Takes completions; returns how many sends have ended with them. */
  poll() {
    const count = this.from.completions.poll(this.complete);
    if (this.plan.verb !== 'send') return count;
    // All that have come: a message that found no receive would wait for a timer.
    for (let some = pollBatch; some === pollBatch;) {
      some = this.to.completions.poll();
      this.received += some;
      this.replenish(some);
    }
    return count;
  }

  /** @param {number} q */
  complete(q) {
    const { signal, messages } = this.plan;
    const completed = Math.min((this.completed[q] ?? 0) + signal, messages);
    this.completed[q] = completed;
    if (completed === messages) --this.open;
  }

  /** @param {number} count of receives, unless fewer messages are to come */
  replenish(count) {
    const more = Math.min(count, this.plan.messages - this.ahead);
    if (more > 0) this.to.flows[0]?.receive(more, this.plan.size);
    this.ahead += more;
  }
}

/**
 * Messages a second.
 * @param {Verb} verb
 * @param {number} size
 * @param {number} window
 * @param {number} signal
 * @param {number} queuePairs
 * @param {number} messages for each queue pair
 */
async function bandwidth(verb, size, window, signal, queuePairs, messages) {
  const stream = new Stream(await sessionOf(queuePairs), { verb, size, window, signal, messages });
  const began = performance.now();
  while (!stream.done) {
    stream.fill();
    stream.poll();
  }
  return (messages * queuePairs * 1000) / (performance.now() - began);
}

/**
 * Half a round in microseconds, the median.
 * @param {Verb} verb
 * @param {number} size
 * @param {string} wait
 * @param {number} rounds
 */
async function latency(verb, size, wait, rounds) {
  const sides = await sessionOf(1);
  const samples = new Float64Array(rounds);
  const flows = sides.map((side) => /** @type {RingFlow} */ (side.flows[0]));
  if (verb === 'send') for (const flow of flows) flow.receive(1, size);
  for (let i = 0; i < rounds; ++i) {
    const began = performance.now();
    for (let from = 0; from < 2; ++from) {
      if (verb === 'write') playWrite(sides, from, size, (2 * i + from + 1) & 0xff);
      else if (wait === 'events') await playSendAsleep(sides, from, size, i + 1 === rounds);
      else playSend(sides, from, size, i + 1 === rounds);
    }
    samples[i] = ((performance.now() - began) / 2) * 1000;
  }
  return summarize(samples).p50;
}

/**
 * @param {[Side, Side]} sides
 * @param {number} from
 * @param {number} size
 * @param {boolean} last
 */
function playSend(sides, from, size, last) {
  const [sender, receiver] = pair(sides, from);
  sendOne(sender, 'send', size);
  while (receiver.completions.poll(undefined, 1) === 0);
  if (!last) receiver.flows[0]?.receive(1, size);
  while (sender.completions.poll(undefined, 1) === 0);
}

/**
 * @param {[Side, Side]} sides
 * @param {number} from
 * @param {number} size
 * @param {boolean} last
 */
async function playSendAsleep(sides, from, size, last) {
  const [sender, receiver] = pair(sides, from);
  sendOne(sender, 'send', size);
  while (receiver.completions.poll(undefined, 1) === 0)
    await receiver.completions.cq.wait({ spinMicroseconds: 0 });
  if (!last) receiver.flows[0]?.receive(1, size);
  while (sender.completions.poll(undefined, 1) === 0)
    await sender.completions.cq.wait({ spinMicroseconds: 0 });
}

/**
 * The last byte tells that the message has come.
 * @param {[Side, Side]} sides
 * @param {number} from
 * @param {number} size
 * @param {number} number
 */
function playWrite(sides, from, size, number) {
  const [sender, receiver] = pair(sides, from);
  const [source, target] = [bytesOf(sender), bytesOf(receiver)];
  source[size - 1] = number;
  sendOne(sender, 'write', size);
  while (Atomics.load(target, size - 1) !== number);
  while (sender.completions.poll(undefined, 1) === 0);
}

/** @param {Side} side */
function bytesOf(side) {
  return /** @type {RingFlow} */ (side.flows[0]).mr.buffer;
}

/** @param {[Side, Side]} sides @param {number} from @returns {[Side, Side]} */
const pair = ([a, b], from) => (from === 0 ? [a, b] : [b, a]);

/** @param {Side} side @param {Verb} verb @param {number} size */
function sendOne(side, verb, size) {
  const flow = /** @type {RingFlow} */ (side.flows[0]);
  flow.write(verb, 0, 0, size, true);
  flow.post();
}

/** How late timers of a millisecond are while something else goes on. */
class LatenessSampler {
  #stopped = false;
  /** @type {number[]} */
  #samples = [];

  async run() {
    while (!this.#stopped) {
      const began = performance.now();
      await sleep(1);
      this.#samples.push(Math.max(performance.now() - began - 1, 0));
    }
  }

  stop() {
    this.#stopped = true;
  }

  /** @param {number} percent */
  percentile(percent) {
    return percentile(Float64Array.from(this.#samples).sort(), percent);
  }
}

/**
 * 99th percentile of how late a timer of a millisecond is while writes stream, in milliseconds.
 * @param {number} size
 * @param {number} window
 * @param {number} milliseconds
 */
async function delay(size, window, milliseconds) {
  const sides = await sessionOf(1);
  const sampler = new LatenessSampler();
  const sampling = sampler.run();
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    const stream = new Stream(sides, { verb: 'write', size, window, signal: window / 2, messages: 200 });
    while (!stream.done) {
      stream.fill();
      await sides[0].completions.cq.wait();
      stream.poll();
    }
  }
  sampler.stop();
  await sampling;
  return sampler.percentile(99);
}

/**
 * 99th percentile of how late a timer of a millisecond is while so many bytes are registered, in milliseconds.
 * @param {number} bytes
 */
async function register(bytes) {
  const sampler = new LatenessSampler();
  const sampling = sampler.run();
  const mr = await ends[0].pd.regMr(bytes);
  sampler.stop();
  await sampling;
  await mr.closeAsync();
  return sampler.percentile(99);
}

/** @type {Record<string, (...parameters: any[]) => Promise<number | null>>} */
const commands = { bandwidth, latency, delay, register };

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [name = '', ...parameters] = line.split(' ');
  const values = parameters.map((value) => (/^\d+$/.test(value) ? Number(value) : value));
  commands[name]?.(...values).then(
    (figure) => console.log(figure),
    (/** @type {Error} */ error) => {
      console.error(error);
      process.exit(1);
    },
  );
});
await once(lines, 'close');
for (const { context } of ends) context.close({ cascade: true });
