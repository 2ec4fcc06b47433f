// Texts and conversions that the C library has, by calling it. The words of this library are what they are asked about.
import {
  asyncEventTypes,
  completionStatuses,
  nodeTypes,
  Opcode,
  portStates,
  QpTypeNumber,
  type AsyncEventType,
  type CompletionStatus,
  type NodeType,
  type PortState,
  type QpType,
  type SendOpcode,
} from './constants.js';
import { explaining, outOfRange } from './errors.js';
import { ExtendedOpcode, type ExtendedSendOpcode } from './extended-posting.js';
import { native } from './native.js';
import { integer, wordIndex, wordNumber } from './validate.js';

/** What C programs print for a completion status, such as `'transport retry counter exceeded'`. `ibv_wc_status_str` */
export function wcStatusString(status: CompletionStatus): string {
  return native().wcStatusString(wordIndex('status', completionStatuses, status));
}

/** What C programs print for the type of a device, such as `'InfiniBand channel adapter'`. `ibv_node_type_str` */
export function nodeTypeString(type: NodeType): string {
  const number = Object.entries(nodeTypes).find(([, word]) => word === type)?.[0];
  if (number === undefined) throw outOfRange('type', `one of ${Object.values(nodeTypes).join(', ')}`, type);
  return native().nodeTypeString(Number(number) >>> 0);
}

/** What C programs print for the state of a port, such as `'active'`. `ibv_port_state_str` */
export function portStateString(state: PortState): string {
  return native().portStateString(wordIndex('state', portStates, state));
}

/** What C programs print for an asynchronous event, such as `'port active'`. `ibv_event_type_str` */
export function eventTypeString(type: AsyncEventType): string {
  return native().eventTypeString(wordIndex('type', asyncEventTypes, type));
}

/**
 * What C programs print for an opcode. `ibv_wr_opcode_str`, newer than rdma-core 44.
 *
 * @throws RdmaError `ERR_RDMA_UNSUPPORTED` where the library has no such function
 */
export function wrOpcodeString(opcode: SendOpcode | ExtendedSendOpcode): string {
  const number = wordNumber('opcode', { ...Opcode, ...ExtendedOpcode }, opcode);
  return explaining(
    {},
    () => 'It is newer than the installed rdma-core',
    () => native().wrOpcodeString(number),
  );
}

const MOST_RATES = 255;

/** The multiple of 2.5 Gbit/s that a rate's code (`enum ibv_rate`, as in {@link AddressVector.staticRate}) means; −1 for none. `ibv_rate_to_mult` */
export function rateToMult(rate: number): number {
  return native().rateToMult(integer('rate', rate, 0, MOST_RATES));
}

/** The code of a rate, from a multiple of 2.5 Gbit/s; 0 (no limit) where there is none. `mult_to_ibv_rate` */
export function multToRate(multiple: number): number {
  return native().multToRate(integer('multiple', multiple, 0, 2 ** 31 - 1));
}

/** The Mbit/s that a rate's code means; −1 for none. `ibv_rate_to_mbps` */
export function rateToMbps(rate: number): number {
  return native().rateToMbps(integer('rate', rate, 0, MOST_RATES));
}

/** The code of a rate, from Mbit/s; 0 (no limit) where there is none. `mbps_to_ibv_rate` */
export function mbpsToRate(mbps: number): number {
  return native().mbpsToRate(integer('mbps', mbps, 0, 2 ** 31 - 1));
}

const forkStates = ['disabled', 'enabled', 'unneeded'] as const;
/** `enum ibv_fork_status`. */
export type ForkStatus = (typeof forkStates)[number];

/**
 * What becomes of registered memory when the process forks. `'unneeded'`: the kernel (5.12 and newer) keeps it right, and
 * nothing is to be done. `child_process` needs nothing either: it starts another program at once. `ibv_is_fork_initialized`
 */
export function forkStatus(): ForkStatus {
  return forkStates[native().forkStatus()] ?? 'disabled';
}

/**
 * Protects registered memory across fork(), for old kernels, before anything is registered. Where {@link forkStatus} is
 * `'unneeded'` it does nothing, since it would cost and gain nothing. `ibv_fork_init`
 *
 * @throws RdmaError `EINVAL` after memory was registered
 */
export function forkInit(): void {
  if (forkStatus() === 'unneeded') return;
  explaining(
    {},
    () => 'Call it first, before any memory is registered',
    () => native().forkInit(),
  );
}

/** Whether a mask of queue pair types, such as {@link DeviceAttributes.tsoQpts}, has one. `ibv_is_qpt_supported` */
export function isQptSupported(mask: number, type: QpType): boolean {
  integer('mask', mask, 0, 2 ** 32 - 1);
  return (mask & (1 << wordNumber('type', QpTypeNumber, type))) !== 0;
}
