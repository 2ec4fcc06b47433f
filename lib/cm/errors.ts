// What became of an attempt, in words: which address, what was the matter, where to look.
import { RdmaError } from '../verbs/errors.js';
import { rejectReasons, sidrStatuses, type CmEventType } from './constants.js';
import { rdmaAddresses, type RdmaAddress } from './devices.js';
import type { CmEvent } from './events.js';

/**
 * A connection, or an address, that did not come to be, or an established one that ended.
 *
 * `code` is the errno of the event (`'ENODEV'`, `'ETIMEDOUT'`, …), `'ECONNREFUSED'` where the peer's side rejected, or
 * `'ERR_RDMA_PATH_CHANGED'` for an established connection whose path has changed.
 */
export class ConnectionError extends RdmaError {
  /** The event that told of it. */
  readonly event: CmEventType;
  readonly status: number;
  /** Why the peer's side rejected, in a word: `'invalidServiceId'` (nobody listens), `'consumerDefined'` (its program refused), … */
  readonly reason?: string;
  /** What the peer gave with its rejection: the whole field. */
  readonly privateData: Buffer;
  /** What the peer gave as `data`. */
  readonly data: Buffer | undefined;

  /** @internal */
  constructor(code: string, message: string, event: CmEvent, reason?: string) {
    super(code, message, event.status < 0 ? { errno: event.status } : {});
    this.event = event.type;
    this.status = event.status;
    if (reason !== undefined) this.reason = reason;
    this.privateData = event.privateData;
    this.data = event.data;
  }

  override get name(): string {
    return 'ConnectionError';
  }
}

/** What an identifier was about, for the texts. */
export interface AttemptSubject {
  /** Own address, where it is known. */
  local?: string;
  /** `address:port` of the peer, where there is one. */
  peer?: string;
  datagrams: boolean;
  established: boolean;
}

const ENODEV = 19;

/** @internal The error of an event by which something failed. */
export function failureOf(
  event: CmEvent,
  subject: AttemptSubject,
  addresses: () => readonly RdmaAddress[] = rdmaAddresses,
): ConnectionError {
  const to = subject.peer ?? 'the address';
  const { code, text } = describeErrno(event.status);
  switch (event.type) {
    case 'addrError':
      if (event.status === -ENODEV)
        return new ConnectionError(
          code,
          `${to}: ${noDeviceFor(subject.local ?? subject.peer, addresses())}`,
          event,
        );
      return new ConnectionError(
        code,
        `${to} was not resolved: ${text}. Is there a route to it, and does it answer ARP or neighbour discovery (ip neigh)?`,
        event,
      );
    case 'routeError':
      return new ConnectionError(
        code,
        `no RDMA route to ${to}: ${text}. Do both ends have a GID of the same type and address family, and is the port up?`,
        event,
      );
    case 'unreachable':
      return unreachable(event, subject, to, code, text);
    case 'rejected':
      return rejected(event, to, rejectReasons);
    case 'connectError':
      return new ConnectionError(
        code,
        `the connection with ${to} could not be completed: ${text}. The queue pair did not take what was agreed (path MTU, GID, ` +
          'queue pair state), or the peer fell silent meanwhile.',
        event,
      );
    case 'deviceRemoval':
      return new ConnectionError(
        'ENODEV',
        `the device of the connection with ${to} was removed: close all that is on it`,
        event,
      );
    case 'multicastError':
      return new ConnectionError(
        code,
        `the group ${to} could not be joined: ${text}. Is it a multicast address, and does the interface carry multicast?`,
        event,
      );
    case 'disconnected':
      return new ConnectionError('ECONNRESET', `${to} has disconnected`, event);
    default:
      return new ConnectionError(code, `${to}: ${event.type} with status ${event.status}`, event);
  }
}

function rejected(event: CmEvent, to: string, table: typeof rejectReasons): ConnectionError {
  const [word, meaning] = table[event.status] ?? [`reason${event.status}`, `reason ${event.status}`];
  return new ConnectionError('ECONNREFUSED', `${to} rejected: ${meaning} (${event.status})`, event, word);
}

function unreachable(event: CmEvent, subject: AttemptSubject, to: string, code: string, text: string) {
  if (subject.datagrams && event.status > 0) return rejected(event, to, sidrStatuses);
  if (subject.established) {
    return new ConnectionError(
      'ERR_RDMA_PATH_CHANGED',
      `the path to ${to} has changed (its link address, as of a virtual address that moved): the connection goes on to the old ` +
        'one. Make it anew.',
      event,
    );
  }
  return new ConnectionError(
    code,
    `${to} does not answer: ${text}. Is the peer up with its RDMA device, is UDP port 4791 open on the way, and do both ends ` +
      'use GIDs of the same type (RoCE v2)?',
    event,
  );
}

function describeErrno(status: number): { code: string; text: string } {
  if (status >= 0) return { code: 'EIO', text: `status ${status}` };
  const { code, message } = RdmaError.fromErrno('', -status);
  return { code, text: message.replace(/^: /, '') };
}

/** @internal What to say of an address that no RDMA device has. */
export function noDeviceFor(address: string | undefined, addresses: readonly RdmaAddress[]): string {
  const loopback = address !== undefined && /^(127\.|::1|\[::1\])/.test(address);
  const what = loopback
    ? 'the loopback interface has no RDMA device: use an address of one that has, also to reach this machine'
    : 'the way there leads over no interface with an RDMA device';
  const usable = addresses.filter(({ address: usual }) => !/^fe[89ab]/i.test(usual));
  if (usable.length === 0)
    return `${what}. No RDMA device here has an address: give its interface one (ip address add 192.0.2.1/24 dev NAME).`;
  const list = usable.map(({ address: own, device, netdev }) => `${own} (${device} on ${netdev})`);
  return `${what}. Addresses with one: ${list.join(', ')}.`;
}
