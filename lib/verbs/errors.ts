import os from 'node:os';
import { getSystemErrorMap } from 'node:util';
import type { CompletionStatus } from './constants.js';

/** What an error is about, where that is known. */
export interface ErrorSubject {
  /** Name of the device, as in `ibv_devices`. */
  device?: string;
  /** Port number, from 1. */
  port?: number;
  /** Index in the port's GID table. */
  gidIndex?: number;
  /** Queue pair number, 24 bits. */
  qpn?: number;
}

/** errno values by which a library, kernel or provider says that it does not offer a function. */
const UNSUPPORTED = new Set([
  os.constants.errno.EOPNOTSUPP,
  os.constants.errno.ENOSYS,
  93 /* EPROTONOSUPPORT */,
]);

const errnoNames = new Map(Object.entries(os.constants.errno).map(([name, number]) => [number, name]));

/**
 * The one error that verbs throw.
 *
 * `code` is the name of the errno (`'ENOMEM'`), or one of our own: `ERR_RDMA_UNSUPPORTED` (the library, kernel or
 * provider lacks the function, whatever errno it used), `ERR_RDMA_BUSY`, `ERR_RDMA_CLOSED`, `ERR_RDMA_LOAD`,
 * `ERR_RDMA_NO_DEVICE`, `ERR_RDMA_NO_GID`, `ERR_RDMA_LIMIT`, `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_INVALID_DESCRIPTOR`,
 * `ERR_RDMA_INVALID_ATTRIBUTES`, `ERR_RDMA_QUEUE_FULL`, `ERR_RDMA_FOREIGN_OBJECT`, `ERR_RDMA_COMPLETION`, `ERR_RDMA_TIMEOUT`,
 * `ERR_RDMA_NO_CHANNEL`, `ERR_RDMA_CQ_FAILED`, `ERR_RDMA_DEVICE_FATAL`; of measurements with a peer also `ERR_RDMA_NO_PEER`,
 * `ERR_RDMA_PEER_LOST`, `ERR_RDMA_PROTOCOL`, `ERR_RDMA_MISMATCH`. `message` says what to do.
 */
export class RdmaError extends Error implements ErrorSubject {
  readonly code: string;
  /** Negative, as in Node's own system errors. Absent where no system call failed. */
  readonly errno?: number;
  /** The C function that failed, such as `'ibv_reg_mr'`. */
  readonly syscall?: string;
  readonly device?: string;
  readonly port?: number;
  readonly gidIndex?: number;
  readonly qpn?: number;
  /** How many requests of a list were posted before the failure. */
  posted?: number;

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & ErrorSubject & { errno?: number; syscall?: string } = {},
  ) {
    const { cause, ...fields } = options;
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    Object.assign(this, fields);
  }

  override get name(): string {
    return 'RdmaError';
  }

  /** @param errno positive, as C has it */
  static fromErrno(syscall: string, errno: number, subject: ErrorSubject = {}, advice = ''): RdmaError {
    const name = errnoNames.get(errno) ?? `errno ${errno}`;
    const text = getSystemErrorMap().get(-errno)?.[1] ?? 'unknown error';
    const code = UNSUPPORTED.has(errno) ? 'ERR_RDMA_UNSUPPORTED' : name;
    const where = describeSubject(subject);
    const message = `${syscall}: ${name}: ${text}${where && ` (${where})`}${advice && `. ${advice}`}`;
    return new RdmaError(code, message, { errno: -errno, syscall, ...subject });
  }
}

function describeSubject({ device, port, gidIndex, qpn }: ErrorSubject): string {
  return [
    device !== undefined && `device ${device}`,
    port !== undefined && `port ${port}`,
    gidIndex !== undefined && `GID index ${gidIndex}`,
    qpn !== undefined && `QP ${qpn}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** What to do about a failure, by its errno and by the C function that failed. */
export type Advise = (errno: number, syscall: string) => string;

/** Adds to a failure of a verbs function what it was about and what to do; anything else passes unchanged. */
export function explain(error: unknown, subject: ErrorSubject, advise?: Advise): unknown {
  if (!(error instanceof RdmaError) || error.errno === undefined || error.syscall === undefined) return error;
  const errno = -error.errno;
  const explained = RdmaError.fromErrno(error.syscall, errno, subject, advise?.(errno, error.syscall) ?? '');
  if (error.posted !== undefined) explained.posted = error.posted;
  return explained;
}

/** Runs `work`, with its failure explained. */
export function explaining<T>(subject: ErrorSubject, advise: Advise, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw explain(error, subject, advise);
  }
}

/** Awaits `work`, with its failure explained. */
export async function explainingAsync<T>(
  subject: ErrorSubject,
  advise: Advise,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw explain(error, subject, advise);
  }
}

/** A work request that did not succeed. Of a failed completion only the fields here are valid. */
export class WorkCompletionError extends RdmaError {
  readonly status: CompletionStatus;
  readonly wrId: bigint;
  /** The vendor's own code; rxe always says 0. */
  readonly vendorError: number;
  readonly qpNum: number;

  constructor(fields: {
    status: CompletionStatus;
    wrId: bigint;
    vendorError: number;
    qpNum: number;
    message: string;
    cause?: WorkCompletionError | undefined;
  }) {
    super('ERR_RDMA_COMPLETION', fields.message, { qpn: fields.qpNum, cause: fields.cause });
    this.status = fields.status;
    this.wrId = fields.wrId;
    this.vendorError = fields.vendorError;
    this.qpNum = fields.qpNum;
  }

  override get name(): string {
    return 'WorkCompletionError';
  }
}

/** What an aborted wait rejects with, in the way of Node's own. */
export function abortError(signal: AbortSignal): Error {
  const error = new Error('The operation was aborted', { cause: signal.reason });
  error.name = 'AbortError';
  return Object.assign(error, { code: 'ABORT_ERR' });
}

/** A TypeError in the way of Node's own. */
export function invalidArgType(name: string, expected: string, actual: unknown): TypeError {
  const got =
    actual === null
      ? 'null'
      : typeof actual === 'object'
        ? `a ${actual.constructor?.name ?? 'object'}`
        : typeof actual;
  return Object.assign(new TypeError(`"${name}" must be ${expected}, not ${got}`), {
    code: 'ERR_INVALID_ARG_TYPE',
  });
}

/** A RangeError in the way of Node's own. */
export function outOfRange(name: string, expected: string, actual: unknown): RangeError {
  return Object.assign(new RangeError(`"${name}" must be ${expected}, not ${String(actual)}`), {
    code: 'ERR_OUT_OF_RANGE',
  });
}
