import { ConnectionError } from '../cm/errors.js';
import { RdmaError, type WorkCompletionError } from '../verbs/errors.js';
import { decodeRefusal } from './protocol.js';

/**
 * What became of a connection, a listener or a socket of datagrams, with the codes of `node:net`.
 *
 * `ECONNREFUSED`: nobody listens there, or who listens refuses. `ECONNRESET`: the peer is gone without having ended. `ECONNABORTED`:
 * the peer gave up while it was being accepted. `ETIMEDOUT`: no answer. `EPIPE`: sent after the end. `EACCES`: the peer's memory may
 * not be reached so. `EMSGSIZE`: longer than the peer takes. `ERR_RDMA_PROTOCOL`: what came is no message of ours. `cause` has what
 * lib/cm or verbs said.
 */
export class NetError extends RdmaError {
  /** Address of the peer, where there is one. */
  readonly remoteAddress?: string;
  readonly remotePort?: number;

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & {
      syscall?: string;
      remoteAddress?: string | undefined;
      remotePort?: number | undefined;
    } = {},
  ) {
    const { remoteAddress, remotePort, ...rest } = options;
    super(code, message, rest);
    if (remoteAddress !== undefined) this.remoteAddress = remoteAddress;
    if (remotePort !== undefined) this.remotePort = remotePort;
  }

  override get name(): string {
    return 'NetError';
  }
}

/** Why no connection came to be, in the words of node:net. */
export function connectFailure(error: unknown, host: string, port: number): unknown {
  if (!(error instanceof RdmaError) || error instanceof NetError) return error;
  const where = { syscall: 'connect', remoteAddress: host, remotePort: port, cause: error };
  const failed = (code: string, text: string) =>
    new NetError(code, `connect ${code} ${host}:${port}: ${text}`, where);
  const refusal = error instanceof ConnectionError ? decodeRefusal(error.data) : undefined;
  if (refusal !== undefined) return failed('ECONNREFUSED', `the server refuses: ${refusal}`);
  if (error.code === 'ERR_RDMA_TIMEOUT') return failed('ETIMEDOUT', error.message);
  return failed(error.code, error.message);
}

/** What the failure of a request means for its connection. */
export function requestFailure(error: WorkCompletionError): NetError {
  switch (error.status) {
    case 'retryExcErr':
    case 'respTimeoutErr':
      return new NetError('ETIMEDOUT', `the peer does not answer any more: ${error.message}`, {
        cause: error,
      });
    case 'remAccessErr':
      return new NetError('EACCES', `the peer's memory may not be reached so: ${error.message}`, {
        cause: error,
      });
    case 'locLenErr':
      return new NetError(
        'ERR_RDMA_PROTOCOL',
        `a frame came that is longer than a slot of this end: ${error.message}`,
        { cause: error },
      );
    default:
      return new NetError('ECONNRESET', `the connection has failed: ${error.message}`, { cause: error });
  }
}

export function protocolError(what: string): NetError {
  return new NetError(
    'ERR_RDMA_PROTOCOL',
    `the peer does not keep to the protocol of node-rdma/net: it sent ${what}`,
  );
}
