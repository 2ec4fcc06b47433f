import type { NativeCmEvent, NativeCmId } from '../verbs/native.js';
import { unpackAddress, type AddressVector } from '../verbs/queue-pair-attributes.js';
import { cmEventTypes, type CmEventType } from './constants.js';
import type { ConnectionError } from './errors.js';
import { unpackPrivateData } from './private-data.js';

/** What the peer has told of the connection (`struct rdma_conn_param`). */
export interface CmConnectionParameters {
  /** READs and atomics of the peer that this end has to serve at a time: those that a request wants to have outstanding. */
  responderResources: number;
  /** READs and atomics that this end may have outstanding at the peer. */
  initiatorDepth: number;
  flowControl: boolean;
  retryCount: number;
  rnrRetryCount: number;
  srq: boolean;
}

/** Where datagrams to the peer, or to a group, must go (`struct rdma_ud_param`). */
export interface CmDatagramParameters {
  /** For {@link ProtectionDomain.createAh}. */
  address: AddressVector;
  remoteQkey: number;
}

/** An event of the connection manager (`struct rdma_cm_event`), copied: nothing of it needs to be acknowledged. */
export interface CmEvent {
  type: CmEventType;
  /** 0; or a negative errno; or, where the peer rejected, its reason. */
  status: number;
  /** Number of the peer's queue pair, where the event tells it; 0xffffff of a group. */
  remoteQpn: number;
  /** The whole field of the message, zeros behind what was sent; empty where there is none. */
  privateData: Buffer;
  /** What the peer gave as `data`: with its length. Undefined where its private data was not made that way. */
  data: Buffer | undefined;
  /** Of an event that is a failure: what it means, and what to look at. */
  error?: ConnectionError;
  /** Of connected identifiers. */
  connection?: CmConnectionParameters;
  /** Of datagram identifiers and of multicast. */
  datagram?: CmDatagramParameters;
}

/** @internal What the addon tells besides. */
export interface DecodedCmEvent extends CmEvent {
  request?: NativeCmId;
  multicast?: number;
}

/** @internal Undefined for an event that this library does not know. */
export function decodeCmEvent(native: NativeCmEvent): DecodedCmEvent | undefined {
  const type = cmEventTypes[native.type];
  if (type === undefined) return undefined;
  return {
    type,
    status: native.status,
    remoteQpn: native.remoteQpn,
    privateData: native.privateData,
    data: unpackPrivateData(native.privateData),
    ...(native.address === undefined
      ? {
          connection: {
            responderResources: native.responderResources!,
            initiatorDepth: native.initiatorDepth!,
            flowControl: native.flowControl!,
            retryCount: native.retryCount!,
            rnrRetryCount: native.rnrRetryCount!,
            srq: native.srq!,
          },
        }
      : { datagram: { address: unpackAddress(native.address, 0), remoteQkey: native.remoteQkey! } }),
    ...(native.request !== undefined && { request: native.request }),
    ...(native.multicast !== undefined && { multicast: native.multicast }),
  };
}
