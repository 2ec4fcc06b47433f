#pragma once

#include <napi.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "addon_data.h"
#include "cm_event.h"
#include "util/descriptor_watcher.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct rdma_event_channel: where the connection manager tells what became of the identifiers on it. Events
// are copied and acknowledged at once, since an identifier with an event that is not acknowledged can never
// be destroyed.
class CmEventChannel final : public Resource, private DescriptorWatcher::Reader {
 public:
  static std::shared_ptr<CmEventChannel> Create(AddonData& addon, int* error);
  ~CmEventChannel() override {
    watcher_.Stop();
    Close();
  }

  rdma_event_channel* cm() const { return cm_; }
  uint64_t serial() const { return serial_; }

  // While somebody waits, the loop must not end. Counted.
  void Ref() { watcher_.Ref(); }
  void Unref() { watcher_.Unref(); }

  void OnClosing() override { watcher_.Stop(); }
  void OnCloseFailed() override {
    if (!closed()) watcher_.Resume();
  }

 protected:
  int Destroy() override;

 private:
  CmEventChannel(AddonData& addon, rdma_event_channel* cm)
      : Resource(addon.registry, {}),
        addon_(addon),
        cm_(cm),
        serial_(addon.NextSerial()),
        watcher_(addon, *this) {}

  void OnReadable(int error) override;
  void Tell(std::vector<CmEvent>& events, int error);

  AddonData& addon_;
  rdma_event_channel* cm_;
  uint64_t serial_;
  DescriptorWatcher watcher_;
};

class CmEventChannelWrap final : public Wrap<CmEventChannelWrap, CmEventChannel> {
 public:
  static constexpr Kind kKind = Kind::kCmEventChannel;
  static constexpr const char* kName = "EventChannel";
  static constexpr const char* kDestroy = "rdma_destroy_event_channel";
  static constexpr napi_type_tag kTag = {0x4d2e81b7c05f4a93, 0xb16f09d3e7a8425c};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<CmEventChannel>& channel);
  using Wrap::Wrap;

 private:
  Napi::Value CreateId(const Napi::CallbackInfo& info);
  Napi::Value Ref(const Napi::CallbackInfo& info);
  Napi::Value Unref(const Napi::CallbackInfo& info);
};

// createEventChannel(), a function of the addon.
Napi::Value CreateEventChannel(const Napi::CallbackInfo& info);

}  // namespace node_rdma
