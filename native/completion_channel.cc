#include "completion_channel.h"

#include <bit>
#include <map>

#include "util/verbs_error.h"

namespace node_rdma {

std::shared_ptr<CompletionChannel> CompletionChannel::Create(AddonData& addon,
                                                             std::shared_ptr<Context> context, int* error) {
  errno = 0;
  ibv_comp_channel* verbs = ibv_create_comp_channel(context->verbs());
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  std::shared_ptr<CompletionChannel> channel(new CompletionChannel(addon, std::move(context), verbs));
  if ((*error = channel->watcher_.Start(verbs->fd))) return nullptr;
  return channel;
}

std::shared_ptr<CompletionChannel> CompletionChannel::OfContext(AddonData& addon,
                                                                const std::shared_ptr<Context>& context,
                                                                int* error) {
  auto channel = context->completion_channel.lock();
  if (channel && !channel->closed()) return channel;
  channel = Create(addon, context, error);
  if (!channel) return nullptr;
  channel->of_context_ = true;
  context->completion_channel = channel;
  return channel;
}

CompletionChannel::~CompletionChannel() {
  watcher_.Stop();
  Close();
}

int CompletionChannel::Destroy() { return ErrorOfResult(ibv_destroy_comp_channel(verbs_)); }

void CompletionChannel::Remove(uint64_t serial) {
  serials_.erase(serial);
  if (!of_context_ || !serials_.empty()) return;
  OnClosing();
  if (Close() != 0) OnCloseFailed();
}

void CompletionChannel::OnReadable(int error) {
  auto self = shared_from_this();
  // The pointer is valid until its events are acknowledged, even while another thread destroys the queue: for
  // that it waits.
  std::map<ibv_cq*, unsigned> events;
  std::set<uint64_t> serials;
  while (error == 0) {
    ibv_cq* queue;
    void* serial;
    errno = 0;
    error = ErrorOfMinusOne(ibv_get_cq_event(verbs_, &queue, &serial));
    if (error != 0) break;
    ++events[queue];
    serials.insert(std::bit_cast<uint64_t>(serial));
  }
  for (auto [queue, count] : events) ibv_ack_cq_events(queue, count);
  if (error == EAGAIN || error == EINTR) {
    error = 0;
  } else {
    // The device is gone: all who wait must hear of it, and there is no more to read.
    watcher_.Fail();
    serials = serials_;
  }
  if (!serials.empty()) addon_.TellCompletionEvents(serials, error);
}

void CompletionChannelWrap::Define(Napi::Env env) { Wrap::Define(env, {}); }

Napi::Object CompletionChannelWrap::New(Napi::Env env, const std::shared_ptr<CompletionChannel>& channel) {
  Napi::Object object = Wrap::New(env, channel);
  if (env.IsExceptionPending()) return {};
  object.Set("fd", channel->verbs()->fd);
  return object;
}

bool CompletionChannelWrap::Read(const Napi::CallbackInfo& info, size_t index,
                                 const std::shared_ptr<Context>& context,
                                 std::shared_ptr<CompletionChannel>* channel) {
  if (info[index].IsNull()) return true;
  if (!info[index].IsUndefined()) return (*channel = From(info, index, "channel")) != nullptr;
  AddonData& addon = AddonData::Of(info.Env());
  int error = 0;
  *channel = CompletionChannel::OfContext(addon, context, &error);
  if (!*channel) addon.ThrowErrno(info.Env(), "ibv_create_comp_channel", error);
  return *channel != nullptr;
}

}  // namespace node_rdma
