#include "work_queue.h"

#include <algorithm>
#include <bit>

#include "completion_queue.h"
#include "memory_region.h"

namespace node_rdma {

WorkQueue::WorkQueue(AddonData& addon, QueuePair* owner, bool sends, uint32_t capacity, uint32_t max_sge,
                     CompletionQueue& completions, QueueCounters* counters)
    : addon_(addon),
      completions_(completions),
      owner_(owner),
      sends_(sends),
      capacity_(capacity),
      max_sge_(std::max(max_sge, 1u)),
      mask_(std::bit_ceil(std::max(capacity, 1u)) - 1),
      slot_(addon.queues.Add(this)),
      counters_(counters),
      ids_(mask_ + 1),
      region_counts_(mask_ + 1),
      regions_(static_cast<size_t>(mask_ + 1) * max_sge_) {}

WorkQueue::~WorkQueue() {
  if (slot_ != 0) addon_.queues.Remove(slot_);
}

uint32_t WorkQueue::free() const { return std::min(capacity_ - outstanding(), completions_.room()); }

void WorkQueue::Commit(uint32_t count) {
  completions_.Reserve(count);
  for (uint32_t i = 0; i < count; ++i, ++posted_) {
    uint32_t place = posted_ & mask_;
    for (uint32_t k = 0; k < region_counts_[place]; ++k) {
      ++addon_.regions.Find(regions_[place * max_sge_ + k])->work_requests;
    }
  }
  counters_->posted = posted_;
}

uint64_t WorkQueue::End(uint64_t wr_id) {
  uint32_t position = static_cast<uint32_t>(wr_id);
  uint64_t id = ids_[position & mask_];
  // A position that is not outstanding can only come from a broken provider; it must not run the counter
  // away.
  if (position - ended_ >= outstanding()) return id;
  completions_.Release(position + 1 - ended_);
  while (ended_ != position + 1) EndOne();
  counters_->ended = ended_;
  return id;
}

void WorkQueue::EndAll() {
  completions_.Abandon(outstanding());
  while (ended_ != posted_) EndOne();
  counters_->ended = ended_;
}

void WorkQueue::EndOne() {
  uint32_t place = ended_++ & mask_;
  for (uint32_t k = 0; k < region_counts_[place]; ++k) {
    MemoryRegion* region = addon_.regions.Find(regions_[place * max_sge_ + k]);
    if (region && --region->work_requests == 0) addon_.ReapAbandoned();
  }
}

}  // namespace node_rdma
