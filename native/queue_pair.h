#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "addon_data.h"
#include "completion_queue.h"
#include "descriptors.h"
#include "protection_domain.h"
#include "shared_queue.h"
#include "shared_receive_queue.h"
#include "util/memory.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

class CmId;
class XrcDomain;

// struct ibv_qp, with the memory in which JavaScript writes descriptors.
class QueuePair final : public Resource {
 public:
  static constexpr const char* kKindName = "QueuePair";

  struct Parts {
    std::shared_ptr<ProtectionDomain> domain;
    std::shared_ptr<CompletionQueue> send_cq;
    std::shared_ptr<CompletionQueue> receive_cq;
    std::shared_ptr<SharedReceiveQueue> srq;  // or none
    std::shared_ptr<CmId> cm_id;              // whose queue pair it is, or none
    std::shared_ptr<XrcDomain> xrc_domain;    // of XRC, for the side that receives
  };

  // What ibv_create_qp_ex is asked for besides what ibv_create_qp is.
  struct Extension {
    uint32_t create_flags = 0;            // IBV_QP_CREATE_*
    uint32_t source_qpn = 0;              // with IBV_QP_CREATE_SOURCE_QPN
    uint16_t max_tso_header = 0;          // bytes
    uint64_t send_operations = 0;         // IBV_QP_EX_WITH_*
    std::optional<uint32_t> open_number;  // it exists already: ibv_open_qp
  };

  // `extension`: null for a plain one.
  static std::shared_ptr<QueuePair> Create(AddonData& addon, Parts parts, ibv_qp_init_attr* init,
                                           const Extension* extension, uint32_t most_descriptors, int* error);
  ~QueuePair() override { Close(); }

  // Posts the descriptors that are wanted; fewer when the queue is full. Everything is checked before
  // anything is posted.
  PostResult PostSend();
  PostResult PostReceive();
  // As PostSend(), by ibv_wr_*: of a queue pair that was created with the operations it is to send.
  PostResult PostExtended();
  // The queue pair for ibv_wr_*, where it was created with `operation` (IBV_QP_EX_WITH_*); otherwise null.
  ibv_qp_ex* ForOperation(uint64_t operation) const {
    return send_operations_ & operation ? ibv_qp_to_qp_ex(verbs_) : nullptr;
  }

  // Any thread. What it brings about is noted by NoteModified(), on the JavaScript thread.
  int Modify(ibv_qp_attr* attributes, int mask) const;
  int Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const;

  void NoteModified(const ibv_qp_attr& attributes, int mask);
  // A modification to RESET or ERR is on its way on another thread: what is posted meanwhile might never end.
  void GoingTo(ibv_qp_state state) { posting_state_ = state; }
  void Stays() { posting_state_ = state_; }
  // Notes what the device has, where something else has modified it.
  void NoteQueried();
  static constexpr int kQueried = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_MAX_QP_RD_ATOMIC;
  // A completion has failed: a connected queue pair is in the error state now, one for datagrams only its
  // send queue.
  void NoteFailure(bool of_send);
  void OnClosed() override;
  bool drives_dma() const override { return true; }

  // The device must not lose the queue pair while `window` is bound on it, so that goes first. On the
  // JavaScript thread.
  void DestroyBefore(const std::shared_ptr<MemoryWindow>& window);
  void DoNotDestroyBefore(const std::shared_ptr<MemoryWindow>& window);

  // Of a multicast group, for datagrams: ibv_attach_mcast, ibv_detach_mcast. 0 or a positive errno.
  int Attach(const ibv_gid& gid, uint16_t lid);
  int Detach(const ibv_gid& gid, uint16_t lid);

  ibv_qp* verbs() const { return verbs_; }
  ibv_qp_type type() const { return type_; }
  ibv_qp_state state() const { return state_; }
  const ibv_qp_cap& cap() const { return cap_; }
  const std::shared_ptr<Memory>& memory() const { return memory_; }
  const std::shared_ptr<ProtectionDomain>& domain() const { return parts_.domain; }
  SharedQueue& sends() { return *send_; }
  const SharedQueue& send_queue() const { return *send_; }
  const SharedQueue& receive_queue() const { return *receive_; }

  template <PostResult (QueuePair::*kPost)()>
  static constexpr const char* Syscall() {
    if (kPost == &QueuePair::PostExtended) return "ibv_wr_complete";
    return kPost == &QueuePair::PostSend ? "ibv_post_send" : "ibv_post_recv";
  }

 protected:
  int Destroy() override;

 private:
  QueuePair(AddonData& addon, Parts parts, ibv_qp* verbs, const ibv_qp_cap& cap);

  // Lays the queues out and takes the memory; 0 or a positive errno.
  int Prepare(uint32_t most_descriptors);
  int DestroyOfConnectionManager();
  void DetachAll();
  // ibv_create_qp_ex, or ibv_open_qp.
  static ibv_qp* CreateExtended(const Parts& parts, ibv_qp_init_attr* init, const Extension& extension);
  // False, with `problem` set, for a descriptor of an operation that only ibv_wr_* has and that must not be.
  bool TranslateExtended(const SendDescriptor& descriptor, std::string* problem) const;
  void PostOne(ibv_qp_ex* extended, const SendDescriptor& descriptor, const ibv_send_wr& request) const;
  // TranslateSend() of what is not plain, for those outside of its file.
  bool TranslateAny(const SendDescriptor& descriptor, uint32_t place, WorkQueue::Request& noted,
                    ibv_send_wr* request, std::string* problem);
  void NoteState(ibv_qp_state state);

  // Both return false with `problem` set when the descriptor asks for what must not be. Of a plain request,
  // most of what could be wrong is known to be right.
  bool IsPlain(const SendDescriptor& descriptor) const {
    return descriptor.opcode < 32 && plain_opcodes_ >> descriptor.opcode & 1 && descriptor.sge_count == 1 &&
           (descriptor.flags & ~kPlainFlags) == 0;
  }
  template <bool kPlain>
  bool TranslateSend(const SendDescriptor& descriptor, uint32_t place, WorkQueue::Request& noted,
                     ibv_send_wr* request, std::string* problem);
  bool TranslateAt(uint32_t place, WorkQueue::Request& noted, ibv_send_wr* request, std::string* problem);
  bool TranslateTarget(const SendDescriptor& descriptor, WorkQueue::Request& noted, ibv_send_wr* request,
                       std::string* problem);

  AddonData& addon_;
  Parts parts_;
  ibv_qp* verbs_;
  ibv_qp_type type_;  // known to completions that come while another thread destroys `verbs_`
  ibv_qp_cap cap_;
  uint64_t send_operations_ = 0;  // IBV_QP_EX_WITH_*, of an extended queue pair
  ibv_qp_state state_ = IBV_QPS_RESET;
  ibv_qp_state posting_state_ = IBV_QPS_RESET;  // state_, but where that is about to change
  static constexpr uint8_t kPlainFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  uint32_t plain_opcodes_;  // a bit for each: they only read memory here, and go where the queue pair goes
  uint8_t initiator_depth_ = 0;
  uint64_t most_bytes_ = UINT64_MAX;  // of one message: the port's maximum, or its MTU for datagrams
  bool joined_srq_ = false;
  std::vector<std::weak_ptr<MemoryWindow>> bound_;
  struct Group {
    ibv_gid gid;
    uint16_t lid;
  };
  std::vector<Group> groups_;
  std::shared_ptr<Memory> memory_;
  std::optional<SharedQueue> send_;
  std::optional<SharedQueue> receive_;
};

class QueuePairWrap final : public Wrap<QueuePairWrap, QueuePair> {
 public:
  static constexpr Kind kKind = Kind::kQueuePair;
  static constexpr const char* kName = QueuePair::kKindName;
  static constexpr const char* kDestroy = "ibv_destroy_qp";
  static constexpr napi_type_tag kTag = {0xe49a07c36b8d4152, 0x8c05be7d1fa24396};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<QueuePair>& queue_pair);
  using Wrap::Wrap;

 private:
  Napi::Value Modify(const Napi::CallbackInfo& info);
  Napi::Value ModifySync(const Napi::CallbackInfo& info);
  Napi::Value Query(const Napi::CallbackInfo& info);
  Napi::Value State(const Napi::CallbackInfo& info);
};

// pd.createQp(type, sendCq, recvCq, srq, [maxSendWr, maxRecvWr, maxSendSge, maxRecvSge, maxInlineData],
// sqSigAll, descriptors, extension, xrcd), the latter two undefined for a plain one; see ReadExtension(). The
// arguments begin at `first`; the connection manager makes the queue pair where it is to be that of one of
// its identifiers.
Napi::Value CreateQueuePair(const Napi::CallbackInfo& info, std::shared_ptr<ProtectionDomain> domain,
                            size_t first = 0, std::shared_ptr<CmId> cm_id = nullptr);

}  // namespace node_rdma
