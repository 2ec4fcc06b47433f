#include "work_queue.h"

#include <algorithm>
#include <bit>

#include "address_handle.h"
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
      mask_(0),
      slot_(addon.queues.Add(this)),
      counters_(counters),
      regions_(addon.regions) {
  Resize(capacity);
  counters_->capacity = capacity;
}

// Places are never taken away: requests under way have theirs in their wr_id.
void WorkQueue::SetCapacity(uint32_t capacity) {
  if (capacity > mask_ + 1) Resize(capacity);
  capacity_ = counters_->capacity = capacity;
}

void WorkQueue::Resize(uint32_t capacity) {
  const auto before = static_cast<uint32_t>(requests_.size());
  mask_ = std::bit_ceil(std::max(capacity, 1u)) - 1;
  requests_.resize(mask_ + 1);
  more_regions_.resize(static_cast<size_t>(mask_ + 1) * (max_sge_ - 1));
  if (!shared()) return;
  for (uint32_t place = mask_ + 1; place-- > before;) free_places_.push_back(place);
}

WorkQueue::~WorkQueue() {
  if (slot_ != 0) addon_.queues.Remove(slot_);
}

uint32_t WorkQueue::free() const {
  const uint32_t room = capacity_ - outstanding();
  return completions_ ? std::min(room, completions_->room()) : room;
}

void WorkQueue::NameAddress(Request& request, AddressHandle& handle) {
  if (address_handles_.empty()) address_handles_.resize(mask_ + 1);
  address_handles_[PlaceOf(request)] = handle.slot();
  request.to_address = true;
  ++handle.work_requests;
}

void WorkQueue::Commit(uint32_t posted, uint32_t prepared) {
  for (uint32_t i = posted; i < prepared; ++i) LetGo(requests_[Position(i) & mask_]);
  if (completions_) completions_->Reserve(posted);
  if (shared()) {
    for (uint32_t i = 0; i < posted; ++i) requests_[Position(i)].taken = true;
    free_places_.resize(free_places_.size() - posted);
  }
  posted_ += posted;
  counters_->posted = posted_;
}

void WorkQueue::NoteFailure() {
  if (owner_) owner_->NoteFailure(kind_ == Kind::kSend);
}

void WorkQueue::EndAll() {
  if (shared()) {
    for (uint32_t place = 0; place <= mask_; ++place) {
      if (requests_[place].taken) LetGo(requests_[place]);
    }
    ended_ = posted_;
  } else {
    if (completions_) completions_->Abandon(outstanding());
    while (ended_ != posted_) LetGo(requests_[ended_++ & mask_]);
  }
  counters_->ended = ended_;
}

void WorkQueue::BeginAnew() {
  EndAll();
  began_ = posted_;
  // Only where there is no slot any more would stale completions find the queue; End() passes them over.
  if (const uint32_t slot = addon_.queues.Add(this)) {
    addon_.queues.Remove(slot_);
    slot_ = slot;
  }
}

// In both branches, a request that is not outstanding can only come from a broken provider; it must not run
// the counters away.
uint64_t WorkQueue::EndOutOfTurn(uint64_t wr_id) {
  const auto position = static_cast<uint32_t>(wr_id);
  Request& request = requests_[position & mask_];
  if (shared()) {
    if (!request.taken) return request.id;
    request.taken = false;
    free_places_.push_back(position & mask_);
    LetGo(request);
    ++ended_;
  } else {
    if (position - ended_ >= outstanding()) return request.id;
    completions_->Release(position + 1 - ended_);
    while (ended_ != position + 1) LetGo(requests_[ended_++ & mask_]);
  }
  counters_->ended = ended_;
  return request.id;
}

void WorkQueue::LetGoOfMore(const Request& request) {
  const uint32_t place = PlaceOf(request);
  for (uint32_t k = 0; k < request.region_count; ++k) {
    LetGoOfRegion(k == 0 ? request.region : MoreRegion(place, k));
  }
  if (!request.to_address) return;
  AddressHandle* handle = addon_.address_handles.Find(address_handles_[place]);
  if (handle && --handle->work_requests == 0) addon_.ReapAbandoned();
}

}  // namespace node_rdma
