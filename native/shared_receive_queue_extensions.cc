#include <infiniband/verbs.h>

#include "memory_region.h"
#include "shared_receive_queue.h"
#include "util/arguments.h"
#include "util/plain_resource.h"

namespace node_rdma {

// The operation and, where it adds a tag, the receive each have a place among the queue's requests. A receive
// whose tag is taken away again keeps its place, and its memory, until the queue is closed: nothing tells
// when the device is done with it.
int SharedReceiveQueue::PostTagOperation(TagOperation& operation) {
  WorkQueue& requests = *queue_->requests();
  const bool adds = operation.verbs.opcode == IBV_WR_TAG_ADD;
  const bool completes = operation.verbs.flags & IBV_OPS_SIGNALED;
  const uint32_t places = (adds ? 1 : 0) + (completes ? 1 : 0);
  if (requests.free() < places) return ENOMEM;
  if (adds) {
    auto& noted = requests.Prepare(0, operation.receive_id, &operation.verbs.tm.add.recv_wr_id);
    operation.verbs.tm.add.sg_list = operation.elements.data();
    operation.verbs.tm.add.num_sge = static_cast<int>(operation.elements.size());
    for (auto& region : operation.regions) requests.Name(noted, *region);
  }
  if (completes) requests.Prepare(adds ? 1 : 0, operation.id, &operation.verbs.wr_id);
  ibv_ops_wr* bad = nullptr;
  const int error = ErrorOfResult(ibv_post_srq_ops(verbs_, &operation.verbs, &bad));
  requests.Commit(error == 0 ? places : 0, places);
  return error;
}

namespace {

Napi::Value SrqNum(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue = SharedReceiveQueueWrap::From(info, 0, "srq");
  if (!queue) return {};
  uint32_t number = 0;
  if (int error = ErrorOfResult(ibv_get_srq_num(queue->verbs(), &number))) {
    return Undefined(env, "ibv_get_srq_num", error);
  }
  return Napi::Number::New(env, number);
}

// `words`: opcode, flags, count of unexpected messages seen, handle of the tag, elements. Returns the handle.
Napi::Value PostSrqOps(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  SharedReceiveQueue::TagOperation operation;
  uint32_t* words;
  uint64_t tag, mask;
  auto queue = SharedReceiveQueueWrap::From(info, 0, "srq");
  if (!queue || !arguments.Uint32Array(1, "words", 5, &words) || !arguments.Uint64(2, "tag", &tag) ||
      !arguments.Uint64(3, "mask", &mask) || !arguments.Uint64(4, "wrId", &operation.id) ||
      !arguments.Uint64(5, "recvWrId", &operation.receive_id)) {
    return {};
  }
  ibv_ops_wr& verbs = operation.verbs;
  verbs.opcode = static_cast<ibv_ops_wr_opcode>(words[0]);
  verbs.flags = static_cast<int>(words[1]);
  verbs.tm.unexpected_cnt = words[2];
  verbs.tm.handle = words[3];
  verbs.tm.add.tag = tag;
  verbs.tm.add.mask = mask;
  if (words[4] > queue->queue().shape().max_sge) return Undefined(env, "ibv_post_srq_ops", EINVAL);
  for (size_t i = 0; i < words[4]; ++i) {
    uint64_t offset;
    uint32_t length;
    auto region = MemoryRegionWrap::From(info, 6 + 3 * i, "mr");
    if (!region || !arguments.Uint64(7 + 3 * i, "offset", &offset) ||
        !arguments.Uint32(8 + 3 * i, "length", &length)) {
      return {};
    }
    if (region->domain() != queue->domain() || !region->locally_writable() || offset > region->length() ||
        length > region->length() - offset) {
      return Undefined(env, "ibv_post_srq_ops", EINVAL);
    }
    operation.elements.push_back({region->iova() + offset, length, region->lkey()});
    operation.regions.push_back(region);
  }
  if (int error = queue->PostTagOperation(operation)) return Undefined(env, "ibv_post_srq_ops", error);
  return Napi::Number::New(env, verbs.tm.handle);
}

}  // namespace

void DefineSharedReceiveQueueExtensions(Napi::Env env, Napi::Object exports) {
  exports.Set("srqNum", Napi::Function::New<SrqNum>(env, "srqNum"));
  exports.Set("postSrqOps", Napi::Function::New<PostSrqOps>(env, "postSrqOps"));
}

}  // namespace node_rdma
