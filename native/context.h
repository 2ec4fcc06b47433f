#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>
#include <string>

#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// An open device: struct ibv_context.
class Context final : public Resource {
 public:
  static std::shared_ptr<Context> Open(std::shared_ptr<Registry> registry, const std::string& name,
                                       int* error);
  ~Context() override { Close(); }

  ibv_context* verbs() const { return verbs_; }

 protected:
  int Destroy() override;

 private:
  Context(std::shared_ptr<Registry> registry, ibv_context* verbs)
      : Resource(std::move(registry), {}), verbs_(verbs) {}

  ibv_context* verbs_;
};

class ContextWrap final : public Wrap<ContextWrap, Context> {
 public:
  static constexpr Kind kKind = Kind::kContext;
  static constexpr const char* kName = "Context";
  static constexpr const char* kDestroy = "ibv_close_device";
  static constexpr napi_type_tag kTag = {0x6a1f0c52d3f94b0e, 0x9d27c1b3a6e84f11};

  static void Define(Napi::Env env);
  using Wrap::Wrap;

 private:
  Napi::Value QueryDevice(const Napi::CallbackInfo& info);
  Napi::Value QueryPort(const Napi::CallbackInfo& info);
  Napi::Value QueryGidTable(const Napi::CallbackInfo& info);
  Napi::Value AllocPd(const Napi::CallbackInfo& info);
  Napi::Value CreateCq(const Napi::CallbackInfo& info);
};

// openDevice(name) and deviceList(), functions of the addon.
Napi::Value OpenDevice(const Napi::CallbackInfo& info);
Napi::Value DeviceList(const Napi::CallbackInfo& info);

}  // namespace node_rdma
