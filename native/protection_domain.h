#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>
#include <vector>

#include "context.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_pd.
class ProtectionDomain final : public Resource {
 public:
  static std::shared_ptr<ProtectionDomain> Alloc(std::shared_ptr<Registry> registry,
                                                 std::shared_ptr<Context> context, int* error);
  // One that exists. `parents` are the context and what else it hangs on. Where it is a parent domain, `root`
  // is the domain that its memory regions may as well belong to; `imported` was another process's to make.
  ProtectionDomain(std::shared_ptr<Registry> registry, std::vector<std::shared_ptr<Resource>> parents,
                   ibv_pd* verbs, ibv_pd* root, bool imported)
      : Resource(std::move(registry), std::move(parents)), verbs_(verbs), root_(root), imported_(imported) {}
  ~ProtectionDomain() override { Close(); }

  ibv_pd* verbs() const { return verbs_; }
  // What decides which objects work together: the domain itself, or that of a parent domain.
  ibv_pd* root() const { return root_; }

 protected:
  int Destroy() override;

 private:
  ibv_pd* verbs_;
  ibv_pd* root_;
  bool imported_;
};

class ProtectionDomainWrap final : public Wrap<ProtectionDomainWrap, ProtectionDomain> {
 public:
  static constexpr Kind kKind = Kind::kProtectionDomain;
  static constexpr const char* kName = "ProtectionDomain";
  static constexpr const char* kDestroy = "ibv_dealloc_pd";
  static constexpr napi_type_tag kTag = {0x3be0a49f71c84d25, 0x8f53d0e6b7124ac9};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<ProtectionDomain>& domain);
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
