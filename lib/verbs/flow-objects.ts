import type { Context } from './context.js';
import { explaining, invalidArgType, outOfRange } from './errors.js';
import type { Flow } from './flow.js';
import { native, type NativeResource } from './native.js';
import type { NativeCounters, NativeFlowAction } from './native-more.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions, unsigned64, wordNumber } from './validate.js';

/** What a device does to packets of IPsec (`struct ibv_flow_action_esp_attr`). */
export interface EspOptions {
  spi?: number;
  seq?: number;
  /** Bytes of padding against traffic analysis. */
  tfcPad?: number;
  /** Encrypt what is sent; by default decrypt what is received. */
  encrypt?: boolean;
  /** Transport mode; by default tunnel mode. */
  transport?: boolean;
  /** The device handles the whole packet; by default only its cryptography. */
  fullOffload?: boolean;
  /** The high half of the extended sequence number, and whether its window is a new one. */
  esn?: number;
  esnNewWindow?: boolean;
  /** Packets after which it stops; by default none. */
  hardLimitPackets?: bigint | number;
  /** AES-GCM: a key of 16, 24 or 32 bytes, its salt, the initial vector, and bytes of the check value. */
  key?: { aes: Uint8Array; salt: number; iv?: bigint | number; icvLength?: number };
  /** Packets of the window in which repeated ones are found; by default none are looked for. */
  replayWindow?: number;
}

const FULL_OFFLOAD = 1;
const TRANSPORT = 2;
const ENCRYPT = 4;
const ESN_NEW_WINDOW = 8;
const WORD = 2 ** 32 - 1;

const halves = (value: bigint) => [Number(value & 0xffffffffn), Number(value >> 32n)];

/** @internal In the order of EspAttributes in native/flow.cc. */
export function packEsp(options: EspOptions): Uint32Array {
  checkOptions('options', options);
  const { spi = 0, seq = 0, tfcPad = 0, esn, key, replayWindow } = options;
  const flags =
    (options.fullOffload === true ? FULL_OFFLOAD : 0) |
    (options.transport === true ? TRANSPORT : 0) |
    (options.encrypt === true ? ENCRYPT : 0) |
    (options.esnNewWindow === true ? ESN_NEW_WINDOW : 0);
  const aes = Buffer.alloc(32);
  if (key !== undefined) {
    if (!(key.aes instanceof Uint8Array)) throw invalidArgType('key.aes', 'a Uint8Array', key.aes);
    if (![16, 24, 32].includes(key.aes.length))
      throw outOfRange('key.aes.length', '16, 24 or 32', key.aes.length);
    aes.set(key.aes);
  }
  return Uint32Array.of(
    integer('spi', spi, 0, WORD),
    integer('seq', seq, 0, WORD),
    integer('tfcPad', tfcPad, 0, WORD),
    flags,
    ...halves(unsigned64('hardLimitPackets', options.hardLimitPackets ?? 0)),
    key === undefined ? 0 : 1,
    ...halves(unsigned64('key.iv', key?.iv ?? 0)),
    0, // the only way to make initial vectors: in sequence
    integer('key.salt', key?.salt ?? 0, 0, WORD),
    integer('key.icvLength', key?.icvLength ?? (key === undefined ? 0 : 16), 0, WORD),
    key?.aes.length ?? 0,
    ...Array.from({ length: 8 }, (_, i) => aes.readUInt32LE(4 * i)),
    replayWindow === undefined ? 0 : 1,
    integer('replayWindow', replayWindow ?? 0, 0, WORD),
    esn === undefined ? 0 : 1,
    integer('esn', esn ?? 0, 0, WORD),
  );
}

/**
 * What a flow does with the packets of IPsec that match (`struct ibv_flow_action`). Made by
 * {@link Context.createFlowActionEsp}. Arguments checked, not run on a NIC: rxe has none.
 */
export class FlowAction extends Resource {
  readonly context: Context;
  /** @internal */
  readonly native: NativeFlowAction;

  /** @internal */
  constructor(context: Context, options: EspOptions) {
    const words = packEsp(options);
    const made = explaining(
      { device: context.device.name },
      () => '',
      () => native().createFlowActionEsp(context.native, words),
    );
    super(made, [context]);
    this.native = made;
    this.context = context;
  }

  get label(): string {
    return 'flow action for IPsec';
  }

  /** Changes what it does. `ibv_modify_flow_action_esp` */
  modify(options: EspOptions): void {
    const words = packEsp(options);
    explaining(
      { device: this.context.device.name },
      () => '',
      () => this.native.modify(words),
    );
  }
}

/** `enum ibv_counter_description`. */
const descriptions = { packets: 0, bytes: 1 } as const;
export type CounterDescription = keyof typeof descriptions;

const PREFER_CACHED = 1;

/**
 * Counters of what flows match (`struct ibv_counters`). Made by {@link Context.createCounters}. Arguments checked, not run on a
 * NIC: rxe has none.
 */
export class Counters extends Resource {
  readonly context: Context;
  /** @internal */
  readonly native: NativeCounters;

  /** @internal */
  constructor(context: Context) {
    const made = explaining(
      { device: context.device.name },
      () => '',
      () => native().createCounters(context.native),
    );
    super(made, [context]);
    this.native = made;
    this.context = context;
  }

  get label(): string {
    return `counters of ${this.context.device.name}`;
  }

  /**
   * Counts something at a place: of a flow, or of all flows that will name these counters (`{ action: 'count' }`).
   * `ibv_attach_counters_point_flow`
   */
  attach(description: CounterDescription, index: number, flow?: Flow): void {
    const number = wordNumber('description', descriptions, description);
    integer('index', index, 0, 2 ** 16 - 1);
    let of: NativeResource | undefined;
    if (flow !== undefined) {
      if (!(flow instanceof Resource) || !('native' in flow)) throw invalidArgType('flow', 'a Flow', flow);
      of = flow.native;
    }
    explaining(
      { device: this.context.device.name },
      () => '',
      () => this.native.attach(number, index, of),
    );
  }

  /** The first `count` of them. `preferCached`: what the driver read before will do. `ibv_read_counters` */
  read(count: number, { preferCached = false }: { preferCached?: boolean } = {}): BigUint64Array {
    integer('count', count, 1, 2 ** 16);
    return explaining(
      { device: this.context.device.name },
      () => '',
      () => this.native.read(count, preferCached ? PREFER_CACHED : 0),
    );
  }
}
