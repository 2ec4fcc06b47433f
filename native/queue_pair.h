#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>
#include <optional>
#include <string>

#include "addon_data.h"
#include "completion_queue.h"
#include "descriptors.h"
#include "protection_domain.h"
#include "util/memory.h"
#include "util/resource.h"
#include "util/wrap.h"
#include "work_queue.h"

namespace node_rdma {

// struct ibv_qp, with the memory in which JavaScript writes descriptors.
class QueuePair final : public Resource {
 public:
  static constexpr const char* kKindName = "QueuePair";

  // Where the parts of one queue lie in the shared memory, in bytes from its start.
  struct QueueLayout {
    uint32_t counters = 0;
    uint32_t descriptors = 0;
    uint32_t descriptor_count = 0;  // a power of two
    uint32_t elements = 0;          // max_sge for each descriptor; absent (0) where max_sge is 1
    uint32_t inline_area =
        0;  // max_inline_data for each descriptor, rounded up to 8; absent (0) where that is 0
    uint32_t inline_stride = 0;
  };

  struct PostResult {
    uint32_t posted = 0;
    int error = 0;  // errno of ibv_post_*
    const char* code =
        nullptr;  // of the error to throw when the state or a descriptor is wrong; then nothing was posted
    std::string problem;
  };

  static std::shared_ptr<QueuePair> Create(AddonData& addon, std::shared_ptr<ProtectionDomain> domain,
                                           std::shared_ptr<CompletionQueue> send_cq,
                                           std::shared_ptr<CompletionQueue> receive_cq,
                                           ibv_qp_init_attr* init, uint32_t most_descriptors, int* error);
  ~QueuePair() override { Close(); }

  // Posts `count` descriptors from `first` on, round the end of the descriptors; fewer when the queue is
  // full. Everything is checked before anything is posted.
  PostResult PostSend(uint32_t first, uint32_t count);
  PostResult PostReceive(uint32_t first, uint32_t count);

  // Any thread. On success the state is noted by NoteState(), on the JavaScript thread.
  int Modify(ibv_qp_attr* attributes, int mask) const;
  int Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const;

  void NoteState(ibv_qp_state state) { state_ = state; }
  void NoteInitiatorDepth(uint8_t depth) { initiator_depth_ = depth; }
  // A completion has failed: a reliable or unreliable connected queue pair is in the error state now.
  void NoteFailure() { state_ = IBV_QPS_ERR; }
  void OnClosed() override;
  bool drives_dma() const override { return true; }

  ibv_qp* verbs() const { return verbs_; }
  ibv_qp_type type() const { return verbs_->qp_type; }
  ibv_qp_state state() const { return state_; }
  const ibv_qp_cap& cap() const { return cap_; }
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  const QueueLayout& send_layout() const { return send_layout_; }
  const QueueLayout& receive_layout() const { return receive_layout_; }

 protected:
  int Destroy() override;

 private:
  QueuePair(AddonData& addon, std::shared_ptr<ProtectionDomain> domain,
            std::shared_ptr<CompletionQueue> send_cq, std::shared_ptr<CompletionQueue> receive_cq,
            ibv_qp* verbs, const ibv_qp_cap& cap);

  // Lays the queues out and takes the memory; 0 or a positive errno.
  int Prepare(uint32_t most_descriptors);

  template <class T>
  T* At(uint32_t offset) const {
    return reinterpret_cast<T*>(memory_->data() + offset);
  }

  // Each returns false with `problem` set when the descriptor asks for what must not be.
  bool TranslateSend(const SendDescriptor& descriptor, uint32_t place, uint32_t ahead, ibv_send_wr* request,
                     ibv_sge* elements, std::string* problem);
  bool TranslateElements(WorkQueue& queue, const QueueLayout& layout, const ScatterGatherElement& only,
                         uint32_t place, uint32_t count, uint32_t ahead, bool device_writes, bool inlined,
                         ibv_sge* elements, int* translated, uint64_t* total, std::string* problem);

  AddonData& addon_;
  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<CompletionQueue> send_cq_;
  std::shared_ptr<CompletionQueue> receive_cq_;
  ibv_qp* verbs_;
  ibv_qp_cap cap_;
  ibv_qp_state state_ = IBV_QPS_RESET;
  uint8_t initiator_depth_ = 0;
  std::shared_ptr<Memory> memory_;
  QueueLayout send_layout_;
  QueueLayout receive_layout_;
  std::optional<WorkQueue> send_queue_;
  std::optional<WorkQueue> receive_queue_;
};

class QueuePairWrap final : public Wrap<QueuePairWrap, QueuePair> {
 public:
  static constexpr Kind kKind = Kind::kQueuePair;
  static constexpr const char* kName = QueuePair::kKindName;
  static constexpr const char* kDestroy = "ibv_destroy_qp";
  static constexpr napi_type_tag kTag = {0xe49a07c36b8d4152, 0x8c05be7d1fa24396};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, std::shared_ptr<QueuePair> queue_pair);
  using Wrap::Wrap;

 private:
  Napi::Value Modify(const Napi::CallbackInfo& info);
  Napi::Value ModifySync(const Napi::CallbackInfo& info);
  Napi::Value Query(const Napi::CallbackInfo& info);
  Napi::Value State(const Napi::CallbackInfo& info);
};

// pd.createQp(type, sendCq, recvCq, [maxSendWr, maxRecvWr, maxSendSge, maxRecvSge, maxInlineData], sqSigAll,
// descriptors)
Napi::Value CreateQueuePair(const Napi::CallbackInfo& info, std::shared_ptr<ProtectionDomain> domain);

}  // namespace node_rdma
