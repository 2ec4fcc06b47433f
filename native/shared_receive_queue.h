#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "addon_data.h"
#include "completion_queue.h"
#include "protection_domain.h"
#include "shared_queue.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_srq: receives that many queue pairs take from.
class SharedReceiveQueue final : public Resource {
 public:
  static constexpr const char* kKindName = "SharedReceiveQueue";

  // By ibv_create_srq_ex, which is ibv_create_srq where no more is asked for than that has. `parents`: what
  // it hangs on.
  static std::shared_ptr<SharedReceiveQueue> Create(AddonData& addon,
                                                    std::vector<std::shared_ptr<Resource>> parents,
                                                    const std::shared_ptr<ProtectionDomain>& domain,
                                                    ibv_srq_init_attr_ex* init, uint32_t most_descriptors,
                                                    int* error);
  ~SharedReceiveQueue() override { Close(); }

  PostResult PostReceive();

  // As ResizeQueue() calls them. EOVERFLOW where a completion queue has no room for what it would be given.
  int BeginResize(uint32_t max_wr);
  int Resize(uint32_t max_wr);
  void EndResize(bool done);

  // A queue pair brings the queue's completions to `completions`. All receives may complete there, so it must
  // have room for them all, once however many queue pairs join the two. False when it has not.
  bool Join(const std::shared_ptr<CompletionQueue>& completions);
  void Part(const std::shared_ptr<CompletionQueue>& completions);

  void OnClosed() override;
  bool drives_dma() const override { return true; }

  ibv_srq* verbs() const { return verbs_; }
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  const SharedQueue& queue() const { return *queue_; }

  // The queue of the types that complete in one of their own: room is kept there for all receives. False when
  // it has none.
  bool CompleteIn(const std::shared_ptr<CompletionQueue>& completions);

  // One that is told what to do with a message by its tag: ibv_post_srq_ops.
  struct TagOperation {
    ibv_ops_wr verbs = {};
    uint64_t id = 0;          // of the operation
    uint64_t receive_id = 0;  // of the receive, where it adds one
    std::vector<ibv_sge> elements;
    std::vector<std::shared_ptr<MemoryRegion>> regions;
  };
  // Returns 0 or a positive errno. On the JavaScript thread.
  int PostTagOperation(TagOperation& operation);
  ibv_pd* domain() const { return domain_; }

  template <PostResult (SharedReceiveQueue::*)()>
  static constexpr const char* Syscall() {
    return "ibv_post_srq_recv";
  }

 protected:
  int Destroy() override;

 private:
  SharedReceiveQueue(AddonData& addon, std::vector<std::shared_ptr<Resource>> parents, ibv_pd* domain,
                     ibv_srq* verbs)
      : Resource(addon.registry, std::move(parents)), addon_(addon), domain_(domain), verbs_(verbs) {}

  // `tag_operations`: requests that it has besides receives.
  int Prepare(const ibv_srq_attr& attributes, uint32_t tag_operations, uint32_t most_descriptors);
  // Entries that it has in each completion queue of its receives.
  uint32_t reserved() const { return std::max(capacity_, resizing_to_); }

  AddonData& addon_;
  ibv_pd* domain_;
  ibv_srq* verbs_;
  std::shared_ptr<Memory> memory_;
  std::optional<SharedQueue> queue_;
  std::map<std::shared_ptr<CompletionQueue>, uint32_t> joined_;
  std::shared_ptr<CompletionQueue> completions_;  // its own, of an extended type
  uint32_t capacity_ = 0;
  uint32_t resizing_to_ = 0;  // 0 when it is not being resized
};

class SharedReceiveQueueWrap final : public Wrap<SharedReceiveQueueWrap, SharedReceiveQueue> {
 public:
  static constexpr Kind kKind = Kind::kSharedReceiveQueue;
  static constexpr const char* kName = SharedReceiveQueue::kKindName;
  static constexpr const char* kDestroy = "ibv_destroy_srq";
  static constexpr napi_type_tag kTag = {0x91be06f3d42a4c57, 0xa07c5d1e83f94b60};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<SharedReceiveQueue>& queue);
  using Wrap::Wrap;

 private:
  Napi::Value Modify(const Napi::CallbackInfo& info);
  Napi::Value Resize(const Napi::CallbackInfo& info);
  Napi::Value ResizeSync(const Napi::CallbackInfo& info);
  Napi::Value Query(const Napi::CallbackInfo& info);
};

// pd.createSrq(maxWr, maxSge, srqLimit, descriptors, type, xrcd, cq, maxNumTags, maxOps); the last five may
// be absent.
Napi::Value CreateSharedReceiveQueue(const Napi::CallbackInfo& info,
                                     const std::shared_ptr<ProtectionDomain>& domain);

// srqNum(srq), postSrqOps(srq, words, tag, mask, wrId, recvWrId, ...[mr, offset, length])
void DefineSharedReceiveQueueExtensions(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
