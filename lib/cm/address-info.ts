import { isIP } from 'node:net';
import { QpTypeNumber, type QpType } from '../verbs/constants.js';
import { explain, invalidArgType, outOfRange } from '../verbs/errors.js';
import { native, type NativeAddressInfo } from '../verbs/native.js';
import { integer, options as checkOptions, wordNumber } from '../verbs/validate.js';
import { AddressInfoFlag, PortSpaceNumber, type PortSpace } from './constants.js';

/** An IPv4 or IPv6 address and a port in host order. */
export interface CmAddress {
  family: 'IPv4' | 'IPv6';
  address: string;
  port: number;
}

/** What {@link getAddressInfo} is to look for (`struct rdma_addrinfo` as hints). */
export interface AddressInfoHints {
  /** For a listener: the result has the address to bind to as its `source`. */
  passive?: boolean;
  /** `node` is an address: no name is looked up. */
  numericHost?: boolean;
  /** No route is asked for, even where the ibacm service runs. */
  noRoute?: boolean;
  family?: 4 | 6;
  /** `'tcp'` by default. */
  portSpace?: PortSpace;
  /** By default that of the port space. */
  qpType?: QpType;
  /** Own address to use. */
  source?: { address: string; port?: number };
}

/** One way to reach, or to be reached (`struct rdma_addrinfo`). */
export interface AddressInfo {
  passive: boolean;
  portSpace: PortSpace;
  qpType: QpType;
  source?: CmAddress;
  destination?: CmAddress;
  sourceName?: string;
  destinationName?: string;
  /** Path records, where the ibacm service has given them: for {@link CmId.setPath}. */
  route?: Uint8Array;
  /** Private data that the ibacm service wants sent before the program's own. */
  connect?: Uint8Array;
}

/**
 * Addresses for RDMA from names and services, on another thread: it may ask a name server, and the ibacm service where that
 * runs. `rdma_getaddrinfo`
 *
 * @throws TypeError, RangeError; RdmaError `ENOTFOUND` for a name that nobody knows; others as the system has them
 */
export async function getAddressInfo(
  node: string | undefined,
  service: string | number | undefined,
  hints: AddressInfoHints = {},
): Promise<AddressInfo[]> {
  checkOptions('hints', hints);
  if (node !== undefined && typeof node !== 'string') throw invalidArgType('node', 'a string', node);
  if (service !== undefined && typeof service !== 'string') integer('service', service, 0, 65535);
  if (node === undefined && service === undefined)
    throw invalidArgType('node', 'a string, where no service is given', node);
  const portSpace = wordNumber('portSpace', PortSpaceNumber, hints.portSpace ?? 'tcp');
  const datagrams = hints.portSpace === 'udp' || hints.portSpace === 'ipoib';
  const qpType = wordNumber('qpType', QpTypeNumber, hints.qpType ?? (datagrams ? 'ud' : 'rc'));
  if (hints.family !== undefined && hints.family !== 4 && hints.family !== 6)
    throw outOfRange('family', '4 or 6', hints.family);
  const flags =
    (hints.passive ? AddressInfoFlag.PASSIVE : 0) |
    (hints.numericHost ? AddressInfoFlag.NUMERICHOST : 0) |
    (hints.noRoute ? AddressInfoFlag.NOROUTE : 0);
  const { source } = hints;
  try {
    const found = await native().getAddressInfo(
      node,
      service === undefined ? undefined : String(service),
      flags,
      hints.family ?? 0,
      portSpace,
      qpType,
      source && ipAddress('source.address', source.address),
      source?.port ?? 0,
    );
    return found.map(decode);
  } catch (error) {
    throw explain(error, {}, (errno) =>
      errno === 19
        ? 'No RDMA device has that address: connectionManagerDevices() lists those that there are'
        : '',
    );
  }
}

/** @internal An IPv4 or IPv6 address; an IPv6 one may name its interface. @throws TypeError, RangeError */
export function ipAddress(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidArgType(name, 'a string', value);
  if (isIP(value) === 0)
    throw outOfRange(name, 'an IPv4 or IPv6 address (getAddressInfo() finds those of a name)', value);
  return value;
}

const portSpaces = new Map(
  Object.entries(PortSpaceNumber).map(([word, number]) => [number as number, word as PortSpace]),
);
const qpTypes = new Map(
  Object.entries(QpTypeNumber).map(([word, number]) => [number as number, word as QpType]),
);

function decode({ flags, portSpace, qpType, ...rest }: NativeAddressInfo): AddressInfo {
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return {
    passive: (flags & AddressInfoFlag.PASSIVE) !== 0,
    portSpace: portSpaces.get(portSpace) ?? 'tcp',
    qpType: qpTypes.get(qpType) ?? 'rc',
    ...given,
  };
}
