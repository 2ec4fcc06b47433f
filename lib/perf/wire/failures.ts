// How a talk with a peer fails, by whatever carries it.
import { RdmaError } from '../../verbs/errors.js';

export function peerLost(peer: string, cause?: Error): RdmaError {
  return new RdmaError(
    'ERR_RDMA_PEER_LOST',
    `${peer} ended the session before its end${cause ? ` (${cause.message})` : ''}: see what it has printed. It ends so too when ` +
      'it runs another test or was given other options.',
    { cause },
  );
}

/** @param came what has come of the message */
export function peerSilent(peer: string, came: string, timeout: number): RdmaError {
  return new RdmaError(
    'ERR_RDMA_TIMEOUT',
    `${peer} has said ${came} for ${timeout} ms where its next message should come. Do both ends run the same test, with the ` +
      'same connection type, number of queue pairs, -a, -b, -D, -R and -z?',
  );
}
