#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace node_rdma {

// Gives small integers to objects, for descriptors and wr_ids. An integer is an index with a generation above
// it: one that has outlived its object finds nothing, although the index serves again. Freed indices wait in
// a queue, so that a generation comes round as late as it can. Used on the JavaScript thread only.
template <class T, unsigned kIndexBits>
class SlotTable {
 public:
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  static constexpr uint32_t kGenerationMask = UINT32_MAX >> kIndexBits;
  static constexpr size_t kKeepFree = 64;

  // 0 when the table is full.
  uint32_t Add(T* object) {
    uint32_t index;
    if (free_.size() > kKeepFree || entries_.size() >= kIndexMask) {
      if (free_.empty()) return 0;
      index = free_.front();
      free_.pop_front();
    } else {
      index = static_cast<uint32_t>(entries_.size());
      entries_.push_back({nullptr, 1});
    }
    entries_[index].object = object;
    ++changes_;
    return entries_[index].generation << kIndexBits | index;
  }

  void Remove(uint32_t slot) {
    ++changes_;
    Entry& entry = entries_[slot & kIndexMask];
    entry.object = nullptr;
    entry.generation = (entry.generation + 1) & kGenerationMask;
    if (entry.generation == 0) entry.generation = 1;
    free_.push_back(slot & kIndexMask);
  }

  T* Find(uint32_t slot) const {
    uint32_t index = slot & kIndexMask;
    if (index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    return entry.generation == slot >> kIndexBits ? entry.object : nullptr;
  }

  // Finds what it has found before at once: most often the same object is asked for again and again.
  class Finder {
   public:
    explicit Finder(const SlotTable& table) : table_(table) {}

    T* Find(uint32_t slot) {
      const uint64_t key = static_cast<uint64_t>(table_.changes_) << 32 | slot;
      if (key != key_) [[unlikely]]
        Search(key);
      return object_;
    }

   private:
    [[gnu::noinline]] void Search(uint64_t key) {
      object_ = table_.Find(static_cast<uint32_t>(key));
      key_ = key;
    }

    const SlotTable& table_;
    T* object_ = nullptr;
    uint64_t key_ = 0;
  };

 private:
  struct Entry {
    T* object;
    uint32_t generation;
  };
  std::vector<Entry> entries_;
  std::deque<uint32_t> free_;
  uint32_t changes_ = 0;
};

}  // namespace node_rdma
