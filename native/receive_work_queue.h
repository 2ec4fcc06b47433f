#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>
#include <optional>
#include <vector>

#include "completion_queue.h"
#include "protection_domain.h"
#include "shared_queue.h"
#include "util/plain_resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_wq of type IBV_WQT_RQ: a receive queue without a queue pair, for an indirection table.
class ReceiveWorkQueue final : public Resource {
 public:
  static constexpr const char* kKindName = "ReceiveWorkQueue";

  static std::shared_ptr<ReceiveWorkQueue> Create(AddonData& addon,
                                                  const std::shared_ptr<ProtectionDomain>& domain,
                                                  const std::shared_ptr<CompletionQueue>& completions,
                                                  ibv_wq_init_attr* init, uint32_t most_descriptors,
                                                  int* error);
  ~ReceiveWorkQueue() override { Close(); }

  PostResult PostReceive();
  void OnClosed() override;
  bool drives_dma() const override { return true; }

  ibv_wq* verbs() const { return verbs_; }
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  const SharedQueue& queue() const { return *queue_; }

  template <PostResult (ReceiveWorkQueue::*)()>
  static constexpr const char* Syscall() {
    return "ibv_post_wq_recv";
  }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_destroy_wq(verbs_)); }

 private:
  ReceiveWorkQueue(AddonData& addon, const std::shared_ptr<ProtectionDomain>& domain,
                   const std::shared_ptr<CompletionQueue>& completions, ibv_wq* verbs)
      : Resource(addon.registry, {domain, completions}),
        addon_(addon),
        completions_(completions),
        domain_(domain->root()),
        verbs_(verbs) {}

  AddonData& addon_;
  std::shared_ptr<CompletionQueue> completions_;
  ibv_pd* domain_;
  ibv_wq* verbs_;
  std::shared_ptr<Memory> memory_;
  std::optional<SharedQueue> queue_;
};

class ReceiveWorkQueueWrap final : public Wrap<ReceiveWorkQueueWrap, ReceiveWorkQueue> {
 public:
  static constexpr Kind kKind = Kind::kReceiveWorkQueue;
  static constexpr const char* kName = ReceiveWorkQueue::kKindName;
  static constexpr const char* kDestroy = "ibv_destroy_wq";
  static constexpr napi_type_tag kTag = {0xedfac7ed4608d327, 0x2296d572c466f430};

  // createWq(pd, cq, maxWr, maxSge, flags, descriptors)
  static void Define(Napi::Env env, Napi::Object exports);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<ReceiveWorkQueue>& queue);
  using Wrap::Wrap;

 private:
  // modify(mask, state, current state, flags, mask of the flags)
  Napi::Value Modify(const Napi::CallbackInfo& info);
  Napi::Value State(const Napi::CallbackInfo& info);
};

// struct ibv_rwq_ind_table.
class IndirectionTable final : public PlainResource<ibv_rwq_ind_table> {
 public:
  using PlainResource::PlainResource;
  ~IndirectionTable() override { Close(); }
  // At the end of an environment it goes with the queues, before those that are in it.
  bool drives_dma() const override { return true; }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_destroy_rwq_ind_table(verbs())); }
};

class IndirectionTableWrap final : public Wrap<IndirectionTableWrap, IndirectionTable> {
 public:
  static constexpr Kind kKind = Kind::kIndirectionTable;
  static constexpr const char* kName = "IndirectionTable";
  static constexpr const char* kDestroy = "ibv_destroy_rwq_ind_table";
  static constexpr napi_type_tag kTag = {0x62626b3fb1fb6f49, 0xed0b9f80d897825c};

  // createRwqIndTable(context, log2 of the count, ...queues)
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;
};

// A queue pair that spreads what it receives over the queues of an indirection table.
class RssQueuePair final : public PlainResource<ibv_qp> {
 public:
  using PlainResource::PlainResource;
  ~RssQueuePair() override { Close(); }
  bool drives_dma() const override { return true; }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_destroy_qp(verbs())); }
};

class RssQueuePairWrap final : public Wrap<RssQueuePairWrap, RssQueuePair> {
 public:
  static constexpr Kind kKind = Kind::kRssQueuePair;
  static constexpr const char* kName = "RssQueuePair";
  static constexpr const char* kDestroy = "ibv_destroy_qp";
  static constexpr napi_type_tag kTag = {0x2fe385976429e6af, 0x6a6c79af598f4a21};

  // createRssQp(pd, table, type, hash function, key, hash fields, creation flags)
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;

 private:
  // modify(mask, words of the attributes)
  Napi::Value Modify(const Napi::CallbackInfo& info);
};

}  // namespace node_rdma
