#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "addon_data.h"
#include "cm_devices.h"
#include "util/descriptor_watcher.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

class CompletionChannel;

// An open device: struct ibv_context. Its asynchronous events go to JavaScript.
class Context final : public Resource, private DescriptorWatcher::Reader {
 public:
  static std::shared_ptr<Context> Open(AddonData& addon, const std::string& name, int* error);
  ~Context() override {
    watcher_.Stop();
    Close();
  }

  // The one that another process has opened, by its command descriptor, which stays the caller's.
  static std::shared_ptr<Context> Import(AddonData& addon, int fd, int* error);

  // The one that the connection manager has opened, for the whole process: only identifiers of it, and what
  // is made on it, work together. Its asynchronous events go to the environment that uses it first.
  static std::shared_ptr<Context> Borrow(AddonData& addon, ibv_context* verbs, int* error);

  bool borrowed() const override { return devices_ != nullptr; }

  ibv_context* verbs() const { return verbs_; }
  // Whether it is rxe, whose provider needs care in places.
  bool soft_roce() const { return soft_roce_; }
  // By which JavaScript finds who hears of its events.
  uint64_t serial() const { return serial_; }

  // While somebody waits for an asynchronous event, the loop must not end.
  void Ref(bool ref);

  void OnClosing() override { watcher_.Stop(); }
  void OnCloseFailed() override {
    if (!closed()) watcher_.Resume();
  }

  // Of the completion queues that name none; see CompletionChannel::OfContext().
  std::weak_ptr<CompletionChannel> completion_channel;

 protected:
  int Destroy() override;

 private:
  Context(AddonData& addon, ibv_context* verbs)
      : Resource(addon.registry, {}),
        addon_(addon),
        verbs_(verbs),
        soft_roce_(IsSoftRoce(verbs)),
        serial_(addon.NextSerial()),
        watcher_(addon, *this) {}
  static bool IsSoftRoce(ibv_context* verbs);

  void OnReadable(int error) override;

  AddonData& addon_;
  ibv_context* verbs_;
  bool soft_roce_;
  uint64_t serial_;
  bool ref_ = false;
  bool reads_events_ = true;
  std::shared_ptr<CmDevices> devices_;  // while it lives, the device of a borrowed context stays open
  DescriptorWatcher watcher_;
};

class ContextWrap final : public Wrap<ContextWrap, Context> {
 public:
  static constexpr Kind kKind = Kind::kContext;
  static constexpr const char* kName = "Context";
  static constexpr const char* kDestroy = "ibv_close_device";
  static constexpr napi_type_tag kTag = {0x6a1f0c52d3f94b0e, 0x9d27c1b3a6e84f11};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<Context>& context);
  // The JavaScript side of a context of the connection manager: always the same one, while it is open.
  static Napi::Value OfConnectionManager(Napi::Env env, ibv_context* verbs);
  using Wrap::Wrap;

 private:
  Napi::Value QueryDevice(const Napi::CallbackInfo& info);
  Napi::Value QueryPort(const Napi::CallbackInfo& info);
  Napi::Value QueryGidTable(const Napi::CallbackInfo& info);
  Napi::Value AllocPd(const Napi::CallbackInfo& info);
  Napi::Value CreateCq(const Napi::CallbackInfo& info);
  Napi::Value CreateCompletionChannel(const Napi::CallbackInfo& info);
  Napi::Value Ref(const Napi::CallbackInfo& info);
};

// openDevice(name) and deviceList(), functions of the addon.
Napi::Value OpenDevice(const Napi::CallbackInfo& info);
Napi::Value DeviceList(const Napi::CallbackInfo& info);
// connectionManagerContexts(): rdma_get_devices.
Napi::Value ConnectionManagerContexts(const Napi::CallbackInfo& info);

Napi::Object GidEntryObject(Napi::Env env, const ibv_gid_entry& entry);

}  // namespace node_rdma
