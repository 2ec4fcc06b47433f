#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>

#include "addon_data.h"
#include "descriptors.h"
#include "protection_domain.h"
#include "util/memory.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_mr, over memory of the library's own or over memory that JavaScript gave, which it then keeps.
class MemoryRegion final : public Resource {
 public:
  static constexpr const char* kKindName = "MemoryRegion";

  struct Request {
    std::byte* data = nullptr;
    size_t length = 0;
    uint32_t access = 0;
    bool has_iova = false;
    uint64_t iova = 0;
    std::shared_ptr<Memory> memory;              // set when the library owns it
    std::shared_ptr<Resource> parent = nullptr;  // what it hangs on besides its domain, or nothing
    bool imported = false;                       // another process's to make
  };

  // May run on any thread. The region has no slot until Publish().
  static std::shared_ptr<MemoryRegion> Register(std::shared_ptr<Registry> registry,
                                                const std::shared_ptr<ProtectionDomain>& domain,
                                                const Request& request, int* error);
  // `verbs` exists already.
  MemoryRegion(std::shared_ptr<Registry> registry, const std::shared_ptr<ProtectionDomain>& domain,
               const Request& request, ibv_mr* verbs);
  ~MemoryRegion() override { Close(); }

  // Gives the region its slot; false when all are taken. On the JavaScript thread, as is everything below.
  bool Publish(AddonData& addon);
  void KeepView(Napi::Object view) {
    if (!view.IsEmpty()) view_ = Napi::Persistent(view);
  }
  void WatchBuffer(Napi::ArrayBuffer buffer) { buffer_ = Napi::Weak(buffer); }
  void OnClosed() override;
  bool in_use() const override { return work_requests > 0; }

  ibv_mr* verbs() const { return verbs_; }
  // Its root.
  ibv_pd* domain() const { return domain_->root(); }
  std::byte* data() const { return request_.data; }
  uint64_t iova() const { return iova_; }
  uint64_t length() const { return request_.length; }
  uint32_t lkey() const { return lkey_; }
  bool locally_writable() const { return (request_.access & IBV_ACCESS_LOCAL_WRITE) != 0; }
  MrSlot slot() const { return slot_; }
  const std::shared_ptr<Memory>& memory() const { return request_.memory; }

  // ibv_rereg_mr: on any thread, while the region takes no new work. `flags`: IBV_REREG_MR_CHANGE_*. Returns
  // 0 or a positive errno; `usable`: whether the region may be used on.
  int Reregister(int flags, const std::shared_ptr<ProtectionDomain>& domain, const Request& request,
                 bool* usable);
  // It was done: the region is what was asked for. On the JavaScript thread.
  void NoteReregistered(int flags, const std::shared_ptr<ProtectionDomain>& domain, const Request& request,
                        Napi::Object view);

  // Outstanding work requests that name this region; it cannot be closed while there are any.
  uint32_t work_requests = 0;

 protected:
  int Destroy() override;

 private:
  // The memory is the device's no more: what is left of the library's own reads as empty.
  void ForgetMemory();

  ibv_mr* verbs_;
  std::shared_ptr<ProtectionDomain> domain_;
  Request request_;
  uint64_t iova_;
  uint32_t lkey_;
  MrSlot slot_ = 0;
  AddonData* addon_ = nullptr;
  Napi::ObjectReference view_;                 // keeps a user's memory
  Napi::Reference<Napi::ArrayBuffer> buffer_;  // weak; detached when the region is closed
};

class MemoryRegionWrap final : public Wrap<MemoryRegionWrap, MemoryRegion> {
 public:
  static constexpr Kind kKind = Kind::kMemoryRegion;
  static constexpr const char* kName = MemoryRegion::kKindName;
  static constexpr const char* kDestroy = "ibv_dereg_mr";
  static constexpr napi_type_tag kTag = {0xc1d8e2537ab04f96, 0xa6b94c0f31e7582d};

  static void Define(Napi::Env env);
  using Wrap::Wrap;

 private:
  Napi::Value WorkRequests(const Napi::CallbackInfo& info);
};

// The JavaScript side of a region that was just registered by `syscall`. `view`: the user's memory, or empty.
Napi::Value PresentRegion(Napi::Env env, const char* syscall, const std::shared_ptr<MemoryRegion>& region,
                          Napi::Object view);

// Sets what JavaScript reads of a region: its memory, keys and place.
bool DescribeRegion(Napi::Env env, Napi::Object object, const std::shared_ptr<MemoryRegion>& region,
                    Napi::Object view);

// Reads what is to be registered, a length or a view, from argument `index`. False with an exception pending.
bool ReadSource(const Napi::CallbackInfo& info, size_t index, uint64_t page_size,
                MemoryRegion::Request* request, Napi::Object* view);

// pd.regMr(source, access, pageSize, iova): `source` is a length in bytes, for memory of the library's own,
// or a view.
Napi::Value RegisterMemory(const Napi::CallbackInfo& info, const std::shared_ptr<ProtectionDomain>& domain,
                           bool sync);

}  // namespace node_rdma
