#include <infiniband/verbs.h>
#include <napi.h>

#include "addon_data.h"
#include "address_handle.h"
#include "cm_address_info.h"
#include "cm_event_channel.h"
#include "cm_id.h"
#include "completion_channel.h"
#include "completion_queue.h"
#include "constants.h"
#include "context.h"
#include "context_queries.h"
#include "device_memory.h"
#include "domains.h"
#include "flow.h"
#include "flow_label.h"
#include "library.h"
#include "memory_kinds.h"
#include "memory_region.h"
#include "memory_window.h"
#include "protection_domain.h"
#include "queue_pair.h"
#include "queue_pair_extended.h"
#include "queue_pair_settings.h"
#include "receive_work_queue.h"
#include "shared_receive_queue.h"
#include "util/arguments.h"

namespace node_rdma {

namespace {

// setCallbacks(errorFromErrno, errorFromCode, onLeak, onCompletionEvents, onAsyncEvents, onCmEvents): once,
// right after the addon is loaded.
Napi::Value SetCallbacks(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  Napi::Function from_errno, from_code, on_leak, on_completion_events, on_async_events, on_cm_events;
  if (!arguments.Function(0, "errorFromErrno", &from_errno) ||
      !arguments.Function(1, "errorFromCode", &from_code) || !arguments.Function(2, "onLeak", &on_leak) ||
      !arguments.Function(3, "onCompletionEvents", &on_completion_events) ||
      !arguments.Function(4, "onAsyncEvents", &on_async_events) ||
      !arguments.Function(5, "onCmEvents", &on_cm_events)) {
    return {};
  }
  AddonData& addon = AddonData::Of(info.Env());
  addon.error_from_errno = Napi::Persistent(from_errno);
  addon.error_from_code = Napi::Persistent(from_code);
  addon.on_leak = Napi::Persistent(on_leak);
  addon.on_completion_events = Napi::Persistent(on_completion_events);
  addon.on_async_events = Napi::Persistent(on_async_events);
  addon.on_cm_events = Napi::Persistent(on_cm_events);
  return info.Env().Undefined();
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new AddonData(env));
  ContextWrap::Define(env);
  ProtectionDomainWrap::Define(env);
  MemoryRegionWrap::Define(env);
  CompletionChannelWrap::Define(env);
  CompletionQueueWrap::Define(env);
  QueuePairWrap::Define(env);
  SharedReceiveQueueWrap::Define(env);
  AddressHandleWrap::Define(env);
  CmEventChannelWrap::Define(env);
  CmIdWrap::Define(env);
  MemoryWindowWrap::Define(env, exports);
  DeviceMemoryWrap::Define(env, exports);
  DefineMemoryKinds(env, exports);
  DefineDomains(env, exports);
  DefineLibrary(env, exports);
  DefineContextQueries(env, exports);
  DefineExtendedCompletionQueues(env, exports);
  DefineExtendedPosting(env, exports);
  DefineSharedReceiveQueueExtensions(env, exports);
  DefineQueuePairSettings(env, exports);
  ReceiveWorkQueueWrap::Define(env, exports);
  IndirectionTableWrap::Define(env, exports);
  RssQueuePairWrap::Define(env, exports);
  FlowWrap::Define(env, exports);
  FlowActionWrap::Define(env, exports);
  CountersWrap::Define(env, exports);
  exports.Set("setCallbacks", Napi::Function::New<SetCallbacks>(env, "setCallbacks"));
  exports.Set("deviceList", Napi::Function::New<DeviceList>(env, "deviceList"));
  exports.Set("openDevice", Napi::Function::New<OpenDevice>(env, "openDevice"));
  exports.Set("createEventChannel", Napi::Function::New<CreateEventChannel>(env, "createEventChannel"));
  exports.Set("connectionManagerContexts",
              Napi::Function::New<ConnectionManagerContexts>(env, "connectionManagerContexts"));
  exports.Set("getAddressInfo", Napi::Function::New<GetAddressInfo>(env, "getAddressInfo"));
  exports.Set("udpSourcePort", Napi::Function::New<UdpSourcePort>(env, "udpSourcePort"));
  exports.Set("headerConstants", Napi::Function::New<HeaderConstants>(env, "headerConstants"));
  return exports;
}

NODE_API_MODULE(node_rdma, Init)

}  // namespace

}  // namespace node_rdma
