import { Readable, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Command, RunOptions, RunResult, SpawnOptions } from './command.js';
import { RxeError } from './errors.js';

/** Between the request to end and the order, in milliseconds. */
const patience = 2000;
/** From the order to the conclusion that the machine does not answer: its kernel hangs. Also in milliseconds. */
const lastPatience = 10_000;

/** Runs what `spawn` starts to its end, feeds it, and collects or passes on its output. */
export async function runCommand(
  spawn: (options: SpawnOptions) => Command,
  options: RunOptions,
): Promise<RunResult> {
  options.signal?.throwIfAborted();
  const { cwd, env, input } = options;
  const command = spawn({ cwd, env, input: input !== undefined });
  feed(command, input);
  const stdout = consume(command.stdout, options.stdout);
  const stderr = consume(command.stderr, options.stderr);
  const interruption = interrupt(command, options);
  try {
    const exit = await Promise.race([command.exited, interruption.inVain]);
    await Promise.all([stdout.done, stderr.done]);
    if (interruption.reason) throw interruption.reason as Error;
    return { ...exit, stdout: stdout.collected(), stderr: stderr.collected() };
  } finally {
    interruption.clear();
    if (input instanceof Readable) input.unpipe(command.stdin!);
  }
}

function feed(command: Command, input: RunOptions['input']): void {
  if (!command.stdin) return;
  // A command that ends without having read all of its input is no failure.
  command.stdin.on('error', () => {});
  if (input instanceof Readable) input.pipe(command.stdin);
  else command.stdin.end(input);
}

function consume(
  stream: Readable,
  sink: Writable | undefined,
): { done: Promise<void>; collected: () => Buffer } {
  const pieces: Buffer[] = [];
  let sinkGone = false;
  if (sink) {
    // The reader of our output is gone: so is the reader of the command's, and it learns of it as usual.
    const closed = (): void => {
      sinkGone = true;
      stream.destroy();
    };
    sink.once('error', closed);
    sink.once('close', closed);
    stream.once('close', () => sink.off('error', closed).off('close', closed));
    stream.pipe(sink, { end: false });
  } else {
    stream.on('data', (bytes: Buffer) => pieces.push(bytes));
  }
  const done = finished(stream, { writable: false })
    .catch(() => {})
    .then(() => (sink && !sinkGone ? flushed(sink) : undefined));
  return { done, collected: () => Buffer.concat(pieces) };
}

function flushed(sink: Writable): Promise<void> {
  if (sink.destroyed || sink.writableEnded || sink.writableLength === 0) return Promise.resolve();
  return new Promise((resolve) => {
    sink.once('close', resolve);
    sink.write('', () => resolve());
  });
}

interface Interruption {
  reason?: unknown;
  /** Rejects with the reason when the command does not end for it. */
  inVain: Promise<never>;
  clear(): void;
}

/** Ends the command when the time is over or the caller wishes. */
function interrupt(command: Command, { timeout, signal }: RunOptions): Interruption {
  const timers: NodeJS.Timeout[] = [];
  let giveUp: (reason: unknown) => void;
  const inVain = new Promise<never>((_resolve, reject) => (giveUp = reject));
  inVain.catch(() => {}); // whoever races with it hears of it
  const end = (reason: unknown): void => {
    interruption.reason ??= reason;
    command.kill('SIGTERM');
    timers.push(setTimeout(() => command.kill('SIGKILL'), patience));
    timers.push(setTimeout(() => giveUp(interruption.reason), patience + lastPatience));
  };
  const onAbort = (): void => end(signal!.reason);
  const interruption: Interruption = {
    inVain,
    clear() {
      timers.forEach((timer) => clearTimeout(timer));
      signal?.removeEventListener('abort', onAbort);
    },
  };
  if (timeout !== undefined) {
    const message = `the command did not end within ${timeout / 1000} s and was ended`;
    timers.push(setTimeout(() => end(new RxeError('ERR_RXE_TIMEOUT', message)), timeout));
  }
  signal?.addEventListener('abort', onAbort);
  return interruption;
}
