import type { CmWaitOptions } from '../cm/attempt.js';
import { abortSignal, integer, options as checkOptions } from '../verbs/validate.js';
import {
  LEAST_RESERVE,
  LEAST_SLAB,
  MOST_EAGER,
  MOST_SLAB,
  MOST_SLOTS,
  RECORD_HEADER,
  FRAME_HEADER,
} from './protocol.js';

/** How an end of a connection works. Each end has its own; what the other one must know it is told when they connect. */
export interface ConnectionOptions {
  /** Frames that may be on their way to this end, and from it, from 1; 32 by default. */
  slots?: number;
  /** Bytes of a frame, from 256; 16 384 by default. The smaller of both ends' is used. */
  slabBytes?: number;
  /**
   * Messages up to so many bytes are copied and sent in frames; longer ones are read by the receiver from where they lie. 262 144 by
   * default, 16 MiB at the most; the smaller of both ends' is used.
   */
  eagerLimit?: number;
  /** Bytes of a message that this end takes at the most; 2^30 by default. */
  maxMessage?: number;
  /**
   * Bytes of messages that came and were not taken yet, beyond which the peer has to wait; and bytes that wait to be sent, beyond which
   * {@link Connection.writableNeedDrain} is set. 1 048 576 by default.
   */
  highWaterMark?: number;
  /** Milliseconds without a sign of the peer after which it is asked for one; 5000 by default, 0 for never. */
  keepAliveInterval?: number;
  /** Milliseconds that it then has; 10 000 by default. */
  keepAliveTimeout?: number;
  /** false by default: when the peer has ended, and who reads was told so, this end ends too. */
  allowHalfOpen?: boolean;
  /**
   * Code of the time after which a packet of this end is sent again: 4.096 µs × 2^code, 1 to 31. 16 (0.27 s) by default. A peer that does not
   * answer for seven times that, or on rxe up to four times longer, is given up. On a busy rxe of Linux 6.1 the time is sometimes over
   * although answers come, and much is sent again: the more often, the shorter it is.
   */
  ackTimeout?: number;
}

export type Settings = Required<ConnectionOptions>;

const MOST_MS = 2 ** 31 - 1;
const MOST_BYTES = Number.MAX_SAFE_INTEGER;

/** Slots beside those for data: for frames that carry none. */
export const RESERVE = 2 * LEAST_RESERVE;

/** @throws TypeError, RangeError */
export function connectionSettings(options: ConnectionOptions): Settings {
  checkOptions('options', options);
  const slabBytes = integer('slabBytes', options.slabBytes ?? 16384, LEAST_SLAB, MOST_SLAB);
  const maxMessage = integer(
    'maxMessage',
    options.maxMessage ?? 2 ** 30,
    slabBytes - FRAME_HEADER - RECORD_HEADER,
    MOST_BYTES,
  );
  return {
    slots: integer('slots', options.slots ?? 32, 1, MOST_SLOTS - RESERVE),
    slabBytes,
    eagerLimit: integer(
      'eagerLimit',
      options.eagerLimit ?? Math.min(2 ** 18, maxMessage),
      0,
      Math.min(MOST_EAGER, maxMessage),
    ),
    maxMessage,
    highWaterMark: integer('highWaterMark', options.highWaterMark ?? 2 ** 20, 1, MOST_BYTES),
    keepAliveInterval: integer('keepAliveInterval', options.keepAliveInterval ?? 5000, 0, MOST_MS),
    keepAliveTimeout: integer('keepAliveTimeout', options.keepAliveTimeout ?? 10_000, 1, MOST_MS),
    allowHalfOpen: options.allowHalfOpen === true,
    ackTimeout: integer('ackTimeout', options.ackTimeout ?? 16, 1, 31),
  };
}

/** Where a peer listens, and how to get there. */
export interface ConnectOptions extends ConnectionOptions, CmWaitOptions {
  /** Name or address. */
  host: string;
  port: number;
  /** Own address to use; by default that of the route. */
  localAddress?: string;
  localPort?: number;
  /** Of a name: which addresses to look for. */
  family?: 4 | 6;
}

/** @throws TypeError, RangeError */
export function address(options: { host?: unknown; port?: unknown }): void {
  checkOptions('options', options);
  const { host, port } = options;
  if (typeof host !== 'string' || host === '')
    throw Object.assign(new TypeError('"host" must be a name or an address'), {
      code: 'ERR_INVALID_ARG_TYPE',
    });
  integer('port', port, 0, 65535);
}

export function signalOf(options: { signal?: AbortSignal }): AbortSignal | undefined {
  if (options.signal !== undefined) abortSignal('signal', options.signal);
  return options.signal;
}
