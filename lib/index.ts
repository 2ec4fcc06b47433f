export {
  Access,
  CompletionFlags,
  DeviceCapFlags,
  SendFlags,
  WcFlags,
  type AsyncEventType,
  type AtomicCap,
  type CompletionOpcode,
  type CompletionStatus,
  type GidType,
  type LinkLayer,
  type MigrationState,
  type Mtu,
  type NodeType,
  type PortState,
  type QpState,
  type QpType,
  type SendOpcode,
  type TransportType,
} from './verbs/constants.js';
export { importDevice, listDevices, openDevice, type Device } from './verbs/device.js';
export { type DeviceProblem } from './verbs/device-access.js';
export { Context, type DeviceAttributes, type PortAttributes } from './verbs/context.js';
export { RdmaError, WorkCompletionError, type ErrorSubject } from './verbs/errors.js';
export {
  formatGid,
  parseGid,
  type GidChoice,
  type GidEntry,
  type GidScope,
  type GidSelection,
} from './verbs/gid.js';
export { ProtectionDomain, type MemorySource } from './verbs/protection-domain.js';
export { AddressHandle } from './verbs/address-handle.js';
export { udpSourcePort } from './verbs/path.js';
export {
  SharedReceiveQueue,
  type SharedReceiveQueueOptions,
  type SrqType,
} from './verbs/shared-receive-queue.js';
export { GRH_BYTES, parseGrh, type GlobalRoutingHeader } from './verbs/grh.js';
export { MemoryRegion, MemorySlice, RemoteRegion, type RegisterOptions } from './verbs/memory-region.js';
export {
  type AdviseOptions,
  type DeviceMemoryRegionOptions,
  type DmabufOptions,
  type ImportedRegionOptions,
  type MemoryAdvice,
} from './verbs/memory-kinds.js';
export { type ReregisterOptions } from './verbs/reregister.js';
export {
  incRkey,
  MemoryWindow,
  type BindRequest,
  type MemoryWindowType,
  type WindowRequest,
} from './verbs/memory-window.js';
export { DeviceMemory, type DeviceMemoryOptions } from './verbs/device-memory.js';
export { ThreadDomain, XrcDomain, type XrcDomainOptions } from './verbs/domains.js';
export {
  ExtendedCompletionQueue,
  type ExtendedCompletionQueueOptions,
  type ExtendedWorkCompletion,
} from './verbs/extended-completion-queue.js';
export {
  type AtomicWriteRequest,
  type ExtendedSendRequest,
  type FlushRequest,
  type SendOp,
} from './verbs/extended-posting.js';
export { QpCreateFlags, type QueuePairExtensionOptions } from './verbs/queue-pair-extension.js';
export { type Ece, type RateLimit, type TsoRequest } from './verbs/queue-pair-settings.js';
export {
  IndirectionTable,
  ReceiveWorkQueue,
  RssQueuePair,
  RxHashFields,
  WqFlags,
  type ReceiveWorkQueueOptions,
  type RssQueuePairOptions,
  type WorkQueueAttributes,
  type WqState,
} from './verbs/receive-work-queue.js';
export { Flow, type FlowOptions, type FlowType } from './verbs/flow.js';
export { Counters, FlowAction, type CounterDescription, type EspOptions } from './verbs/flow-objects.js';
export { type FlowDecision, type FlowFields, type FlowMatch, type FlowSpec } from './verbs/flow-specs.js';
export { type TagOperation } from './verbs/tag-matching.js';
export {
  eventTypeString,
  forkInit,
  forkStatus,
  isQptSupported,
  mbpsToRate,
  multToRate,
  nodeTypeString,
  portStateString,
  rateToMbps,
  rateToMult,
  wcStatusString,
  wrOpcodeString,
  type ForkStatus,
} from './verbs/names.js';
export { cmEventString } from './cm/names.js';
export { CompletionChannel } from './verbs/completion-channel.js';
export {
  CompletionQueue,
  type CompletionQueueOptions,
  type CompletionsOptions,
  type CompletionWaitOptions,
} from './verbs/completion-queue.js';
export { type WaitOptions } from './verbs/completion-waiter.js';
export {
  AsyncEvents,
  type AsyncEvent,
  type AsyncEventMap,
  type CompletionQueueEvent,
  type DeviceEvent,
  type PortEvent,
  type QueuePairEvent,
  type SharedReceiveQueueEvent,
  type WorkQueueEvent,
} from './verbs/async-events.js';
export { type WorkCompletion } from './verbs/work-completion.js';
export {
  QueuePair,
  type ConnectOptions,
  type QueuePairEndpoint,
  type QueuePairOptions,
} from './verbs/queue-pair.js';
export {
  type AddressVector,
  type QueuePairAttributes,
  type QueuePairState,
} from './verbs/queue-pair-attributes.js';
export {
  type DatagramTarget,
  type ReceiveRequest,
  type RemoteTarget,
  type SendRequest,
  type Sge,
} from './verbs/work-request.js';
export { PreparedSend } from './verbs/prepared-send.js';
export { Resource, type CloseOptions } from './verbs/resource.js';
export { SendRing } from './ring/send-ring.js';
export { ReceiveRing } from './ring/receive-ring.js';
export { CompletionRing } from './ring/completion-ring.js';
export {
  AddressInfoFlag,
  CmOption,
  type CmEventType,
  type CmOptionName,
  type PortSpace,
} from './cm/constants.js';
export { createEventChannel, EventChannel } from './cm/event-channel.js';
export { CmId, type CmIdState, type ResolveOptions } from './cm/id.js';
export { type CmIdEvents, type CmEventMap } from './cm/id-events.js';
export { type CmQueuePairOptions } from './cm/id-verbs.js';
export { type CmConnectOptions } from './cm/connection-parameters.js';
export { type CmWaitOptions } from './cm/attempt.js';
export { type CmConnectionParameters, type CmDatagramParameters, type CmEvent } from './cm/events.js';
export { ConnectionError } from './cm/errors.js';
export { MulticastGroup } from './cm/multicast.js';
export { connectionManagerDevices } from './cm/devices.js';
export {
  getAddressInfo,
  type AddressInfo,
  type AddressInfoHints,
  type CmAddress,
} from './cm/address-info.js';
export { PRIVATE_DATA_LIMITS, type PrivateDataMessage, type PrivateDataOptions } from './cm/private-data.js';
