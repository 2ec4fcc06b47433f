import type { Mtu } from '../verbs/constants.js';
import { RdmaError } from '../verbs/errors.js';
import { Endpoint } from './endpoint.js';
import { BandwidthMeasurement } from './loops/bandwidth.js';
import { LatencyMeasurement } from './loops/latency.js';
import type { Scene } from './loops/measurement.js';
import type { PerfProgress } from './options.js';
import type { Plan } from './plan.js';
import { bandwidthOf, ofRates, sumOf, type Bandwidth, type SizeResult } from './results.js';
import type { Exchange } from './wire/exchange.js';
import { decodeReport, emptyReport, encodeReport, type Key, type Report } from './wire/messages.js';
import { open, type Agreement } from './wire/opening.js';
import { scripts } from './wire/script.js';

export interface SessionHooks {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: PerfProgress) => void) | undefined;
  /** What was found out of the connection, before anything is measured. */
  onConnected?: ((connected: Connected) => void) | undefined;
  onResult?: ((result: SizeResult) => void) | undefined;
  /** At its end, while the memory is still there. */
  onFinished?: ((endpoint: Endpoint) => void) | undefined;
}

/** Two ends that are connected. */
export interface Connected {
  agreement: Agreement;
  pathMtu: Mtu;
  local: Key[];
  remote: Key[];
}

/**
 * One session with a peer, from its first message to its last.
 *
 * @throws RdmaError, WorkCompletionError, AbortError; each result was given to `onResult` before
 */
export async function runSession(plan: Plan, exchange: Exchange, hooks: SessionHooks): Promise<void> {
  const agreement = await open(exchange, plan);
  const endpoint = await Endpoint.open(plan, agreement);
  await exchange.join?.(endpoint);
  await new Session(plan, exchange, endpoint, agreement, hooks).run();
  hooks.onFinished?.(endpoint);
}

class Session {
  readonly #plan: Plan;
  readonly #exchange: Exchange;
  readonly #endpoint: Endpoint;
  readonly #agreement: Agreement;
  readonly #hooks: SessionHooks;
  readonly #scene: Scene;
  readonly #keys: Key[];

  constructor(plan: Plan, exchange: Exchange, endpoint: Endpoint, agreement: Agreement, hooks: SessionHooks) {
    this.#plan = plan;
    this.#exchange = exchange;
    this.#endpoint = endpoint;
    this.#agreement = agreement;
    this.#hooks = hooks;
    this.#keys = endpoint.keys();
    this.#scene = {
      settings: plan.settings,
      endpoint,
      agreement,
      exchange,
      signal: hooks.signal,
      onProgress: hooks.onProgress,
    };
  }

  async run(): Promise<void> {
    const { settings } = this.#plan;
    const { before, after, ends } = scripts[settings.test];
    let remote: Key[] = [];
    for (const step of before) {
      if (step === 'sync') await this.#sync();
      else remote = await this.#swapKeys();
    }
    if (this.#exchange.join === undefined) {
      this.#checkGids(remote[0]!);
      await this.#endpoint.connect(remote, this.#agreement.mtu);
    } else {
      this.#endpoint.reach(remote);
    }
    const pathMtu = this.#endpoint.pathMtu(this.#agreement.mtu);
    this.#hooks.onConnected?.({ agreement: this.#agreement, pathMtu, local: this.#keys, remote });
    for (const step of after) {
      if (step === 'sync') await this.#sync();
      else await this.#swapKeys();
    }
    await this.#measure();
    if (ends) await this.#sync(this.#passive() ? Infinity : undefined);
    this.#exchange.end();
  }

  #measure(): Promise<void> {
    const { measure, verb, bidirectional } = this.#plan.settings;
    if (measure === 'lat') return this.#measureLatency();
    if (verb === 'send') return this.#measureSends();
    return bidirectional ? this.#measureBothWays() : this.#measureOneWay();
  }

  /** A server that only lends its memory. */
  #passive(): boolean {
    const { verb, bidirectional, test } = this.#plan.settings;
    return this.#exchange.role === 'server' && verb !== 'send' && test !== 'write-lat' && !bidirectional;
  }

  async #measureLatency(): Promise<void> {
    if (this.#passive()) return;
    const { settings, sizes } = this.#plan;
    for (const size of sizes) {
      const measurement = new LatencyMeasurement(this.#scene, size);
      if (settings.verb === 'send') {
        measurement.prepare();
        await this.#sync();
      }
      await this.#tell(size, measurement, () => {
        const { samples } = measurement;
        return {
          iterations: measurement.rounds,
          latency: {
            count: samples.count,
            microseconds: samples.summary(),
            distribution: samples.distribution(),
            ...(settings.samples && { samples: samples.list() ?? [] }),
          },
        };
      });
    }
  }

  async #measureSends(): Promise<void> {
    const { settings, sizes } = this.#plan;
    const { bidirectional, duration } = settings;
    for (const size of sizes) {
      const measurement = new BandwidthMeasurement(this.#scene, size);
      measurement.prepare();
      await this.#sync();
      await this.#tell(size, measurement, () => this.#sendsOf(size, measurement));
      // What the other end has sent is known from what came.
      if (bidirectional && duration === Infinity) await this.#swapReports(reportOf(size, measurement.sent()));
      if (settings.size === 'all') await this.#syncAfterRun();
    }
  }

  #sendsOf(size: number, measurement: BandwidthMeasurement): Partial<SizeResult> {
    const [outgoing, incoming, lost] = [measurement.sent(), measurement.received(), measurement.lost()];
    const bandwidth = outgoing && incoming ? sumOf(size, outgoing, incoming) : (outgoing ?? incoming)!;
    return {
      iterations: (outgoing ?? incoming)!.messages,
      bandwidth,
      ...(outgoing && incoming && { directions: { outgoing, incoming } }),
      ...(lost !== undefined && this.#plan.settings.connection !== 'rc' && { lost }),
    };
  }

  /** Of all sizes perftest reports the last one only. */
  async #measureOneWay(): Promise<void> {
    let report = emptyReport;
    if (this.#exchange.role === 'client') {
      for (const size of this.#plan.sizes) {
        const measurement = new BandwidthMeasurement(this.#scene, size);
        await this.#tell(size, measurement, () => ({
          iterations: measurement.sent()!.messages,
          bandwidth: measurement.sent()!,
        }));
        report = reportOf(size, measurement.sent());
      }
      await this.#sync();
      await this.#swapReports(report);
      return;
    }
    await this.#sync(Infinity);
    this.#hooks.onResult?.(ofPeer(await this.#swapReports(report)));
  }

  async #measureBothWays(): Promise<void> {
    const { settings, sizes } = this.#plan;
    for (const size of sizes) {
      const measurement = new BandwidthMeasurement(this.#scene, size);
      await this.#sync();
      const began = performance.now();
      const own = await this.#run(size, measurement, () => ({
        iterations: measurement.sent()!.messages,
        bandwidth: measurement.sent()!,
      }));
      if (settings.size === 'all') await this.#syncAfterRun(performance.now() - began);
      const outgoing = own.bandwidth!;
      const theirs = await this.#swapReports(reportOf(size, outgoing), performance.now() - began);
      const incoming = ofPeer(theirs).bandwidth!;
      this.#hooks.onResult?.({
        ...own,
        bandwidth: sumOf(size, outgoing, incoming),
        directions: { outgoing, incoming },
      });
    }
  }

  /** Runs a measurement and tells its result, even when it is broken off. */
  async #tell(
    size: number,
    measurement: { run(): Promise<void> },
    result: () => Partial<SizeResult>,
  ): Promise<void> {
    this.#hooks.onResult?.(await this.#run(size, measurement, result));
  }

  async #run(
    size: number,
    measurement: { run(): Promise<void> },
    result: () => Partial<SizeResult>,
  ): Promise<SizeResult> {
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    const finish = (): SizeResult => {
      const { user, system } = process.cpuUsage(cpu);
      const microseconds = (performance.now() - began) * 1000;
      return {
        size,
        iterations: 0,
        measuredBy: 'this end',
        cpuPercent: microseconds > 0 ? (100 * (user + system)) / microseconds : null,
        ...result(),
      };
    };
    try {
      await measurement.run();
    } catch (error) {
      this.#hooks.onResult?.({ ...finish(), incomplete: true });
      throw error;
    }
    return finish();
  }

  async #swapKeys(): Promise<Key[]> {
    const remote: Key[] = [];
    for (const key of this.#keys) remote.push(await this.#swapKey(key));
    return remote;
  }

  async #sync(timeout?: number): Promise<void> {
    await this.#swapKey(this.#keys[0]!, timeout);
  }

  async #swapKey(key: Key, timeout = this.#plan.settings.timeout): Promise<Key> {
    const { keys } = this.#exchange;
    return keys.decode(await this.#exchange.swap(keys.encode(key), timeout));
  }

  /** The peer may need as long again as this end has. */
  #syncAfterRun(took = 0): Promise<void> {
    return this.#sync(this.#plan.settings.timeout + took);
  }

  async #swapReports(report: Report, took = 0): Promise<Report> {
    const fields: Buffer[] = [];
    for (const field of encodeReport(report)) {
      fields.push(await this.#exchange.swap(field, this.#plan.settings.timeout + took));
    }
    return decodeReport(fields);
  }

  #checkGids(remote: Key): void {
    const { gid, context } = this.#plan;
    const [ownV4, theirsV4] = [gid.gid, remote.gid].map((text) => text.startsWith('::ffff:'));
    if (ownV4 === theirsV4) return;
    throw new RdmaError(
      'ERR_RDMA_MISMATCH',
      `this end uses GID ${gid.index} of ${context.device.name}, ${gid.address}, and the peer uses ${remote.gid}: one is of IPv4 and ` +
        'the other is not. Choose another on either end: with -x, by its index.',
      { device: context.device.name, gidIndex: gid.index },
    );
  }
}

function reportOf(size: number, bandwidth: Bandwidth | undefined): Report {
  return {
    size,
    iterations: bandwidth?.messages ?? 0,
    peak: bandwidth?.peakMebibytesPerSecond ?? 0,
    average: bandwidth?.mebibytesPerSecond ?? 0,
    messageRate: (bandwidth?.messagesPerSecond ?? 0) / 1e6,
  };
}

/** The peer's figures. What is no rate (its clock may have failed it) is null; its unit shows in its rate of messages. */
function ofPeer({ size, iterations, peak, average, messageRate }: Report): SizeResult {
  const perSecond = real(messageRate) === null ? null : messageRate * 1e6;
  // Whichever unit it is in, peak and average are in the same.
  const peakPerSecond =
    real(peak) === null || real(average) === null || perSecond === null ? null : (perSecond * peak) / average;
  return {
    size,
    iterations,
    measuredBy: 'peer',
    bandwidth:
      perSecond === null
        ? bandwidthOf(size, iterations, 0, null)
        : ofRates(size, iterations, null, perSecond, peakPerSecond),
    cpuPercent: null,
  };
}

function real(value: number): number | null {
  return Number.isFinite(value) && value > 0 ? value : null;
}
