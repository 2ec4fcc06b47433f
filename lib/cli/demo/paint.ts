import type { Writable } from 'node:stream';
import { WriteStream } from 'node:tty';
import util from 'node:util';

/** Colours, where the stream is a terminal that has them and nobody has said NO_COLOR. */
export class Painter {
  readonly #colours: boolean;

  constructor(stream: Writable) {
    const terminal = stream instanceof WriteStream ? stream : undefined;
    // util.styleText came with Node 20.12.
    this.#colours = terminal?.hasColors() === true && 'styleText' in util;
  }

  heading(text: string): string {
    return `\n${this.#style('bold', text)}`;
  }

  faint(text: string): string {
    return this.#style('dim', text);
  }

  good(text: string): string {
    return this.#style('green', text);
  }

  doubtful(text: string): string {
    return this.#style('yellow', text);
  }

  #style(format: Parameters<typeof util.styleText>[0], text: string): string {
    return this.#colours ? util.styleText(format, text) : text;
  }
}
