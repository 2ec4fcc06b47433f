#pragma once

#include <cstdint>
#include <vector>

#include "addon_data.h"
#include "completion_queue.h"
#include "descriptors.h"
#include "memory_region.h"

namespace node_rdma {

class AddressHandle;
class QueuePair;

// The requests of one queue that the device has not finished. It gives each its wr_id, keeps the caller's
// identifier and what the request names (memory regions, an address handle), and so knows how much room the
// queue has and what is in use.
//
// Requests of a queue pair's own queues end in the order in which they were posted: a completion ends its
// request and all before it (those were not signalled). Those of a shared receive queue end in any order,
// each by itself.
class WorkQueue {
 public:
  enum class Kind { kSend, kReceive, kSharedReceive };

  // `owner` and `completions` are absent in a shared receive queue, and must outlive any other.
  // `capacity`: max_wr as verbs has granted it.
  WorkQueue(AddonData& addon, Kind kind, QueuePair* owner, CompletionQueue* completions, uint32_t capacity,
            uint32_t max_sge, QueueCounters* counters);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue();

  bool has_slot() const { return slot_ != 0; }
  uint32_t posted() const { return posted_; }
  uint32_t outstanding() const { return posted_ - ended_; }
  // Requests that can be posted: neither the queue nor its completion queue may overflow.
  uint32_t free() const;

  struct Request {
    uint64_t id;
    MrSlot region;  // the first that it names
    uint8_t region_count;
    bool to_address;
    bool taken;  // only in a shared receive queue
  };

  // Notes request `ahead` places after those already posted. What it names is held at once; nothing else
  // counts until Commit().
  Request& Prepare(uint32_t ahead, uint64_t id, uint64_t* wr_id) {
    const uint32_t position = Position(ahead);
    *wr_id = static_cast<uint64_t>(slot_) << 32 | position;
    Request& request = requests_[position & mask_];
    request = {id, 0, 0, false, false};
    return request;
  }
  void Name(Request& request, MemoryRegion& region) {
    ++region.work_requests;
    if (request.region_count++ == 0) {
      request.region = region.slot();
    } else {
      MoreRegion(PlaceOf(request), request.region_count - 1) = region.slot();
    }
  }
  void NameAddress(Request& request, AddressHandle& handle);
  // Of `prepared` requests that many were posted, and the others were not.
  void Commit(uint32_t posted, uint32_t prepared);

  // Ends the request of a completion. Returns the caller's identifier.
  uint64_t End(uint64_t wr_id);

  // How many requests may be under way at a time, at least as many as there are. Only of a shared receive
  // queue.
  void SetCapacity(uint32_t capacity);

  // A request of this queue has failed.
  void NoteFailure();

  // Whether it is the first request since the queue began, or began anew.
  bool IsFirst(uint64_t wr_id) const { return static_cast<uint32_t>(wr_id) == began_; }

  // The device has let go of everything: the queue is destroyed.
  void EndAll();

  // The device has dropped everything, without completions, and the queue begins anew. What of it still lies
  // in the completion queue is nobody's.
  void BeginAnew();

 private:
  bool shared() const { return kind_ == Kind::kSharedReceive; }
  uint32_t Position(uint32_t ahead) const {
    return shared() ? free_places_[free_places_.size() - 1 - ahead] : posted_ + ahead;
  }
  MrSlot& MoreRegion(uint32_t place, uint32_t k) { return more_regions_[place * (max_sge_ - 1) + k - 1]; }
  void Resize(uint32_t capacity);
  uint32_t PlaceOf(const Request& request) const {
    return static_cast<uint32_t>(&request - requests_.data());
  }
  uint64_t EndOutOfTurn(uint64_t wr_id);
  void LetGo(const Request& request);
  void LetGoOfMore(const Request& request);
  void LetGoOfRegion(MrSlot slot);

  AddonData& addon_;
  Kind kind_;
  QueuePair* owner_;
  CompletionQueue* completions_;
  uint32_t capacity_;
  uint32_t max_sge_;
  uint32_t mask_;  // places for requests, a power of two, less 1
  uint32_t slot_;
  uint32_t posted_ = 0;
  uint32_t ended_ = 0;
  uint32_t began_ = 0;  // as posted_ was when it began
  QueueCounters* counters_;
  std::vector<Request> requests_;
  std::vector<MrSlot> more_regions_;       // only where a request may name more than one
  std::vector<uint32_t> address_handles_;  // only where datagrams were sent
  std::vector<uint32_t> free_places_;      // only in a shared receive queue
  SlotTable<MemoryRegion, 24>::Finder regions_;
};

// Here and not in the .cc file: inlined where each completion passes.

// Most often it is the next one, and names one region.
inline uint64_t WorkQueue::End(uint64_t wr_id) {
  const auto position = static_cast<uint32_t>(wr_id);
  if (position != ended_ || ended_ == posted_ || shared()) [[unlikely]]
    return EndOutOfTurn(wr_id);
  const Request& request = requests_[position & mask_];
  completions_->Release(1);
  counters_->ended = ++ended_;
  LetGo(request);
  return request.id;
}

inline void WorkQueue::LetGo(const Request& request) {
  if (request.region_count != 1 || request.to_address) [[unlikely]]
    return LetGoOfMore(request);
  LetGoOfRegion(request.region);
}

inline void WorkQueue::LetGoOfRegion(MrSlot slot) {
  MemoryRegion* region = regions_.Find(slot);
  if (region && --region->work_requests == 0) addon_.ReapAbandoned();
}

}  // namespace node_rdma
