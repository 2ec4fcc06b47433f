#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>

#include "addon_data.h"
#include "context.h"
#include "descriptors.h"
#include "util/memory.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_cq, with the records that poll() fills for JavaScript.
class CompletionQueue final : public Resource {
 public:
  static constexpr const char* kKindName = "CompletionQueue";
  static constexpr uint32_t kMostRecords = 1024;

  static std::shared_ptr<CompletionQueue> Create(AddonData& addon, std::shared_ptr<Context> context,
                                                 uint32_t entries, uint32_t vector, int* error);
  ~CompletionQueue() override { Close(); }

  // Takes up to `limit` completions into the records, and ends their work requests. Completions of queue
  // pairs that are closed already are dropped, as most devices do by themselves. Returns their number, or a
  // negative errno.
  int Poll(uint32_t limit);

  ibv_cq* verbs() const { return verbs_; }

  // Entries that no outstanding request may yet take. Posting stops when there are none: an overflow would
  // lose completions.
  uint32_t room() const {
    const uint32_t entries = static_cast<uint32_t>(verbs_->cqe);
    return entries > counters_->outstanding ? entries - counters_->outstanding : 0;
  }
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
  void ReleaseAbandoned(uint32_t most);

  CompletionQueue(AddonData& addon, std::shared_ptr<Context> context, ibv_cq* verbs,
                  std::shared_ptr<Memory> records);

  AddonData& addon_;
  std::shared_ptr<Context> context_;
  ibv_cq* verbs_;
  std::shared_ptr<Memory> records_;
  CompletionCounters* counters_;
  uint32_t abandoned_ = 0;
  uint32_t record_count_;
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
};

}  // namespace node_rdma
