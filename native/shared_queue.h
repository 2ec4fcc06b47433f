#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "addon_data.h"
#include "descriptors.h"
#include "memory_region.h"
#include "util/deny.h"
#include "util/memory.h"
#include "util/verbs_error.h"
#include "util/wrap.h"
#include "work_queue.h"

namespace node_rdma {

// Where the parts of one queue lie in shared memory, in bytes from its start.
struct QueueLayout {
  uint32_t counters = 0;
  uint32_t descriptors = 0;
  uint32_t descriptor_count = 0;  // a power of two
  uint32_t elements = 0;          // max_sge for each descriptor; absent (0) where max_sge is 1
  uint32_t inline_area = 0;  // max_inline for each descriptor, rounded up to 8; absent (0) where that is 0
  uint32_t inline_stride = 0;
};

// What a queue is made for, as verbs has granted it.
struct QueueShape {
  uint32_t max_wr = 0;
  uint32_t max_sge = 1;
  uint32_t max_inline = 0;
  size_t descriptor_size = 0;

  // Lays the queue out from `*size` on, which it moves behind the queue. False when that is beyond all
  // reason.
  bool Lay(uint32_t most_descriptors, uint64_t* size, QueueLayout* layout) const;
};

struct PostResult {
  uint32_t posted = 0;
  int error = 0;               // errno of ibv_post_*
  const char* code = nullptr;  // of the error to throw when the state or a descriptor is wrong; then nothing
                               // was posted, and AddonData::problem says why

  // A refusal; `what` is the sentence that says why.
  static PostResult Refused(AddonData& addon, const char* code, std::string what) {
    addon.problem = std::move(what);
    return {0, 0, code};
  }
};

inline constexpr char kBadDescriptor[] = "ERR_RDMA_INVALID_DESCRIPTOR";
inline constexpr char kBadState[] = "ERR_RDMA_INVALID_STATE";

// One queue as JavaScript sees it, descriptors in shared memory, together with its requests under way. Part
// of a queue pair or of a shared receive queue.
class SharedQueue {
 public:
  SharedQueue(AddonData& addon, ibv_pd* domain, std::shared_ptr<Memory> memory, const QueueLayout& layout,
              const QueueShape& shape)
      : addon_(addon),
        domain_(domain),
        memory_(std::move(memory)),
        layout_(layout),
        shape_(shape),
        regions_(addon.regions) {}

  QueueCounters* counters() const { return At<QueueCounters>(layout_.counters); }
  const QueueLayout& layout() const { return layout_; }
  const QueueShape& shape() const { return shape_; }
  std::optional<WorkQueue>& requests() { return requests_; }

  // How many of the descriptors that JavaScript has written can be posted now, and where the next one lies.
  uint32_t Fitting() const {
    return std::min({counters()->wanted, requests_->free(), layout_.descriptor_count});
  }
  uint32_t Place(uint32_t ahead) const {
    return (requests_->posted() + ahead) & (layout_.descriptor_count - 1);
  }

  // A copy: the shared memory may change under our hands, the checked values may not. Word by word, as
  // JavaScript has written it: wider reads would wait until those writes have left the processor's buffer.
  SendDescriptor ReadSend(uint32_t place) const {
    const volatile uint32_t* words = At<uint32_t>(layout_.descriptors) + place * (sizeof(SendDescriptor) / 4);
    const auto wide = [words](uint32_t at) { return static_cast<uint64_t>(words[at + 1]) << 32 | words[at]; };
    const uint32_t first = words[0];
    return {static_cast<uint8_t>(first),
            static_cast<uint8_t>(first >> 8),
            static_cast<uint8_t>(first >> 16),
            0,
            words[1],
            {words[2], words[3], wide(4)},
            words[6],
            words[7],
            wide(8),
            wide(10),
            wide(12),
            words[14],
            words[15]};
  }
  ReceiveDescriptor ReadReceive(uint32_t place) const {
    return At<ReceiveDescriptor>(layout_.descriptors)[place];
  }

  // Of `prepared` requests, the last did not pass: none of them is posted.
  PostResult Refuse(uint32_t prepared);

  struct Elements {
    uint32_t place;  // of the descriptor
    uint32_t count;
    ScatterGatherElement only;  // where count is 1
    bool device_writes;
    bool inlined;
  };

  // Turns a descriptor's elements into verbs' own, and names their regions in the request. False, with
  // `problem` set, when they ask for what must not be.
  bool Translate(const Elements& wanted, WorkQueue::Request& request, ibv_sge* elements, int* translated,
                 uint64_t* total, std::string* problem);

  // Posts receives: everything is checked before `post`, the verbs function, is called. A receive of fewer
  // bytes than `least` could take no message at all.
  template <class Post>
  PostResult PostReceives(uint64_t least, Post post);

  Napi::Object ToObject(Napi::Env env) const;

 private:
  template <class T>
  T* At(uint32_t offset) const {
    return reinterpret_cast<T*>(memory_->data() + offset);
  }

  AddonData& addon_;
  ibv_pd* domain_;
  std::shared_ptr<Memory> memory_;
  QueueLayout layout_;
  QueueShape shape_;
  std::optional<WorkQueue> requests_;
  SlotTable<MemoryRegion, 24>::Finder regions_;
};

// Inlined, since most callers know most of what is wanted.
[[gnu::always_inline]] inline bool SharedQueue::Translate(const Elements& wanted, WorkQueue::Request& request,
                                                          ibv_sge* elements, int* translated, uint64_t* total,
                                                          std::string* problem) {
  if (wanted.count > shape_.max_sge) [[unlikely]] {
    return Deny(problem, wanted.count, " scatter/gather elements, but the queue was created for ",
                shape_.max_sge);
  }
  int count = 0;
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < wanted.count; ++k) {
    // A copy: the shared memory may change under our hands, the checked values may not.
    const ScatterGatherElement element =
        wanted.count > 1 ? At<ScatterGatherElement>(layout_.elements)[wanted.place * shape_.max_sge + k]
                         : wanted.only;
    bytes += element.length;
    if (wanted.inlined && element.mr == kInlineArea) {
      if (element.length > shape_.max_inline || wanted.count != 1) [[unlikely]] {
        return Deny(problem, element.length, " bytes inline, but maxInlineData is ", shape_.max_inline);
      }
      auto* data = At<std::byte>(layout_.inline_area + wanted.place * layout_.inline_stride);
      if (element.length > 0) elements[count++] = {reinterpret_cast<uint64_t>(data), element.length, 0};
      continue;
    }
    MemoryRegion* region = regions_.Find(element.mr);
    if (!region || !region->usable()) [[unlikely]] {
      return Deny(problem, "memory region ", element.mr, " does not exist or is closed");
    }
    if (region->domain() != domain_) [[unlikely]] {
      return Deny(problem, "the memory region belongs to another protection domain than the queue");
    }
    if (element.offset > region->length() || element.length > region->length() - element.offset)
        [[unlikely]] {
      return Deny(problem, "offset ", element.offset, " and length ", element.length,
                  " reach outside the memory region of ", region->length(), " bytes");
    }
    if (wanted.device_writes && !region->locally_writable()) [[unlikely]] {
      return Deny(problem,
                  "the device would write into a memory region that was registered without localWrite");
    }
    if (wanted.inlined && !region->data()) [[unlikely]] {
      return Deny(problem, "bytes cannot be inline from a memory region that this process does not see");
    }
    // An element of length 0 means 2^31 bytes to some devices.
    if (element.length == 0) continue;
    const uint64_t address = wanted.inlined ? reinterpret_cast<uint64_t>(region->data() + element.offset)
                                            : region->iova() + element.offset;
    elements[count++] = {address, element.length, region->lkey()};
    requests_->Name(request, *region);
  }
  *translated = count;
  *total = bytes;
  return true;
}

template <class Post>
PostResult SharedQueue::PostReceives(uint64_t least, Post post) {
  PostResult result;
  const uint32_t count = Fitting();
  if (count == 0) return result;
  auto& requests = addon_.receive_requests;
  auto& elements = addon_.elements;
  const size_t most = shape_.max_sge;
  if (requests.size() < count) requests.resize(count);
  if (elements.size() < count * most) elements.resize(count * most);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = Place(i);
    const auto descriptor = ReadReceive(place);
    ibv_recv_wr& request = requests[i];
    auto& noted = requests_->Prepare(i, static_cast<uint64_t>(descriptor.id_high) << 32 | descriptor.id,
                                     &request.wr_id);
    request.sg_list = &elements[i * most];
    uint64_t total = 0;
    const Elements wanted = {place, descriptor.sge_count, descriptor.sge, /*device_writes=*/true,
                             /*inlined=*/false};
    if (!Translate(wanted, noted, request.sg_list, &request.num_sge, &total, &addon_.problem)) {
      return Refuse(i + 1);
    }
    if (total < least) {
      Deny(&addon_.problem, total, " bytes take no datagram: the GRH before it needs ", least);
      return Refuse(i + 1);
    }
    request.next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  result.error = ErrorOfResult(post(requests.data(), &bad));
  result.posted = result.error == 0 ? count : static_cast<uint32_t>(bad ? bad - requests.data() : 0);
  requests_->Commit(result.posted, count);
  return result;
}

// The body of a function that posts, bound to its queue: posts what `wanted` of its counters says, and tells
// how much it was by `posted`.
template <class Native, PostResult (Native::*kPost)()>
napi_value PostHot(napi_env env, napi_callback_info info) {
  Native* native = Hot<Native>(env, info);
  if (!native) return nullptr;
  const PostResult result = (native->*kPost)();
  if (result.code) {
    AddonData::Of(env).ThrowCode(env, result.code, AddonData::Of(env).problem);
  } else if (result.error) {
    Napi::Value error =
        AddonData::Of(env).ErrorFromErrno(env, Native::template Syscall<kPost>(), result.error);
    if (error.IsEmpty()) return nullptr;
    error.As<Napi::Object>().Set("posted", result.posted);
    napi_throw(env, error);
  }
  return nullptr;
}

}  // namespace node_rdma
