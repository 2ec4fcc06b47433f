#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <cstdint>
#include <memory>

#include "context.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_dm: memory on the device.
class DeviceMemory final : public Resource {
 public:
  static constexpr const char* kKindName = "DeviceMemory";

  DeviceMemory(std::shared_ptr<Registry> registry, std::shared_ptr<Context> context, ibv_dm* verbs,
               uint64_t length, bool imported)
      : Resource(std::move(registry), {std::move(context)}),
        verbs_(verbs),
        length_(length),
        imported_(imported) {}
  ~DeviceMemory() override { Close(); }

  ibv_dm* verbs() const { return verbs_; }
  uint64_t length() const { return length_; }

 protected:
  int Destroy() override;

 private:
  ibv_dm* verbs_;
  uint64_t length_;
  bool imported_;
};

class DeviceMemoryWrap final : public Wrap<DeviceMemoryWrap, DeviceMemory> {
 public:
  static constexpr Kind kKind = Kind::kDeviceMemory;
  static constexpr const char* kName = DeviceMemory::kKindName;
  static constexpr const char* kDestroy = "ibv_free_dm";
  static constexpr napi_type_tag kTag = {0xed9de3f24f48b147, 0xb9a8360e92f6b90e};

  // allocDm(context, length, logAlignment), importDm(context, handle, length)
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;

 private:
  // copy(toDevice, offset, view)
  Napi::Value Copy(const Napi::CallbackInfo& info);
  Napi::Value ExportDmabufFd(const Napi::CallbackInfo& info);
};

}  // namespace node_rdma
