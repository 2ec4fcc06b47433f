import { constants } from 'node:os';
import { Readable, Writable, type Duplex } from 'node:stream';
import type { Command, Exit } from '../command.js';
import { RxeError } from '../errors.js';
import {
  FrameDecoder,
  decodePairs,
  encodeFrame,
  encodeNumbers,
  encodePairs,
  encodeSpawn,
  frameTypes,
  initialCredit,
  maxData,
  notStarted,
  streams,
  type Frame,
  type SpawnRequest,
} from './protocol.js';

/** Who gets the frames of one command. */
export interface Endpoint {
  handle(frame: Frame): void;
  fail(error: Error): void;
}

/** The host's end of the protocol: runs commands through the agent at the other end of a byte channel. */
export class AgentClient {
  readonly #channel: Duplex;
  readonly #window: number;
  readonly #decoder = new FrameDecoder();
  readonly #commands = new Map<number, Endpoint>();
  readonly #hello = settlement<void>();
  readonly #ready = settlement<Record<string, string>>();
  readonly #closed = settlement<void>();
  #syncs: Settlement<void>[] = [];
  #lastCommand = 0;
  #failure: Error | undefined;
  #waiting: Buffer[] = [];
  #unacknowledged = 0;

  /** `window`: the bytes that the channel takes before the agent has acknowledged them. Default: no limit. */
  constructor(channel: Duplex, window = Infinity) {
    this.#channel = channel;
    this.#window = window;
    channel.on('data', (bytes: Buffer) => this.#receive(bytes));
    channel.on('error', () => channel.destroy());
    channel.on('close', () => this.#end());
    channel.on('end', () => this.#end());
  }

  /** Resolves at the agent's first word. */
  get hello(): Promise<void> {
    return this.#hello.promise;
  }

  /** Resolves with what the agent tells of itself once it can run commands. */
  get ready(): Promise<Record<string, string>> {
    return this.#ready.promise;
  }

  /** Resolves when the channel has closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  setUp(settings: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    this.#send(encodeFrame(frameTypes.setup, 0, 0, encodePairs(settings)));
    return this.ready;
  }

  spawn(request: SpawnRequest): Command {
    const id = this.#newId();
    const command = new AgentCommand(id, request, (frame) => this.#send(frame));
    this.#attach(id, command);
    this.#send(encodeFrame(frameTypes.spawn, id, 0, encodeSpawn(request)));
    return command;
  }

  /** For those who speak the protocol themselves: a command number whose frames go to `endpoint` until it has ended. */
  connect(endpoint: Endpoint): number {
    const id = this.#newId();
    this.#attach(id, endpoint);
    return id;
  }

  forward(type: number, command: number, stream: number, payload: Buffer): void {
    this.#send(encodeFrame(type, command, stream, payload));
  }

  /** Resolves when what was written to the shared folders has reached the host. */
  sync(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    const done = settlement<void>();
    this.#syncs.push(done);
    this.#send(encodeFrame(frameTypes.sync));
    return done.promise;
  }

  /** Asks the owner of a kept machine to end it. */
  stop(): void {
    this.#send(encodeFrame(frameTypes.stop));
  }

  /** Ends everything that waits with this error. The first one stays. */
  fail(error: Error): void {
    this.#failure ??= error;
    for (const waiting of [this.#hello, this.#ready, ...this.#syncs]) waiting.reject(this.#failure);
    this.#syncs = [];
    for (const command of this.#commands.values()) command.fail(this.#failure);
    this.#commands.clear();
  }

  close(): void {
    this.#channel.destroy();
  }

  #newId(): number {
    this.#lastCommand += 1;
    return this.#lastCommand;
  }

  #attach(id: number, endpoint: Endpoint): void {
    if (this.#failure) endpoint.fail(this.#failure);
    else this.#commands.set(id, endpoint);
  }

  #send(frame: Buffer): void {
    if (this.#window === Infinity) return this.#write(frame);
    this.#waiting.push(frame);
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0 && this.#unacknowledged < this.#window) {
      const next = this.#waiting.shift()!;
      const piece = next.subarray(0, this.#window - this.#unacknowledged);
      if (piece.length < next.length) this.#waiting.unshift(next.subarray(piece.length));
      this.#unacknowledged += piece.length;
      this.#write(piece);
    }
  }

  #write(bytes: Buffer): void {
    if (this.#channel.writable) this.#channel.write(bytes);
  }

  #end(): void {
    this.#closed.resolve();
    // Whoever started the machine may know better why, and has a moment to say so.
    setTimeout(() => {
      this.fail(new RxeError('ERR_RXE_MACHINE_DIED', 'the machine ended while it was needed'));
    }, 1000).unref();
  }

  #receive(bytes: Buffer): void {
    let frames: Frame[];
    try {
      frames = this.#decoder.push(bytes);
    } catch (error) {
      this.fail(
        new RxeError('ERR_RXE_INTERNAL', `the agent sent ${(error as Error).message}`, { cause: error }),
      );
      this.close();
      return;
    }
    for (const frame of frames) this.#handle(frame);
  }

  #handle(frame: Frame): void {
    switch (frame.type) {
      case frameTypes.hello:
        return this.#hello.resolve();
      case frameTypes.ready:
        return this.#ready.resolve(decodePairs(frame.payload));
      case frameTypes.failed:
        return this.fail(
          new RxeError('ERR_RXE_BOOT', `the machine cannot be set up: ${String(frame.payload)}`),
        );
      case frameTypes.acknowledge:
        this.#unacknowledged -= frame.payload.readUInt32LE(0);
        return this.#sendWaiting();
      case frameTypes.synced:
        return this.#syncs.shift()?.resolve();
    }
    const command = this.#commands.get(frame.command);
    if (!command) return;
    if (frame.type === frameTypes.exited || frame.type === frameTypes.notStarted) {
      this.#commands.delete(frame.command);
    }
    command.handle(frame);
  }
}

type Send = (frame: Buffer) => void;

class AgentCommand implements Command, Endpoint {
  readonly stdin: InputStream | null;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly #id: number;
  readonly #name: string;
  readonly #cwd: string;
  readonly #send: Send;
  readonly #exited = settlement<Exit>();
  #ended = false;

  constructor(id: number, request: SpawnRequest, send: Send) {
    this.#id = id;
    this.#name = request.argv[0] ?? '';
    this.#cwd = request.cwd;
    this.#send = send;
    this.stdin = request.input ? new InputStream(id, send) : null;
    this.stdout = new OutputStream(id, streams.stdout, send);
    this.stderr = new OutputStream(id, streams.stderr, send);
  }

  get exited(): Promise<Exit> {
    return this.#exited.promise;
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): void {
    if (this.#ended) return;
    this.#send(encodeFrame(frameTypes.signal, this.#id, 0, encodeNumbers(constants.signals[signal])));
  }

  handle(frame: Frame): void {
    switch (frame.type) {
      case frameTypes.data:
        return (frame.stream === streams.stdout ? this.stdout : this.stderr).receive(frame.payload);
      case frameTypes.credit:
        return this.stdin?.addCredit(frame.payload.readUInt32LE(0));
      case frameTypes.close:
        this.stdin?.destroy();
        return;
      case frameTypes.notStarted:
        return this.fail(this.#notStarted(frame.payload.readUInt32LE(0), frame.payload.readUInt32LE(4)));
      case frameTypes.exited: {
        this.#end();
        const signal = signalName(frame.payload.readUInt32LE(4));
        this.#exited.resolve({ code: signal ? null : frame.payload.readUInt32LE(0), signal });
      }
    }
  }

  fail(error: Error): void {
    this.#end();
    this.#exited.reject(error);
  }

  #end(): void {
    this.#ended = true;
    this.stdin?.destroy();
    this.stdout.receive(Buffer.alloc(0));
    this.stderr.receive(Buffer.alloc(0));
  }

  #notStarted(errno: number, what: number): RxeError {
    const reason = errnoName(errno);
    if (what === notStarted.directory) {
      return new RxeError(
        'ERR_RXE_NO_FOLDER',
        `the folder ${this.#cwd} cannot be entered inside the machine (${reason}); folders below /dev and /proc are the machine's own`,
      );
    }
    if (what === notStarted.execute && (reason === 'ENOENT' || reason === 'ENOTDIR')) {
      return new RxeError('ERR_RXE_COMMAND_NOT_FOUND', `${this.#name}: no such command inside the machine`);
    }
    return new RxeError('ERR_RXE_NOT_EXECUTABLE', `${this.#name}: cannot be executed (${reason})`);
  }
}

/** Sends what it is given as far as the agent's credit goes. */
class InputStream extends Writable {
  #credit = initialCredit;
  #waiting: (() => void) | undefined;
  readonly #id: number;
  readonly #sendFrame: Send;

  constructor(id: number, send: Send) {
    super({ decodeStrings: true });
    this.#id = id;
    this.#sendFrame = send;
  }

  addCredit(bytes: number): void {
    this.#credit += bytes;
    const go = this.#waiting;
    this.#waiting = undefined;
    go?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    let rest = chunk;
    const push = (): void => {
      while (rest.length > 0 && this.#credit > 0) {
        const piece = rest.subarray(0, Math.min(this.#credit, maxData));
        this.#credit -= piece.length;
        rest = rest.subarray(piece.length);
        this.#sendFrame(encodeFrame(frameTypes.data, this.#id, streams.stdin, piece));
      }
      if (rest.length === 0) callback();
      else this.#waiting = push;
    };
    push();
  }

  override _final(callback: () => void): void {
    this.#sendFrame(encodeFrame(frameTypes.data, this.#id, streams.stdin));
    callback();
  }
}

/** Hands on what the agent sends, and gives credit anew as it is consumed. */
class OutputStream extends Readable {
  #owed = 0;
  #over = false;
  readonly #id: number;
  readonly #stream: number;
  readonly #sendFrame: Send;

  constructor(id: number, stream: number, send: Send) {
    super({ highWaterMark: initialCredit / 2 });
    this.#id = id;
    this.#stream = stream;
    this.#sendFrame = send;
  }

  /** No bytes: the end. */
  receive(bytes: Buffer): void {
    if (this.#over) return;
    if (bytes.length === 0) {
      this.#over = true;
      this.push(null);
      return;
    }
    this.#owed += bytes.length;
    this.push(bytes);
  }

  override _read(): void {
    if (this.#owed === 0 || this.#over) return;
    this.#sendFrame(encodeFrame(frameTypes.credit, this.#id, this.#stream, encodeNumbers(this.#owed)));
    this.#owed = 0;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.#over) this.#sendFrame(encodeFrame(frameTypes.close, this.#id, this.#stream));
    this.#over = true;
    callback(error);
  }
}

interface Settlement<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
}

/** A promise with its two ends at hand, whose rejection nobody has to await. */
function settlement<T>(): Settlement<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

function signalName(number: number): NodeJS.Signals | null {
  if (number === 0) return null;
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  return (found?.[0] ?? `SIG${number}`) as NodeJS.Signals;
}

function errnoName(number: number): string {
  const found = Object.entries(constants.errno).find(([, value]) => value === number);
  return found?.[0] ?? `errno ${number}`;
}
