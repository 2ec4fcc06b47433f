import type { Context } from './context.js';
import { explaining, invalidArgType } from './errors.js';
import { packSpecs, type FlowSpec } from './flow-specs.js';
import { native, type NativeQueuePair, type NativeResource } from './native.js';
import type { NativeRssQueuePair } from './native-more.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions, wordNumber } from './validate.js';

/** `enum ibv_flow_attr_type`. */
const flowTypes = { normal: 0, allDefault: 1, multicastDefault: 2, sniffer: 3 } as const;
/**
 * `normal`: what the specs say; `allDefault`, `multicastDefault`: what no other rule takes; `sniffer`: all that the port sees.
 */
export type FlowType = keyof typeof flowTypes;

/** A rule for packets (`struct ibv_flow_attr`). */
export interface FlowOptions {
  /** `normal` by default. */
  type?: FlowType;
  /** Of rules that overlap, that of the smallest number counts; 0 by default. */
  priority?: number;
  /** 1 by default. */
  port?: number;
  /** Packets that match go on to rules of less priority as well. */
  dontTrap?: boolean;
  /** For packets that are sent; by default for those that come. */
  egress?: boolean;
  /** What packets match, from the outermost header inwards, and what becomes of them. */
  specs?: readonly FlowSpec[];
}

const DONT_TRAP = 2;
const EGRESS = 4;

/**
 * A rule that leads packets to a queue pair (`struct ibv_flow`), as long as it is open. Made by {@link QueuePair.createFlow}.
 * Arguments checked, not run on a NIC: rxe has none.
 */
export class Flow extends Resource {
  /** @internal */
  readonly native: NativeResource;

  /** @internal */
  constructor(
    queuePair: Resource,
    nativeQueuePair: NativeQueuePair | NativeRssQueuePair,
    context: Context,
    options: FlowOptions,
  ) {
    if (options === undefined) throw invalidArgType('options', 'an object', options);
    checkOptions('options', options);
    const { type = 'normal', priority = 0, port = 1, dontTrap = false, egress = false, specs = [] } = options;
    const packed = packSpecs(specs);
    const words = Uint32Array.of(
      wordNumber('type', flowTypes, type),
      integer('priority', priority, 0, 2 ** 16 - 1),
      specs.length,
      integer('port', port, 1, context.queryDevice().physPortCnt),
      (dontTrap ? DONT_TRAP : 0) | (egress ? EGRESS : 0),
    );
    const objects = packed.objects.flatMap(({ place, object }) => [place, object.native]);
    const made = explaining(
      { device: context.device.name, port },
      () => '',
      () => native().createFlow(nativeQueuePair, words, packed.bytes, ...objects),
    );
    super(made, [queuePair, ...packed.objects.map(({ object }) => object)]);
    this.native = made;
  }

  get label(): string {
    return 'flow';
  }
}
