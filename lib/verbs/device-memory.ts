import type { Context } from './context.js';
import { explaining, invalidArgType } from './errors.js';
import { native } from './native.js';
import type { NativeDeviceMemory } from './native-more.js';
import { Resource } from './resource.js';
import { integer, options as checkOptions, withinDevice } from './validate.js';

export interface DeviceMemoryOptions {
  /** Bytes, up to the device's `maxDmSize`. */
  length: number;
  /** The address is a multiple of 2 to this power; 0 by default. */
  logAlignment?: number;
}

/**
 * Memory on the device itself (`struct ibv_dm`), for what peers touch often. Made by {@link Context.allocDm}; register it by
 * {@link ProtectionDomain.regDmMr}. Arguments checked, not run on a NIC: rxe has none.
 */
export class DeviceMemory extends Resource {
  readonly context: Context;
  /** In bytes. */
  readonly length: number;
  /** By which another process imports it. */
  readonly handle: number;
  /** @internal */
  readonly native: NativeDeviceMemory;

  /** @internal */
  constructor(made: NativeDeviceMemory, context: Context, length: number) {
    super(made, [context]);
    this.native = made;
    this.context = context;
    this.length = length;
    this.handle = made.handle;
  }

  get label(): string {
    return `device memory of ${this.length} bytes`;
  }

  /** Copies bytes to the device. `ibv_memcpy_to_dm` @throws RangeError for a place outside */
  write(offset: number, bytes: Uint8Array): void {
    this.#copy(true, offset, bytes);
  }

  /** Copies bytes from the device, as many as `into` has. `ibv_memcpy_from_dm` @throws RangeError for a place outside */
  read<T extends Uint8Array>(offset: number, into: T): T {
    this.#copy(false, offset, into);
    return into;
  }

  /**
   * A descriptor by which other devices reach the memory ({@link ProtectionDomain.regDmabufMr}); the caller closes it.
   * `ibv_dm_export_dmabuf_fd`, newer than rdma-core 44.
   *
   * @throws RdmaError `ERR_RDMA_UNSUPPORTED` where the library or the provider has no such function
   */
  exportDmabufFd(): number {
    return explaining(
      { device: this.context.device.name },
      () => '',
      () => this.native.exportDmabufFd(),
    );
  }

  #copy(toDevice: boolean, offset: number, bytes: Uint8Array): void {
    if (!(bytes instanceof Uint8Array)) throw invalidArgType('bytes', 'a Uint8Array', bytes);
    integer('bytes.length', bytes.length, 1, this.length);
    integer('offset', offset, 0, this.length - bytes.length);
    explaining(
      { device: this.context.device.name },
      () => '',
      () => this.native.copy(toDevice, offset, bytes),
    );
  }
}

/** @internal */
export function allocDm(context: Context, options: DeviceMemoryOptions): DeviceMemory {
  if (options === undefined) throw invalidArgType('options', 'an object', options);
  checkOptions('options', options);
  const { length, logAlignment = 0 } = options;
  integer('length', length, 1, Number.MAX_SAFE_INTEGER);
  integer('logAlignment', logAlignment, 0, 63);
  const device = context.device.name;
  const { maxDmSize } = context.queryDevice();
  // Without any, the refusal of the device itself says that it has none.
  if (maxDmSize > 0n) withinDevice('length', length, 1, Number(maxDmSize), device);
  return new DeviceMemory(
    explaining(
      { device },
      () => 'See maxDmSize of the device attributes',
      () => native().allocDm(context.native, length, logAlignment),
    ),
    context,
    length,
  );
}

/** @internal */
export function importDm(context: Context, handle: number, length: number): DeviceMemory {
  integer('handle', handle, 0, 2 ** 32 - 1);
  integer('length', length, 1, Number.MAX_SAFE_INTEGER);
  return new DeviceMemory(
    explaining(
      { device: context.device.name },
      () => '',
      () => native().importDm(context.native, handle, length),
    ),
    context,
    length,
  );
}
