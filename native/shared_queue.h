#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "addon_data.h"
#include "descriptors.h"
#include "util/memory.h"
#include "util/verbs_error.h"
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
  int error = 0;  // errno of ibv_post_*
  const char* code =
      nullptr;  // of the error to throw when the state or a descriptor is wrong; then nothing was posted
  std::string problem;

  // A refusal; `what` is the sentence that says why.
  static PostResult Refused(const char* code, std::string what) {
    PostResult result;
    result.code = code;
    result.problem = std::move(what);
    return result;
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
      : addon_(addon), domain_(domain), memory_(std::move(memory)), layout_(layout), shape_(shape) {}

  QueueCounters* counters() const { return At<QueueCounters>(layout_.counters); }
  const QueueLayout& layout() const { return layout_; }
  const QueueShape& shape() const { return shape_; }
  std::optional<WorkQueue>& requests() { return requests_; }

  // How many of `count` descriptors can be posted now.
  uint32_t Fitting(uint32_t count) const {
    return std::min({count, requests_->free(), layout_.descriptor_count});
  }
  uint32_t Place(uint32_t index) const { return index & (layout_.descriptor_count - 1); }

  template <class Descriptor>
  Descriptor Read(uint32_t place) const {
    return At<Descriptor>(layout_.descriptors)[place];
  }

  struct Elements {
    uint32_t place;  // of the descriptor
    uint32_t ahead;  // of what is posted already
    uint32_t count;
    ScatterGatherElement only;  // where count is 1
    bool device_writes;
    bool inlined;
  };

  // Turns a descriptor's elements into verbs' own, and names their regions in the request. False, with
  // `problem` set, when they ask for what must not be.
  bool Translate(const Elements& wanted, ibv_sge* elements, int* translated, uint64_t* total,
                 std::string* problem);

  // Posts receives: everything is checked before `post`, the verbs function, is called. A receive of fewer
  // bytes than `least` could take no message at all.
  template <class Post>
  PostResult PostReceives(uint32_t first, uint32_t count, uint64_t least, Post post);

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
};

template <class Post>
PostResult SharedQueue::PostReceives(uint32_t first, uint32_t count, uint64_t least, Post post) {
  PostResult result;
  count = Fitting(count);
  if (count == 0) return result;
  auto& requests = addon_.receive_requests;
  auto& elements = addon_.elements;
  const size_t most = shape_.max_sge;
  if (requests.size() < count) requests.resize(count);
  if (elements.size() < count * most) elements.resize(count * most);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = Place(first + i);
    const auto descriptor = Read<ReceiveDescriptor>(place);
    ibv_recv_wr& request = requests[i];
    request = {};
    request.wr_id = requests_->Prepare(i, static_cast<uint64_t>(descriptor.id_high) << 32 | descriptor.id);
    request.sg_list = &elements[i * most];
    uint64_t total = 0;
    const Elements wanted = {
        place, i, descriptor.sge_count, descriptor.sge, /*device_writes=*/true, /*inlined=*/false};
    if (!Translate(wanted, request.sg_list, &request.num_sge, &total, &result.problem)) {
      return PostResult::Refused(kBadDescriptor,
                                 "descriptor " + std::to_string(place) + ": " + result.problem);
    }
    if (total < least) {
      return PostResult::Refused(
          kBadDescriptor, "descriptor " + std::to_string(place) + ": " + std::to_string(total) +
                              " bytes take no datagram: the GRH before it needs " + std::to_string(least));
    }
    request.next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  result.error = ErrorOfResult(post(requests.data(), &bad));
  result.posted = result.error == 0 ? count : static_cast<uint32_t>(bad ? bad - requests.data() : 0);
  requests_->Commit(result.posted);
  return result;
}

// The body of a function that posts, bound to its queue: postSend(first, count) => posted.
// `Native` has usable() and kKindName.
template <class Native, PostResult (Native::*kPost)(uint32_t, uint32_t)>
napi_value PostHot(napi_env env, napi_callback_info info) {
  size_t argc = 2;
  napi_value argv[2];
  void* data;
  napi_get_cb_info(env, info, &argc, argv, nullptr, &data);
  auto& native = *static_cast<std::shared_ptr<Native>*>(data);
  if (!native->usable()) {
    AddonData::Of(env).ThrowCode(env, "ERR_RDMA_CLOSED", std::string(Native::kKindName) + " is closed");
    return nullptr;
  }
  uint32_t first, count;
  if (napi_get_value_uint32(env, argv[0], &first) != napi_ok ||
      napi_get_value_uint32(env, argv[1], &count) != napi_ok) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "\"first\" and \"count\" must be numbers");
    return nullptr;
  }
  const PostResult result = (native.get()->*kPost)(first, count);
  if (result.code) {
    AddonData::Of(env).ThrowCode(env, result.code, result.problem);
    return nullptr;
  }
  napi_value posted;
  napi_create_uint32(env, result.posted, &posted);
  if (result.error) {
    Napi::Value error =
        AddonData::Of(env).ErrorFromErrno(env, Native::template Syscall<kPost>(), result.error);
    if (!error.IsEmpty()) {
      error.As<Napi::Object>().Set("posted", posted);
      napi_throw(env, error);
    }
    return nullptr;
  }
  return posted;
}

}  // namespace node_rdma
