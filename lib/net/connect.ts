import { checkWait } from '../cm/attempt.js';
import type { EventChannel } from '../cm/event-channel.js';
import { acquireChannel, releaseChannel } from './cm-channel.js';
import { Connection } from './connection.js';
import { connectFailure, NetError } from './errors.js';
import { Link } from './link.js';
import { address, connectionSettings, RESERVE, type ConnectOptions, type Settings } from './options.js';
import { decodeHello, encodeHello, type Hello } from './protocol.js';

const CONNECT_MS = 10_000;

/**
 * Connects to a {@link Server}.
 *
 * @param options `timeoutMs`: 10 000 by default, of the whole
 * @throws TypeError, RangeError; NetError `ECONNREFUSED` where nobody listens or the server refuses, `ETIMEDOUT`, `ENOTFOUND`, `ENODEV`
 * for an address that no RDMA device leads to, `EHOSTUNREACH`, `ERR_RDMA_PROTOCOL` where another kind of program listens; AbortError
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  address(options);
  checkWait(options);
  const settings = connectionSettings(options);
  const channel = acquireChannel();
  try {
    return await connectOn(channel, options, settings);
  } catch (error) {
    releaseChannel();
    throw connectFailure(error, options.host, options.port);
  }
}

async function connectOn(
  channel: EventChannel,
  options: ConnectOptions,
  settings: Settings,
): Promise<Connection> {
  const { host, port, signal, timeoutMs = CONNECT_MS, localAddress, localPort, family } = options;
  const deadline = performance.now() + timeoutMs;
  const left = () => ({
    timeoutMs: Math.max(Math.ceil(deadline - performance.now()), 1),
    ...(signal !== undefined && { signal }),
  });
  const id = channel.createId('tcp');
  try {
    id.setOption('ackTimeout', settings.ackTimeout);
    await id.resolve(host, port, {
      ...left(),
      ...(localAddress !== undefined && { source: localAddress }),
      ...(localPort !== undefined && { sourcePort: localPort }),
      ...(family !== undefined && { family }),
    });
    const link = await Link.open(id, id.pd, settings);
    try {
      const accepted = await id.connect({ ...left(), data: encodeHello(helloOf(settings)) });
      const peer = decodeHello(accepted.data);
      if ('wrong' in peer)
        throw new NetError('ERR_RDMA_PROTOCOL', `${host}:${port} has accepted, but ${peer.wrong}`, {
          remoteAddress: host,
          remotePort: port,
        });
      const initiatorDepth = accepted.connection!.initiatorDepth;
      const connection = new Connection({ link, settings, peer, initiatorDepth, onClosed: releaseChannel });
      connection.start();
      return connection;
    } catch (error) {
      await link.close(error as Error);
      throw error;
    }
  } catch (error) {
    await id.closeAsync({ cascade: true });
    throw error;
  }
}

/** What an end with these settings tells of itself. */
export function helloOf({ slots, slabBytes, eagerLimit, maxMessage }: Settings): Hello {
  return { slots: slots + RESERVE, reserve: RESERVE, slabBytes, eagerLimit, maxMessage };
}
