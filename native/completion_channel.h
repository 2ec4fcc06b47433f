#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "addon_data.h"
#include "context.h"
#include "util/descriptor_watcher.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_comp_channel: where the completion queues of one context tell that completions have come. Each
// event is read and acknowledged at once, since a queue with an event that is not acknowledged can never be
// destroyed; JavaScript gets the serial numbers of the queues, in one call a wake.
class CompletionChannel final : public Resource, private DescriptorWatcher::Reader {
 public:
  static std::shared_ptr<CompletionChannel> Create(AddonData& addon, std::shared_ptr<Context> context,
                                                   int* error);
  // The one that a context has for all queues that name no channel. It comes with the first of them and goes
  // with the last.
  static std::shared_ptr<CompletionChannel> OfContext(AddonData& addon,
                                                      const std::shared_ptr<Context>& context, int* error);
  ~CompletionChannel() override;

  ibv_comp_channel* verbs() const { return verbs_; }

  // A queue of the channel, by its serial number, which is its cq_context as well.
  void Add(uint64_t serial) { serials_.insert(serial); }
  void Remove(uint64_t serial);

  // While somebody waits, the loop must not end.
  void Ref() { watcher_.Ref(); }
  void Unref() { watcher_.Unref(); }

  void OnClosing() override { watcher_.Stop(); }
  void OnCloseFailed() override {
    if (!closed()) watcher_.Resume();
  }

 protected:
  int Destroy() override;

 private:
  CompletionChannel(AddonData& addon, std::shared_ptr<Context> context, ibv_comp_channel* verbs)
      : Resource(addon.registry, {std::move(context)}),
        addon_(addon),
        verbs_(verbs),
        watcher_(addon, *this) {}

  void OnReadable(int error) override;

  AddonData& addon_;
  ibv_comp_channel* verbs_;
  bool of_context_ = false;
  std::set<uint64_t> serials_;
  DescriptorWatcher watcher_;
};

class CompletionChannelWrap final : public Wrap<CompletionChannelWrap, CompletionChannel> {
 public:
  static constexpr Kind kKind = Kind::kCompletionChannel;
  static constexpr const char* kName = "CompletionChannel";
  static constexpr const char* kDestroy = "ibv_destroy_comp_channel";
  static constexpr napi_type_tag kTag = {0x91d4e6a08b2c4f73, 0xa5c83e1f7d06492b};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<CompletionChannel>& channel);
  // The channel in an argument: undefined is the context's own, null none. False with an exception pending.
  static bool Read(const Napi::CallbackInfo& info, size_t index, const std::shared_ptr<Context>& context,
                   std::shared_ptr<CompletionChannel>* channel);
  using Wrap::Wrap;
};

}  // namespace node_rdma
