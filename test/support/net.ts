// Connections of node-rdma/net over the wire of the machine, for tests on a real device.
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import {
  connect,
  createServer,
  type Connection,
  type ConnectOptions,
  type Server,
  type ServerOptions,
} from '../../lib/net/index.js';
import { addressA, addressB } from './cm.js';

/** A server at the end B, on a port that was free, which is closed with the test. */
export async function listening(
  options: ServerOptions = {},
  onConnection?: (connection: Connection) => void,
): Promise<Server> {
  const server = createServer(options, onConnection);
  await server.listen({ host: addressB });
  onTestFinished(() => (server.listening ? server[Symbol.asyncDispose]() : undefined));
  return server;
}

/** A connection from the end A, which is closed with the test. */
export async function connecting(server: Server, options: Partial<ConnectOptions> = {}): Promise<Connection> {
  const { port } = server.address()!;
  const connection = await connect({ host: addressB, port, localAddress: addressA, ...options });
  onTestFinished(() => void connection.destroy());
  return connection;
}

export interface Pair {
  client: Connection;
  /** The server's end of the connection. */
  peer: Connection;
  server: Server;
}

/** Both ends of a connection. Errors of either end are taken, so that tests which cause some need not. */
export async function connectedPair(
  options: ServerOptions = {},
  own: { client?: Partial<ConnectOptions>; server?: ServerOptions } = {},
): Promise<Pair> {
  const server = await listening({ ...options, ...own.server });
  const accepted = once(server, 'connection', { signal: AbortSignal.timeout(60_000) });
  const client = await connecting(server, { ...options, ...own.client });
  const [peer] = (await accepted) as [Connection];
  for (const end of [client, peer]) end.on('error', () => undefined);
  return { client, peer, server };
}

/** All messages until the end. */
export async function all(connection: Connection): Promise<Buffer[]> {
  const messages: Buffer[] = [];
  for await (const message of connection) messages.push(message);
  return messages;
}

/** Waits for an event, with a deadline. */
export async function event(connection: Connection | Server, name: string): Promise<unknown[]> {
  return (await once(connection, name, { signal: AbortSignal.timeout(60_000) })) as unknown[];
}

/** Resolves when the connection is closed, whether with an error or not. */
export function closed(connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    if (connection.closed) return resolve();
    const deadline = setTimeout(() => reject(new Error('the connection was not closed in time')), 60_000);
    connection.once('close', () => {
      clearTimeout(deadline);
      resolve();
    });
  });
}
