#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>

#include "context.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_pd.
class ProtectionDomain final : public Resource {
 public:
  static std::shared_ptr<ProtectionDomain> Alloc(std::shared_ptr<Registry> registry,
                                                 std::shared_ptr<Context> context, int* error);
  ~ProtectionDomain() override { Close(); }

  ibv_pd* verbs() const { return verbs_; }

 protected:
  int Destroy() override;

 private:
  ProtectionDomain(std::shared_ptr<Registry> registry, std::shared_ptr<Context> context, ibv_pd* verbs)
      : Resource(std::move(registry), {std::move(context)}), verbs_(verbs) {}

  ibv_pd* verbs_;
};

class ProtectionDomainWrap final : public Wrap<ProtectionDomainWrap, ProtectionDomain> {
 public:
  static constexpr Kind kKind = Kind::kProtectionDomain;
  static constexpr const char* kName = "ProtectionDomain";
  static constexpr const char* kDestroy = "ibv_dealloc_pd";
  static constexpr napi_type_tag kTag = {0x3be0a49f71c84d25, 0x8f53d0e6b7124ac9};

  static void Define(Napi::Env env);
  using Wrap::Wrap;

 private:
  Napi::Value RegMr(const Napi::CallbackInfo& info);
  Napi::Value RegMrSync(const Napi::CallbackInfo& info);
  Napi::Value CreateQp(const Napi::CallbackInfo& info);
  Napi::Value CreateSrq(const Napi::CallbackInfo& info);
  Napi::Value CreateAh(const Napi::CallbackInfo& info);
  Napi::Value CreateAhSync(const Napi::CallbackInfo& info);
  Napi::Value CreateAhFromWc(const Napi::CallbackInfo& info);
  Napi::Value CreateAhFromWcSync(const Napi::CallbackInfo& info);
};

}  // namespace node_rdma
