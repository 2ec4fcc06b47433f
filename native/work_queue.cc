#include "work_queue.h"

#include <algorithm>
#include <bit>

#include "address_handle.h"
#include "completion_queue.h"
#include "memory_region.h"
#include "queue_pair.h"

namespace node_rdma {

WorkQueue::WorkQueue(AddonData& addon, Kind kind, QueuePair* owner, CompletionQueue* completions,
                     uint32_t capacity, uint32_t max_sge, QueueCounters* counters)
    : addon_(addon),
      kind_(kind),
      owner_(owner),
      completions_(completions),
      capacity_(capacity),
      max_sge_(std::max(max_sge, 1u)),
      mask_(std::bit_ceil(std::max(capacity, 1u)) - 1),
      slot_(addon.queues.Add(this)),
      counters_(counters),
      ids_(mask_ + 1),
      region_counts_(mask_ + 1),
      regions_(static_cast<size_t>(mask_ + 1) * max_sge_) {
  counters_->capacity = capacity;
  if (!shared()) return;
  taken_.resize(mask_ + 1);
  for (uint32_t place = mask_ + 1; place-- > 0;) free_places_.push_back(place);
}

// Places are never taken away: requests under way have theirs in their wr_id.
void WorkQueue::SetCapacity(uint32_t capacity) {
  if (capacity > mask_ + 1) {
    const uint32_t before = mask_ + 1;
    mask_ = std::bit_ceil(capacity) - 1;
    ids_.resize(mask_ + 1);
    region_counts_.resize(mask_ + 1);
    regions_.resize(static_cast<size_t>(mask_ + 1) * max_sge_);
    taken_.resize(mask_ + 1);
    for (uint32_t place = mask_ + 1; place-- > before;) free_places_.push_back(place);
  }
  capacity_ = counters_->capacity = capacity;
}

WorkQueue::~WorkQueue() {
  if (slot_ != 0) addon_.queues.Remove(slot_);
}

uint32_t WorkQueue::free() const {
  const uint32_t room = capacity_ - outstanding();
  return completions_ ? std::min(room, completions_->room()) : room;
}

void WorkQueue::Commit(uint32_t count) {
  if (completions_) completions_->Reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = Position(i) & mask_;
    Hold(place);
    if (shared()) taken_[place] = true;
  }
  if (shared()) free_places_.resize(free_places_.size() - count);
  posted_ += count;
  counters_->posted = posted_;
}

// In both branches, a request that is not outstanding can only come from a broken provider; it must not run
// the counters away.
uint64_t WorkQueue::End(uint64_t wr_id) {
  const auto position = static_cast<uint32_t>(wr_id);
  const uint32_t place = position & mask_;
  const uint64_t id = ids_[place];
  if (shared()) {
    if (!taken_[place]) return id;
    taken_[place] = false;
    free_places_.push_back(place);
    LetGo(place);
    ++ended_;
  } else {
    if (position - ended_ >= outstanding()) return id;
    completions_->Release(position + 1 - ended_);
    while (ended_ != position + 1) LetGo(ended_++ & mask_);
  }
  counters_->ended = ended_;
  return id;
}

void WorkQueue::NoteFailure() {
  if (owner_) owner_->NoteFailure(kind_ == Kind::kSend);
}

void WorkQueue::EndAll() {
  if (shared()) {
    for (uint32_t place = 0; place <= mask_; ++place) {
      if (taken_[place]) LetGo(place);
    }
    ended_ = posted_;
  } else {
    if (completions_) completions_->Abandon(outstanding());
    while (ended_ != posted_) LetGo(ended_++ & mask_);
  }
  counters_->ended = ended_;
}

void WorkQueue::Hold(uint32_t place) {
  for (uint32_t k = 0; k < region_counts_[place]; ++k) {
    ++addon_.regions.Find(regions_[place * max_sge_ + k])->work_requests;
  }
  if (!address_handles_.empty() && address_handles_[place] != 0) {
    ++addon_.address_handles.Find(address_handles_[place])->work_requests;
  }
}

void WorkQueue::LetGo(uint32_t place) {
  for (uint32_t k = 0; k < region_counts_[place]; ++k) {
    MemoryRegion* region = addon_.regions.Find(regions_[place * max_sge_ + k]);
    if (region && --region->work_requests == 0) addon_.ReapAbandoned();
  }
  if (!address_handles_.empty() && address_handles_[place] != 0) {
    AddressHandle* handle = addon_.address_handles.Find(address_handles_[place]);
    if (handle && --handle->work_requests == 0) addon_.ReapAbandoned();
  }
}

}  // namespace node_rdma
