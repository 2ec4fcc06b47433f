// The words for what became of a connection: also for what no software device can be brought to.
import { describe, expect, it } from 'vitest';
import { rejectReasons, type CmEventType } from '../../lib/cm/constants.js';
import { refuseZeroGuid } from '../../lib/cm/devices.js';
import { ConnectionError, failureOf, type AttemptSubject } from '../../lib/cm/errors.js';

const event = (type: CmEventType, status: number) => ({
  type,
  status,
  remoteQpn: 0,
  privateData: Buffer.alloc(0),
  data: undefined,
});
const subject: AttemptSubject = { peer: '10.0.0.2:7', datagrams: false, established: false };
const some = () => [
  { address: '10.0.0.1', device: 'rxe0', netdev: 'eth0' },
  { address: 'fe80::1', device: 'rxe0', netdev: 'eth0' },
];
const none = () => [];

const cases: [string, CmEventType, number, Partial<AttemptSubject>, string, RegExp][] = [
  [
    'no device there',
    'addrError',
    -19,
    {},
    'ENODEV',
    /10\.0\.0\.2:7: .*Addresses with one: 10\.0\.0\.1 \(rxe0 on eth0\)\.$/,
  ],
  [
    'loopback',
    'addrError',
    -19,
    { peer: '127.0.0.1:7' },
    'ENODEV',
    /loopback interface has no RDMA device: use an address of one/,
  ],
  [
    'loopback over IPv6',
    'addrError',
    -19,
    { peer: '[::1]:7' },
    'ENODEV',
    /loopback interface has no RDMA device/,
  ],
  ['no neighbour', 'addrError', -110, {}, 'ETIMEDOUT', /was not resolved.*answer ARP/],
  ['no route', 'addrError', -101, {}, 'ENETUNREACH', /Is there a route to it/],
  ['no path', 'routeError', -22, {}, 'EINVAL', /no RDMA route to 10\.0\.0\.2:7.*GID of the same type/],
  ['silence', 'unreachable', -110, {}, 'ETIMEDOUT', /does not answer.*UDP port 4791 open.*RoCE v2/],
  [
    'another path',
    'unreachable',
    -110,
    { established: true },
    'ERR_RDMA_PATH_CHANGED',
    /path .* has changed.*Make it anew/,
  ],
  [
    'nobody',
    'rejected',
    8,
    {},
    'ECONNREFUSED',
    /10\.0\.0\.2:7 rejected: nobody listens on that address and port \(8\)/,
  ],
  ['refusal', 'rejected', 28, {}, 'ECONNREFUSED', /the peer's program has refused \(28\)/],
  ['an old connection', 'rejected', 10, {}, 'ECONNREFUSED', /has a connection with that queue pair still/],
  ['an MTU', 'rejected', 26, {}, 'ECONNREFUSED', /path MTU/],
  ['a reason of no name', 'rejected', 99, {}, 'ECONNREFUSED', /rejected: reason 99 \(99\)/],
  ['no such service', 'unreachable', 1, { datagrams: true }, 'ECONNREFUSED', /nobody listens/],
  ['a refused service', 'unreachable', 2, { datagrams: true }, 'ECONNREFUSED', /program has refused/],
  ['a silent service', 'unreachable', -110, { datagrams: true }, 'ETIMEDOUT', /does not answer/],
  [
    'a queue pair that would not',
    'connectError',
    -22,
    {},
    'EINVAL',
    /could not be completed.*did not take what was agreed/,
  ],
  ['a device that went', 'deviceRemoval', 0, {}, 'ENODEV', /device .* was removed: close all/],
  ['a group', 'multicastError', -22, {}, 'EINVAL', /could not be joined.*multicast address/],
  ['the end', 'disconnected', 0, { established: true }, 'ECONNRESET', /has disconnected/],
];

describe('an event that is a failure', () => {
  it.each(cases)('%s', (_name, type, status, more, code, message) => {
    const error = failureOf(event(type, status), { ...subject, ...more }, some);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ code, event: type, status, name: 'ConnectionError' });
    expect(error.message).toMatch(message);
  });

  it('says so where no device has an address at all', () => {
    expect(failureOf(event('addrError', -19), subject, none).message).toMatch(
      /No RDMA device here has an address: give/,
    );
  });

  it('has a word for each reason, and none twice', () => {
    const words = Object.values(rejectReasons).map(([word]) => word);
    expect(new Set(words).size).toBe(words.length);
    for (const [status, [word]] of Object.entries(rejectReasons)) {
      expect(failureOf(event('rejected', Number(status)), subject).reason).toBe(word);
    }
  });
});

it('a device with a GUID of zero is refused before librdmacm meets it', () => {
  const good = { name: 'rxe0', guid: '5054:00ff:fe12:3456' };
  expect(() => refuseZeroGuid([good])).not.toThrow();
  expect(() => refuseZeroGuid([good, { name: 'rxe_tun', guid: '0000:0000:0000:0000' }])).toThrow(
    expect.objectContaining({
      code: 'ERR_RDMA_NO_DEVICE',
      device: 'rxe_tun',
      message: expect.stringContaining('rdma link delete rxe_tun') as string,
    }) as Error,
  );
});
