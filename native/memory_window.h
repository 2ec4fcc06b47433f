#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>

#include "addon_data.h"
#include "protection_domain.h"
#include "queue_pair.h"
#include "util/plain_resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_mw.
class MemoryWindow final : public PlainResource<ibv_mw> {
 public:
  static constexpr const char* kKindName = "MemoryWindow";

  MemoryWindow(AddonData& addon, const std::shared_ptr<ProtectionDomain>& domain, ibv_mw* verbs)
      : PlainResource(addon.registry, {domain}, verbs), addon_(addon), domain_(domain) {}
  ~MemoryWindow() override { Close(); }

  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_; }
  bool type_2() const { return verbs()->type == IBV_MW_TYPE_2; }

  // Where a window of type 2 is bound, or is about to be; null where it is free. On the JavaScript thread, as
  // is what follows.
  std::shared_ptr<QueuePair> bound_on() const { return bound_on_.lock(); }
  void NoteBound(const std::shared_ptr<QueuePair>& queue_pair, uint32_t rkey);
  void NoteFree();
  // A peer has invalidated the window with this key.
  static void NoteInvalidated(AddonData& addon, ibv_context* context, uint32_t rkey);

  void OnClosed() override { NoteFree(); }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_dealloc_mw(verbs())); }

 private:
  AddonData& addon_;
  std::shared_ptr<ProtectionDomain> domain_;
  std::weak_ptr<QueuePair> bound_on_;
  std::weak_ptr<QueuePair> last_bound_on_;
};

class MemoryWindowWrap final : public Wrap<MemoryWindowWrap, MemoryWindow> {
 public:
  static constexpr Kind kKind = Kind::kMemoryWindow;
  static constexpr const char* kName = MemoryWindow::kKindName;
  static constexpr const char* kDestroy = "ibv_dealloc_mw";
  static constexpr napi_type_tag kTag = {0xfc29b287198847fe, 0xda40d9c9cdd39feb};

  // allocMw(pd, type), bindMw(mw, qp, region, offset, length, access, wrId, flags),
  // invalidateMw(mw, qp, wrId, flags): the latter two return the key of the window.
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;

 private:
  Napi::Value Rkey(const Napi::CallbackInfo& info);
  Napi::Value Bound(const Napi::CallbackInfo& info);
};

}  // namespace node_rdma
