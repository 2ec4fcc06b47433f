import type { Context } from './context.js';
import { explaining, invalidArgType, outOfRange } from './errors.js';
import { native, type NativeResource } from './native.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions } from './validate.js';

/**
 * A promise that one thread at a time uses what is made with it, so that the provider need not lock (`struct ibv_td`). Made by
 * {@link Context.allocTd}, for {@link ProtectionDomain.allocParentDomain}. An environment of Node.js is such a thread.
 *
 * Arguments checked, not run on a NIC: rxe has none.
 */
export class ThreadDomain extends Resource {
  readonly context: Context;
  /** @internal */
  readonly native: NativeResource;

  /** @internal */
  constructor(context: Context) {
    const made = explaining(
      { device: context.device.name },
      () => '',
      () => native().allocTd(context.native),
    );
    super(made, [context]);
    this.native = made;
    this.context = context;
  }

  get label(): string {
    return `thread domain of ${this.context.device.name}`;
  }
}

export interface XrcDomainOptions {
  /** An open file: processes that give the same one share the domain. By default it is this process's own. */
  fd?: number;
  /** Make the domain of the file where there is none yet; true by default. */
  create?: boolean;
  /** Fail where there is one already; false by default. */
  exclusive?: boolean;
}

const O_CREAT = 0o100;
const O_EXCL = 0o200;

/**
 * What XRC shared receive queues and receiving queue pairs belong to (`struct ibv_xrcd`): a peer reaches all of these queues
 * through one connection. Made by {@link Context.openXrcd}. Arguments checked, not run on a NIC: rxe has no XRC.
 */
export class XrcDomain extends Resource {
  readonly context: Context;
  /** @internal */
  readonly native: NativeResource;

  /** @internal */
  constructor(context: Context, options: XrcDomainOptions) {
    checkOptions('options', options);
    const { fd, create = true, exclusive = false } = options;
    if (fd !== undefined) integer('fd', fd, 0, 2 ** 31 - 1);
    for (const [name, value] of Object.entries({ create, exclusive })) {
      if (typeof value !== 'boolean') throw invalidArgType(name, 'true or false', value);
    }
    if (fd === undefined && !create) throw outOfRange('create', 'true without an fd', create);
    const flags = (create ? O_CREAT : 0) | (exclusive ? O_EXCL : 0);
    const made = explaining(
      { device: context.device.name },
      () => '',
      () => native().openXrcd(context.native, fd, flags),
    );
    super(made, [context]);
    this.native = made;
    this.context = context;
  }

  get label(): string {
    return `XRC domain of ${this.context.device.name}`;
  }
}
