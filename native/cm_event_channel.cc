#include "cm_event_channel.h"

#include "cm_devices.h"
#include "cm_id.h"
#include "util/arguments.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

// So many events are read before the rest of the loop has its turn; the descriptor tells of the others again.
constexpr size_t kMostEventsATurn = 256;

}  // namespace

std::shared_ptr<CmEventChannel> CmEventChannel::Create(AddonData& addon, int* error) {
  errno = 0;
  rdma_event_channel* cm = rdma_create_event_channel();
  if ((*error = ErrorOfPointer(cm))) return nullptr;
  CmDevices::Prepare();
  std::shared_ptr<CmEventChannel> channel(new CmEventChannel(addon, cm));
  if ((*error = channel->watcher_.Start(cm->fd))) return nullptr;
  return channel;
}

int CmEventChannel::Destroy() {
  rdma_destroy_event_channel(cm_);
  return 0;
}

void CmEventChannel::OnReadable(int error) {
  auto self = std::static_pointer_cast<CmEventChannel>(shared_from_this());
  std::vector<CmEvent> events;
  while (error == 0 && events.size() < kMostEventsATurn) {
    CmEvent event;
    error = TakeCmEvent(addon_, self, &event);
    if (error == 0) events.push_back(std::move(event));
  }
  if (error == EAGAIN || error == EINTR) error = 0;
  if (error != 0) watcher_.Fail();
  if (error != 0 || !events.empty()) Tell(events, error);
}

void CmEventChannel::Tell(std::vector<CmEvent>& events, int error) {
  if (addon_.ended()) return;
  Napi::Env env = addon_.env();
  Napi::HandleScope scope(env);
  Napi::Array list = Napi::Array::New(env, events.size());
  for (uint32_t i = 0; i < events.size(); ++i) {
    Napi::Object object = events[i].ToObject(env);
    if (env.IsExceptionPending()) {
      env.GetAndClearPendingException();
      return;
    }
    napi_set_element(env, list, i, object);
  }
  addon_.TellCmEvents(serial_, list, error);
}

void CmEventChannelWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("createId", &CmEventChannelWrap::CreateId),
                        InstanceMethod("ref", &CmEventChannelWrap::Ref),
                        InstanceMethod("unref", &CmEventChannelWrap::Unref),
                    });
}

Napi::Object CmEventChannelWrap::New(Napi::Env env, const std::shared_ptr<CmEventChannel>& channel) {
  Napi::Object object = Wrap::New(env, channel);
  if (env.IsExceptionPending()) return {};
  object.Set("serial", Napi::Number::New(env, static_cast<double>(channel->serial())));
  object.Set("fd", channel->cm()->fd);
  return object;
}

Napi::Value CmEventChannelWrap::CreateId(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t port_space;
  if (!arguments.Uint32(0, "portSpace", &port_space)) return {};
  auto channel = Open(env);
  if (!channel) return {};
  AddonData& addon = AddonData::Of(env);
  int error = 0;
  auto id = CmId::Create(addon, channel, static_cast<rdma_port_space>(port_space), &error);
  if (!id) {
    addon.ThrowErrno(env, "rdma_create_id", error);
    return {};
  }
  return CmIdWrap::New(env, id);
}

Napi::Value CmEventChannelWrap::Ref(const Napi::CallbackInfo& info) {
  native()->Ref();
  return info.Env().Undefined();
}

Napi::Value CmEventChannelWrap::Unref(const Napi::CallbackInfo& info) {
  native()->Unref();
  return info.Env().Undefined();
}

Napi::Value CreateEventChannel(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  int error = 0;
  auto channel = CmEventChannel::Create(addon, &error);
  if (!channel) {
    addon.ThrowErrno(env, "rdma_create_event_channel", error);
    return {};
  }
  return CmEventChannelWrap::New(env, channel);
}

}  // namespace node_rdma
