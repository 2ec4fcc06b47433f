// The numbers of <rdma/rdma_cma.h>, and the words that this library uses for them. test/unit/cm-constants.test.ts holds the
// numbers against the installed header.

/** `enum rdma_port_space`. */
export const PortSpaceNumber = { ipoib: 0x0002, tcp: 0x0106, udp: 0x0111, ib: 0x013f } as const;
/** What an identifier is for: `'tcp'` and `'ib'` for connections (RC), `'udp'` and `'ipoib'` for datagrams (UD). */
export type PortSpace = keyof typeof PortSpaceNumber;

/** `enum rdma_cm_event_type`, in its order. */
export const cmEventTypes = [
  'addrResolved',
  'addrError',
  'routeResolved',
  'routeError',
  'connectRequest',
  'connectResponse',
  'connectError',
  'unreachable',
  'rejected',
  'established',
  'disconnected',
  'deviceRemoval',
  'multicastJoin',
  'multicastError',
  'addrChange',
  'timewaitExit',
] as const;
export type CmEventType = (typeof cmEventTypes)[number];

/** `RDMA_OPTION_*`: level, name and what the value is. */
export const CmOption = {
  /** DSCP and ECN of what the connection sends, 0 to 255. Before the address is resolved. */
  tos: { level: 0, name: 0, bytes: 1, max: 255 },
  /** 1: other identifiers may bind the same address and port. Before it is bound. */
  reuseAddr: { level: 0, name: 1, bytes: 4, max: 1 },
  /** 1: an IPv6 wildcard listener takes no IPv4. Before it is bound. */
  afOnly: { level: 0, name: 2, bytes: 4, max: 1 },
  /** Code of the acknowledge timeout: 4.096 µs × 2^code, 0 to 31. Before it connects. */
  ackTimeout: { level: 0, name: 3, bytes: 1, max: 31 },
} as const;
export type CmOptionName = keyof typeof CmOption;

/** `RDMA_OPTION_IB`, `RDMA_OPTION_IB_PATH`. */
export const IB_PATH_OPTION = { level: 1, name: 1 } as const;

/** Flags of `struct rdma_addrinfo`. */
export const AddressInfoFlag = { PASSIVE: 1, NUMERICHOST: 2, NOROUTE: 4, FAMILY: 8 } as const;

/**
 * Why the peer's side refused: the reasons of the InfiniBand specification 1.7, table 111 (REJ), as far as a RoCE network can give
 * them.
 */
export const rejectReasons: Readonly<Record<number, readonly [word: string, meaning: string]>> = {
  1: ['noQp', 'it has no queue pair left'],
  3: ['noResources', 'it has no resources left'],
  4: ['timeout', 'it gave up waiting for its program'],
  5: ['unsupportedRequest', 'it does not support the request'],
  6: ['invalidCommId', 'the communication identifier is invalid: the connect was given up meanwhile'],
  7: ['invalidCommInstance', 'the communication instance is invalid'],
  8: ['invalidServiceId', 'nobody listens on that address and port'],
  9: ['invalidTransport', 'it wants another transport service type'],
  10: ['staleConnection', 'it has a connection with that queue pair still: it has not seen the old one end'],
  12: ['invalidGid', 'it does not have that GID'],
  15: ['invalidTrafficClass', 'it does not take that traffic class'],
  16: ['invalidHopLimit', 'it does not take that hop limit'],
  17: ['invalidPacketRate', 'it does not take that packet rate'],
  26: ['invalidMtu', 'it does not take that path MTU'],
  27: [
    'insufficientResponderResources',
    'it serves fewer READs and atomics at a time than initiatorDepth asks for',
  ],
  28: ['consumerDefined', "the peer's program has refused"],
  29: ['invalidRnrRetry', 'it does not take that RNR retry count'],
  30: ['duplicateCommId', 'the communication identifier is in use'],
  31: ['invalidClassVersion', 'it speaks another version of the protocol'],
  32: ['invalidFlowLabel', 'it does not take that flow label'],
  35: ['vendorOption', 'it does not support the ECE options'],
};

/** Why a datagram service was not found (SIDR REP): InfiniBand specification 1.7, table 126. */
export const sidrStatuses: Readonly<Record<number, readonly [word: string, meaning: string]>> = {
  1: ['unsupported', 'nobody listens on that address and port'],
  2: ['rejected', "the peer's program has refused"],
  3: ['noQp', 'it has no queue pair'],
  4: ['redirect', 'the service is elsewhere'],
  5: ['unsupportedVersion', 'it speaks another version of the protocol'],
};
