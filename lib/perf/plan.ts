import type { Mtu } from '../verbs/constants.js';
import type { Context } from '../verbs/context.js';
import { RdmaError } from '../verbs/errors.js';
import { chooseGid, describeGid, type GidChoice } from '../verbs/gid.js';
import { withinDevice } from '../verbs/validate.js';
import { checkInline } from './inline.js';
import { sizesOf, type Settings } from './options.js';

/** What the settings come to on a port of a device. */
export interface Plan {
  settings: Settings;
  context: Context;
  gid: GidChoice;
  /** Bytes of a message, in the order in which they are measured. */
  sizes: number[];
  /** The highest that this end would use. */
  mtu: Mtu;
  /** READs and atomics outstanding at a time, of either end. */
  outstandingReads: number;
  completionEntries: number;
}

/** In front of each datagram that is received. */
export const GRH_BYTES = 40;

/**
 * Refuses what the device cannot do before anything is connected.
 *
 * @throws RdmaError `ERR_RDMA_LIMIT`, `ERR_RDMA_NO_GID`, `ERR_RDMA_INVALID_STATE`, `ERR_RDMA_UNSUPPORTED`, each with what would do
 */
export function makePlan(settings: Settings, context: Context): Plan {
  const { devicePort: port, connection, verb, queuePairs, txDepth, rxDepth } = settings;
  const device = context.device.name;
  const subject = { device, port };
  const { activeMtu, maxMsgSz, state } = context.queryPort(port);
  const attributes = context.queryDevice();
  if (state !== 'active') {
    throw new RdmaError(
      'ERR_RDMA_INVALID_STATE',
      `port ${port} of ${device} is ${state.toUpperCase()}, not ACTIVE: bring its network interface up`,
      subject,
    );
  }
  if (verb === 'atomic' && attributes.atomicCap === 'none') {
    throw new RdmaError('ERR_RDMA_UNSUPPORTED', `${device} has no atomics`, subject);
  }
  const mtu = settings.mtu ?? activeMtu;
  if (mtu > activeMtu) {
    throw new RdmaError(
      'ERR_RDMA_LIMIT',
      `mtu ${mtu} is above the active MTU ${activeMtu} of port ${port} of ${device}: use at most that, or raise the MTU of its ` +
        'network interface (4200 carries 4096)',
      subject,
    );
  }
  const largest = connection === 'ud' ? mtu : maxMsgSz;
  const sizes = sizesOf(settings, largest);
  const above = sizes.find((size) => size > largest);
  if (above !== undefined) {
    throw new RdmaError(
      'ERR_RDMA_LIMIT',
      `size ${above} is above the ${largest} bytes that a ${connection === 'ud' ? 'datagram' : 'message'} of port ${port} of ${device} holds`,
      subject,
    );
  }
  withinDevice('txDepth', txDepth, 1, attributes.maxQpWr, device);
  withinDevice('rxDepth', rxDepth, 0, attributes.maxQpWr, device);
  const completionEntries = queuePairs * (txDepth + rxDepth);
  if (completionEntries > attributes.maxCqe) {
    throw new RdmaError(
      'ERR_RDMA_LIMIT',
      `${queuePairs} queue pairs with txDepth ${txDepth}${rxDepth > 0 ? ` and rxDepth ${rxDepth}` : ''} need ${completionEntries} ` +
        `completion queue entries, and ${device} has ${attributes.maxCqe} at most: use fewer of either`,
      subject,
    );
  }
  checkInline(settings, context);
  const offered = Math.min(attributes.maxQpRdAtom, attributes.maxQpInitRdAtom, 255);
  const outstandingReads =
    verb === 'read' || verb === 'atomic'
      ? withinDevice('outstandingReads', settings.outstandingReads ?? offered, 1, offered, device)
      : 1;
  return {
    settings,
    context,
    gid: ownGid(settings, context),
    sizes,
    mtu,
    outstandingReads,
    completionEntries,
  };
}

function ownGid({ gidIndex, ipv6, devicePort: port }: Settings, context: Context): GidChoice {
  const device = context.device.name;
  if (gidIndex === undefined && !ipv6) return context.chooseGid({}, port);
  const entries = context.queryGidTable(port);
  if (gidIndex === undefined) {
    const candidates = entries.filter((entry) => entry.scope !== 'ipv4');
    return chooseGid(candidates, {}, { device, port });
  }
  const entry = entries.find(({ index }) => index === gidIndex);
  if (entry !== undefined) return { ...entry, reason: `index ${gidIndex}, as asked for` };
  throw new RdmaError(
    'ERR_RDMA_NO_GID',
    `port ${port} of ${device} has no GID at index ${gidIndex}. It has ${entries.map(describeGid).join('; ') || 'none'}.`,
    { device, port, gidIndex },
  );
}
