#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "addon_data.h"
#include "completion_channel.h"
#include "context.h"
#include "descriptors.h"
#include "util/memory.h"
#include "util/resource.h"
#include "util/verbs_error.h"
#include "util/wrap.h"

namespace node_rdma {

class ProtectionDomain;

// struct ibv_cq, with the records that poll() fills for JavaScript.
class CompletionQueue final : public Resource {
 public:
  static constexpr const char* kKindName = "CompletionQueue";
  static constexpr uint32_t kMostRecords = 1024;

  // What ibv_create_cq_ex is asked for besides what ibv_create_cq is.
  struct Extension {
    uint64_t wc_flags;                                // IBV_WC_EX_WITH_*
    uint32_t flags;                                   // IBV_CREATE_CQ_ATTR_*
    std::shared_ptr<ProtectionDomain> parent_domain;  // or none
  };

  // `channel` may be null: then it makes no events. `extension`: null for a plain one.
  static std::shared_ptr<CompletionQueue> Create(AddonData& addon, std::shared_ptr<Context> context,
                                                 std::shared_ptr<CompletionChannel> channel, uint32_t entries,
                                                 uint32_t vector, const Extension* extension, int* error);
  ~CompletionQueue() override { Close(); }

  // Takes as many completions into the records as the counters allow, tells there how many, and ends their
  // work requests. Completions of queue pairs that are closed already are dropped, as most devices do by
  // themselves. 0 or a positive errno.
  int Poll();

  // 1 when there is a completion for Poll() to take, 0 when there is none even after `spin` microseconds, or
  // a negative errno.
  int Ready(uint32_t spin);

  // The next completion (only a solicited one or a failure, if so asked) makes an event. 0 or a positive
  // errno.
  int Arm(bool solicited_only) { return ErrorOfResult(ibv_req_notify_cq(verbs_, solicited_only)); }

  // As ResizeQueue() calls them.
  int BeginResize(uint32_t entries);
  int Resize(uint32_t entries) { return ErrorOfResult(ibv_resize_cq(verbs_, static_cast<int>(entries))); }
  void EndResize(bool done);

  // What an extended queue tells of a completion besides struct ibv_wc; 0 where it was not asked for.
  struct Fields {
    uint64_t timestamp = 0;     // ticks of the device
    uint64_t wallclock_ns = 0;  // since 1970
    uint64_t tag = 0;
    uint32_t tag_private = 0;
    uint32_t flow_tag = 0;
    uint16_t cvlan = 0;
  };
  bool extended() const { return extended_ != nullptr; }
  // As Poll(), of an extended queue, up to `limit`; `fields` gets what belongs to each record.
  int PollExtended(uint32_t limit, std::vector<Fields>* fields);

  void OnClosed() override;

  ibv_cq* verbs() const { return verbs_; }
  CompletionChannel* channel() const { return channel_.get(); }
  uint64_t serial() const { return serial_; }

  // Entries that no outstanding request may yet take. Posting stops when there are none: an overflow would
  // lose completions.
  uint32_t room() const { return entries_ > counters_->outstanding ? entries_ - counters_->outstanding : 0; }
  void Reserve(uint32_t requests) { counters_->outstanding += requests; }
  void Release(uint32_t requests) { counters_->outstanding -= requests; }
  // Requests of a queue pair that is gone: some devices leave their completions in the queue, where they take
  // entries until they are polled and dropped.
  void Abandon(uint32_t requests) { abandoned_ += requests; }
  const std::shared_ptr<Context>& context() const { return context_; }
  const std::shared_ptr<Memory>& records() const { return records_; }
  uint32_t record_count() const { return record_count_; }

 protected:
  int Destroy() override;

 private:
  CompletionQueue(AddonData& addon, std::shared_ptr<Context> context,
                  std::shared_ptr<CompletionChannel> channel, ibv_cq* verbs, uint64_t serial,
                  std::shared_ptr<Memory> records, std::shared_ptr<Resource> parent_domain);

  // ibv_create_cq_ex.
  static ibv_cq_ex* CreateExtended(ibv_context* context, ibv_comp_channel* channel, uint32_t entries,
                                   uint64_t serial, uint32_t vector, const Extension& extension);
  // The next completion of an extended queue: 1, or 0 when there is none, or a negative errno.
  int ReadExtended(ibv_wc* completion, Fields* fields);
  // ibv_poll_cq, for an extended queue. Completions of queue pairs that are closed are dropped here, so that
  // fields and records belong together.
  int TakeExtended(ibv_wc* completions, uint32_t most);
  // rxe has the kernel's numbers for its flags, in which IBV_WC_IP_CSUM_OK means IBV_WC_WITH_INV.
  void MendFlags(ibv_wc* completion) const {
    if (completion->wc_flags & IBV_WC_IP_CSUM_OK && context_->soft_roce()) [[unlikely]] {
      completion->wc_flags =
          (completion->wc_flags & ~static_cast<unsigned>(IBV_WC_IP_CSUM_OK)) | IBV_WC_WITH_INV;
    }
  }
  void ReleaseAbandoned(uint32_t most);
  void SetEntries(uint32_t entries) { entries_ = counters_->entries = entries; }
  // False for a completion that is dropped.
  bool Fill(CompletionRecord& record, const ibv_wc& completion);
  // ibv_poll_cq, with the completion first that Ready() has taken.
  int Take(ibv_wc* completions, uint32_t most);
  int Look();

  AddonData& addon_;
  std::shared_ptr<Context> context_;
  std::shared_ptr<CompletionChannel> channel_;
  ibv_cq* verbs_;
  uint64_t serial_;
  SlotTable<WorkQueue, 20>::Finder queues_;
  std::shared_ptr<Memory> records_;
  CompletionCounters* counters_;
  uint32_t abandoned_ = 0;
  uint32_t record_count_;
  uint32_t entries_ = 0;
  bool resizing_ = false;
  std::optional<ibv_wc> taken_;
  ibv_cq_ex* extended_ = nullptr;  // the same queue, where it is extended
  uint64_t wc_flags_ = 0;
  Fields taken_fields_;
  std::vector<Fields>* collect_ = nullptr;  // while PollExtended() runs
};

class CompletionQueueWrap final : public Wrap<CompletionQueueWrap, CompletionQueue> {
 public:
  static constexpr Kind kKind = Kind::kCompletionQueue;
  static constexpr const char* kName = CompletionQueue::kKindName;
  static constexpr const char* kDestroy = "ibv_destroy_cq";
  static constexpr napi_type_tag kTag = {0x58c7b1e0d2964a3f, 0xb7e2f4a1905c4d68};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<CompletionQueue>& queue);
  using Wrap::Wrap;

 private:
  Napi::Value Resize(const Napi::CallbackInfo& info);
  Napi::Value ResizeSync(const Napi::CallbackInfo& info);
  Napi::Value Ref(const Napi::CallbackInfo& info);
  Napi::Value Unref(const Napi::CallbackInfo& info);
};

// extendedPoll(cq, limit): the fields of each record, see kFieldWords;
// createCqEx(context, cqe, compVector, channel, wcFlags, flags, pd), modifyCq(cq, count, periodMicroseconds).
void DefineExtendedCompletionQueues(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
