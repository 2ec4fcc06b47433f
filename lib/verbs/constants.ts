// The numbers of <infiniband/verbs.h>, and the words that this library uses for them. test/unit/constants.test.ts holds
// the numbers against the installed header.

/** `enum ibv_access_flags`: what may be done with a memory region. Combine with `|`. */
export const Access = {
  /** The device may write: needed for receives, for the results of READ and atomics, and by any remote write. */
  LOCAL_WRITE: 1,
  REMOTE_WRITE: 1 << 1,
  REMOTE_READ: 1 << 2,
  REMOTE_ATOMIC: 1 << 3,
  MW_BIND: 1 << 4,
  ZERO_BASED: 1 << 5,
  ON_DEMAND: 1 << 6,
  HUGETLB: 1 << 7,
  RELAXED_ORDERING: 1 << 20,
} as const;

/** `enum ibv_send_flags`. Combine with `|`. */
export const SendFlags = { FENCE: 1, SIGNALED: 1 << 1, SOLICITED: 1 << 2, INLINE: 1 << 3 } as const;

/** `enum ibv_wr_opcode`, as far as queue pairs of this library send them. */
export const Opcode = {
  rdmaWrite: 0,
  rdmaWriteWithImm: 1,
  send: 2,
  sendWithImm: 3,
  rdmaRead: 4,
  atomicCmpAndSwp: 5,
  atomicFetchAndAdd: 6,
  sendWithInv: 9,
} as const;
export type SendOpcode = keyof typeof Opcode;

/** `enum ibv_wc_opcode`. */
export const CompletionOpcodeNumber = {
  send: 0,
  rdmaWrite: 1,
  rdmaRead: 2,
  compSwap: 3,
  fetchAdd: 4,
  bindMw: 5,
  localInv: 6,
  tso: 7,
  flush: 8,
  atomicWrite: 9,
  recv: 128,
  recvRdmaWithImm: 129,
  tmAdd: 130,
  tmDel: 131,
  tmSync: 132,
  tmRecv: 133,
  tmNoTag: 134,
} as const;
export type CompletionOpcode = keyof typeof CompletionOpcodeNumber;

/** What a device can do: the flags of {@link DeviceAttributes.deviceCapFlags} (`enum ibv_device_cap_flags`). */
export const DeviceCapFlags = {
  RESIZE_MAX_WR: 1,
  BAD_PKEY_CNTR: 1 << 1,
  BAD_QKEY_CNTR: 1 << 2,
  RAW_MULTI: 1 << 3,
  AUTO_PATH_MIG: 1 << 4,
  CHANGE_PHY_PORT: 1 << 5,
  UD_AV_PORT_ENFORCE: 1 << 6,
  CURR_QP_STATE_MOD: 1 << 7,
  SHUTDOWN_PORT: 1 << 8,
  INIT_TYPE: 1 << 9,
  PORT_ACTIVE_EVENT: 1 << 10,
  SYS_IMAGE_GUID: 1 << 11,
  RC_RNR_NAK_GEN: 1 << 12,
  SRQ_RESIZE: 1 << 13,
  N_NOTIFY_CQ: 1 << 14,
  MEM_WINDOW: 1 << 17,
  UD_IP_CSUM: 1 << 18,
  XRC: 1 << 20,
  MEM_MGT_EXTENSIONS: 1 << 21,
  MEM_WINDOW_TYPE_2A: 1 << 23,
  MEM_WINDOW_TYPE_2B: 1 << 24,
  RC_IP_CSUM: 1 << 25,
  RAW_IP_CSUM: 1 << 26,
  MANAGED_FLOW_STEERING: 1 << 29,
} as const;

/** `enum ibv_wc_flags`. */
export const CompletionFlags = {
  GRH: 1,
  WITH_IMM: 1 << 1,
  IP_CSUM_OK: 1 << 2,
  WITH_INV: 1 << 3,
  TM_SYNC_REQ: 1 << 4,
  TM_MATCH: 1 << 5,
  TM_DATA_VALID: 1 << 6,
} as const;

/** `enum ibv_create_cq_wc_flags`: what an extended completion queue tells of each completion. Combine with `|`. */
export const WcFlags = {
  BYTE_LEN: 1,
  IMM: 1 << 1,
  QP_NUM: 1 << 2,
  SRC_QP: 1 << 3,
  SLID: 1 << 4,
  SL: 1 << 5,
  DLID_PATH_BITS: 1 << 6,
  COMPLETION_TIMESTAMP: 1 << 7,
  CVLAN: 1 << 8,
  FLOW_TAG: 1 << 9,
  TM_INFO: 1 << 10,
  COMPLETION_TIMESTAMP_WALLCLOCK: 1 << 11,
  /** What any completion queue tells. */
  STANDARD: 127,
} as const;

/** `enum ibv_wc_status`, in its order. */
export const completionStatuses = [
  'success',
  'locLenErr',
  'locQpOpErr',
  'locEecOpErr',
  'locProtErr',
  'wrFlushErr',
  'mwBindErr',
  'badRespErr',
  'locAccessErr',
  'remInvReqErr',
  'remAccessErr',
  'remOpErr',
  'retryExcErr',
  'rnrRetryExcErr',
  'locRddViolErr',
  'remInvRdReqErr',
  'remAbortErr',
  'invEecnErr',
  'invEecStateErr',
  'fatalErr',
  'respTimeoutErr',
  'generalErr',
  'tmErr',
  'tmRndvIncomplete',
] as const;
export type CompletionStatus = (typeof completionStatuses)[number];

/** `enum ibv_qp_type`, as far as this library creates them. */
export const QpTypeNumber = { rc: 2, uc: 3, ud: 4, rawPacket: 8, xrcSend: 9, xrcRecv: 10 } as const;
export type QpType = keyof typeof QpTypeNumber;

/** `enum ibv_qp_state`, in its order. */
export const qpStates = ['reset', 'init', 'rtr', 'rts', 'sqd', 'sqe', 'err'] as const;
export type QpState = (typeof qpStates)[number];

/** `enum ibv_mig_state`, in its order. */
export const migrationStates = ['migrated', 'rearm', 'armed'] as const;
export type MigrationState = (typeof migrationStates)[number];

/** `enum ibv_qp_attr_mask`. */
export const QpAttributeMask = {
  STATE: 1,
  CUR_STATE: 1 << 1,
  EN_SQD_ASYNC_NOTIFY: 1 << 2,
  ACCESS_FLAGS: 1 << 3,
  PKEY_INDEX: 1 << 4,
  PORT: 1 << 5,
  QKEY: 1 << 6,
  AV: 1 << 7,
  PATH_MTU: 1 << 8,
  TIMEOUT: 1 << 9,
  RETRY_CNT: 1 << 10,
  RNR_RETRY: 1 << 11,
  RQ_PSN: 1 << 12,
  MAX_QP_RD_ATOMIC: 1 << 13,
  ALT_PATH: 1 << 14,
  MIN_RNR_TIMER: 1 << 15,
  SQ_PSN: 1 << 16,
  MAX_DEST_RD_ATOMIC: 1 << 17,
  PATH_MIG_STATE: 1 << 18,
  CAP: 1 << 19,
  DEST_QPN: 1 << 20,
  RATE_LIMIT: 1 << 25,
} as const;

/** `enum ibv_mtu`: bytes of payload a packet, by the code that verbs has for it. */
export const mtuBytes = { 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096 } as const;
export type Mtu = 256 | 512 | 1024 | 2048 | 4096;

/** `enum ibv_node_type`, from −1. */
export const nodeTypes = {
  '-1': 'unknown',
  1: 'ca',
  2: 'switch',
  3: 'router',
  4: 'rnic',
  5: 'usnic',
  6: 'usnicUdp',
  7: 'unspecified',
} as const;
export type NodeType = (typeof nodeTypes)[keyof typeof nodeTypes];

/** `enum ibv_transport_type`, from −1. */
export const transportTypes = {
  '-1': 'unknown',
  0: 'ib',
  1: 'iwarp',
  2: 'usnic',
  3: 'usnicUdp',
  4: 'unspecified',
} as const;
export type TransportType = (typeof transportTypes)[keyof typeof transportTypes];

/** `enum ibv_port_state`, in its order. */
export const portStates = ['nop', 'down', 'init', 'armed', 'active', 'activeDefer'] as const;
export type PortState = (typeof portStates)[number];

/** `IBV_LINK_LAYER_*`, in their order. */
export const linkLayers = ['unspecified', 'infiniband', 'ethernet'] as const;
export type LinkLayer = (typeof linkLayers)[number];

/** `enum ibv_atomic_cap`, in its order. */
export const atomicCaps = ['none', 'hca', 'glob'] as const;
export type AtomicCap = (typeof atomicCaps)[number];

/** `enum ibv_event_type`, in its order. */
export const asyncEventTypes = [
  'cqErr',
  'qpFatal',
  'qpReqErr',
  'qpAccessErr',
  'commEst',
  'sqDrained',
  'pathMig',
  'pathMigErr',
  'deviceFatal',
  'portActive',
  'portErr',
  'lidChange',
  'pkeyChange',
  'smChange',
  'srqErr',
  'srqLimitReached',
  'qpLastWqeReached',
  'clientReregister',
  'gidChange',
  'wqFatal',
] as const;
export type AsyncEventType = (typeof asyncEventTypes)[number];

/** `enum ibv_gid_type`, in its order. */
export const gidTypes = ['ib', 'roceV1', 'roceV2'] as const;
export type GidType = (typeof gidTypes)[number];
