import type { Context } from './context.js';
import type { NativeCompletionChannel } from './native.js';
import { Resource } from './resource.js';

/**
 * A completion channel (`struct ibv_comp_channel`): one descriptor by which several completion queues of a context wake
 * those who wait. Made by {@link Context.createCompletionChannel}.
 *
 * Few need one of their own: the completion queues that name none share one, which their context makes with the first of
 * them and closes with the last.
 */
export class CompletionChannel extends Resource {
  readonly context: Context;
  /** @internal */
  readonly native: NativeCompletionChannel;

  /** @internal */
  constructor(native: NativeCompletionChannel, context: Context) {
    super(native, [context]);
    this.native = native;
    this.context = context;
  }

  get label(): string {
    return `completion channel ${this.fd} of ${this.context.device.name}`;
  }

  /** The descriptor. The library reads it: leave its events alone. */
  get fd(): number {
    return this.native.fd;
  }
}
