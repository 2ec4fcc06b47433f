#pragma once

#include <cstdint>
#include <vector>

#include "addon_data.h"
#include "descriptors.h"

namespace node_rdma {

class AddressHandle;
class CompletionQueue;
class MemoryRegion;
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
  uint32_t outstanding() const { return posted_ - ended_; }
  // Requests that can be posted: neither the queue nor its completion queue may overflow.
  uint32_t free() const;

  // Notes request `ahead` places after those already posted; nothing counts until Commit().
  uint64_t Prepare(uint32_t ahead, uint64_t id) {
    const uint32_t position = Position(ahead);
    ids_[position & mask_] = id;
    region_counts_[position & mask_] = 0;
    if (!address_handles_.empty()) address_handles_[position & mask_] = 0;
    return static_cast<uint64_t>(slot_) << 32 | position;
  }
  void Name(uint32_t ahead, MrSlot region) {
    const uint32_t place = Position(ahead) & mask_;
    regions_[place * max_sge_ + region_counts_[place]++] = region;
  }
  void NameAddress(uint32_t ahead, uint32_t address_handle) {
    if (address_handles_.empty()) address_handles_.resize(mask_ + 1);
    address_handles_[Position(ahead) & mask_] = address_handle;
  }
  void Commit(uint32_t count);

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
  void Hold(uint32_t place);
  void LetGo(uint32_t place);

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
  std::vector<uint64_t> ids_;
  std::vector<uint8_t> region_counts_;
  std::vector<MrSlot> regions_;
  std::vector<uint32_t> address_handles_;  // only where datagrams were sent
  std::vector<uint32_t> free_places_;      // only in a shared receive queue, as is the next
  std::vector<bool> taken_;
};

}  // namespace node_rdma
