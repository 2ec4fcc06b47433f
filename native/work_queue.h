#pragma once

#include <cstdint>
#include <vector>

#include "addon_data.h"
#include "descriptors.h"

namespace node_rdma {

class CompletionQueue;
class MemoryRegion;
class QueuePair;

// The requests of one send or receive queue that the device has not finished. It gives each its wr_id, keeps
// the caller's identifier and the memory regions that the request names, and so knows how much room the queue
// has and which regions are in use. Requests of one queue end in the order in which they were posted: a
// completion ends its own request and all before it (those were not signalled).
class WorkQueue {
 public:
  // `capacity`: max_send_wr or max_recv_wr as verbs has granted it. `completions` must outlive the queue.
  WorkQueue(AddonData& addon, QueuePair* owner, bool sends, uint32_t capacity, uint32_t max_sge,
            CompletionQueue& completions, QueueCounters* counters);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue();

  bool has_slot() const { return slot_ != 0; }
  QueuePair* owner() const { return owner_; }
  bool sends() const { return sends_; }
  uint32_t capacity() const { return capacity_; }
  uint32_t outstanding() const { return posted_ - ended_; }
  // Requests that can be posted: neither the queue nor its completion queue may overflow.
  uint32_t free() const;

  // Notes request `ahead` places after those already posted; nothing counts until Commit().
  uint64_t Prepare(uint32_t ahead, uint64_t id) {
    uint32_t position = posted_ + ahead;
    ids_[position & mask_] = id;
    region_counts_[position & mask_] = 0;
    return static_cast<uint64_t>(slot_) << 32 | position;
  }
  void Name(uint32_t ahead, MrSlot region) {
    uint32_t place = (posted_ + ahead) & mask_;
    regions_[place * max_sge_ + region_counts_[place]++] = region;
  }
  void Commit(uint32_t count);

  // Ends the request of a completion, and those before it. Returns the caller's identifier.
  uint64_t End(uint64_t wr_id);

  // The device has let go of everything: its queue pair is destroyed.
  void EndAll();

 private:
  void EndOne();

  AddonData& addon_;
  CompletionQueue& completions_;
  QueuePair* owner_;
  bool sends_;
  uint32_t capacity_;
  uint32_t max_sge_;
  uint32_t mask_;
  uint32_t slot_;
  uint32_t posted_ = 0;
  uint32_t ended_ = 0;
  QueueCounters* counters_;
  std::vector<uint64_t> ids_;
  std::vector<uint8_t> region_counts_;
  std::vector<MrSlot> regions_;
};

}  // namespace node_rdma
