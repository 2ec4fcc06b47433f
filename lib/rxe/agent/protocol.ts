/**
 * The protocol between this process and the agent inside a machine, over one byte channel (a serial line in uml, a
 * virtio-serial port in qemu, a Unix socket for a machine that is kept up). `native/agent/protocol.h` mirrors the numbers.
 *
 * A frame is a header of 12 bytes and a payload; integers are little-endian:
 *
 *     u32 payload length | u32 command | u8 type | u8 stream | u16 zero | payload
 *
 * `command` is a number that the host chose for one spawned command (0 where a frame is about no command).
 *
 * The agent speaks first: HELLO, once the line is raw. The host answers with SETUP (strings `key=value`), the agent with
 * READY (strings `key=value`), or FAILED (a text) and the machine is of no use. From then on any number of commands
 * run side by side:
 *
 * - SPAWN: u8 flags (spawnFlags), then strings, each ended by a zero byte: the working directory, the number of
 *   arguments in decimal, the arguments, the environment. The answer is STARTED (u32 process id), or NOT_STARTED
 *   (u32 errno, u32 what: `notStarted`) and the number is free again.
 * - DATA: bytes of one stream of a command; a payload of no bytes is the end of the stream. Either side may send up to
 *   `initialCredit` bytes on a stream, then as many as CREDIT (u32) allows anew: a flood, or a slow reader, stops its
 *   own stream and no other.
 * - CLOSE: the receiver of a stream wants no more of it (the writer meets SIGPIPE or EPIPE, as on a pipe).
 * - SIGNAL: u32 signal number, sent to the command's process group.
 * - EXITED: u32 exit code, u32 signal (0: none). The last frame of a command; all its output went before.
 * - ACKNOWLEDGE: u32, from the agent: it has taken so many bytes from the channel. The serial line of User-Mode Linux
 *   (seen with 6.1) stops for ever once its reader falls 4 KiB behind, so that the host there sends no more than
 *   `serialWindow` bytes that are not acknowledged.
 * - SYNC: write the shared folders back; the answer is SYNCED.
 * - STOP: only to the owner of a kept machine, which then ends it.
 *
 * When the channel closes, the agent kills all and powers the machine off.
 */
export const frameTypes = {
  setup: 1,
  spawn: 2,
  signal: 3,
  sync: 4,
  stop: 5,
  data: 16,
  credit: 17,
  close: 18,
  hello: 32,
  ready: 33,
  failed: 34,
  started: 35,
  notStarted: 36,
  exited: 37,
  synced: 38,
  acknowledge: 39,
} as const;

export const spawnFlags = {
  /** The command's standard input is a pipe; without it, /dev/null. */
  input: 1,
  /** First forget what is cached of the host's files, so that the command sees them as they are now. */
  refresh: 2,
} as const;

/** The second half of NOT_STARTED: what the errno is about. */
export const notStarted = { directory: 1, execute: 2, fork: 3 } as const;

export const streams = { stdin: 0, stdout: 1, stderr: 2 } as const;

/** Bytes that may be under way on a stream before the first CREDIT. */
export const initialCredit = 256 * 1024;
/** Bytes on a serial line that the agent has not acknowledged. */
export const serialWindow = 3072;
/** Payload bytes that a receiver accepts in one frame; SPAWN with a large environment is the longest there is. */
export const maxPayload = 8 * 1024 * 1024;
/** The most that is sent in one DATA frame. */
export const maxData = 32 * 1024;
export const headerLength = 12;

export interface Frame {
  type: number;
  command: number;
  stream: number;
  payload: Buffer;
}

const empty = Buffer.alloc(0);

export function encodeFrame(type: number, command = 0, stream = 0, payload: Uint8Array = empty): Buffer {
  const frame = Buffer.allocUnsafe(headerLength + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(command, 4);
  frame.writeUInt8(type, 8);
  frame.writeUInt8(stream, 9);
  frame.writeUInt16LE(0, 10);
  frame.set(payload, headerLength);
  return frame;
}

/** Numbers as the payload of a frame. */
export function encodeNumbers(...values: number[]): Buffer {
  const payload = Buffer.allocUnsafe(values.length * 4);
  values.forEach((value, i) => payload.writeUInt32LE(value, i * 4));
  return payload;
}

export function encodeStrings(values: readonly string[]): Buffer {
  return Buffer.from(values.map((value) => value + '\0').join(''));
}

export function decodeStrings(payload: Buffer): string[] {
  if (payload.length === 0) return [];
  return payload.toString('utf8').replace(/\0$/, '').split('\0');
}

/** `key=value` strings, as in SETUP, READY and an environment. */
export function encodePairs(pairs: Readonly<Record<string, string>>): Buffer {
  return encodeStrings(Object.entries(pairs).map(([key, value]) => `${key}=${value}`));
}

export function decodePairs(payload: Buffer): Record<string, string> {
  return Object.fromEntries(
    decodeStrings(payload).map((pair) => {
      const end = pair.indexOf('=');
      return end < 0 ? [pair, ''] : [pair.slice(0, end), pair.slice(end + 1)];
    }),
  );
}

export interface SpawnRequest {
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  input: boolean;
  refresh: boolean;
}

export function encodeSpawn(request: SpawnRequest): Buffer {
  const flags = (request.input ? spawnFlags.input : 0) | (request.refresh ? spawnFlags.refresh : 0);
  const strings = [request.cwd, String(request.argv.length), ...request.argv];
  return Buffer.concat([Buffer.of(flags), encodeStrings(strings), encodePairs(request.env)]);
}

/** Cuts a stream of bytes into frames, whatever pieces it arrives in. */
export class FrameDecoder {
  #pieces: Buffer[] = [];
  #length = 0;

  /** The frames that `bytes` completes. Throws on what cannot be a frame: the two ends then disagree for good. */
  push(bytes: Buffer): Frame[] {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    const frames: Frame[] = [];
    for (;;) {
      if (this.#length < headerLength) return frames;
      const header = this.#peek(headerLength);
      const length = header.readUInt32LE(0);
      if (length > maxPayload || header.readUInt16LE(10) !== 0) {
        throw new Error(`not a frame: ${header.toString('hex')}`);
      }
      if (this.#length < headerLength + length) return frames;
      const whole = this.#take(headerLength + length);
      frames.push({
        command: whole.readUInt32LE(4),
        type: whole.readUInt8(8),
        stream: whole.readUInt8(9),
        payload: whole.subarray(headerLength),
      });
    }
  }

  #peek(length: number): Buffer {
    const first = this.#pieces[0]!;
    if (first.length >= length) return first;
    this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!;
  }

  #take(length: number): Buffer {
    const first = this.#peek(length);
    this.#length -= length;
    if (first.length === length) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(length);
    return first.subarray(0, length);
  }
}
