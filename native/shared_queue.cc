#include "shared_queue.h"

#include <bit>

namespace node_rdma {

namespace {

// Most that the shared memory of one object may take, far above any sane size of queues.
constexpr uint64_t kMostShared = 1ull << 31;

}  // namespace

bool QueueShape::Lay(uint32_t most_descriptors, uint64_t* size, QueueLayout* layout) const {
  layout->counters = static_cast<uint32_t>(*size);
  *size += sizeof(QueueCounters);
  layout->descriptor_count = std::bit_ceil(std::clamp(max_wr, 1u, most_descriptors));
  layout->descriptors = static_cast<uint32_t>(*size);
  *size += layout->descriptor_count * descriptor_size;
  if (max_sge > 1) {
    layout->elements = static_cast<uint32_t>(*size);
    *size += static_cast<uint64_t>(layout->descriptor_count) * max_sge * sizeof(ScatterGatherElement);
  }
  if (max_inline > 0) {
    layout->inline_area = static_cast<uint32_t>(*size);
    layout->inline_stride = (max_inline + 7) & ~7u;
    *size += static_cast<uint64_t>(layout->descriptor_count) * layout->inline_stride;
  }
  *size = (*size + 63) & ~63ull;
  return *size <= kMostShared;
}

PostResult SharedQueue::Refuse(uint32_t prepared, const std::string& problem) {
  const std::string which = std::to_string(Place(prepared - 1));
  requests_->Commit(0, prepared);
  return PostResult::Refused(kBadDescriptor, "descriptor " + which + ": " + problem);
}

Napi::Object SharedQueue::ToObject(Napi::Env env) const {
  Napi::Object o = Napi::Object::New(env);
  o.Set("counters", layout_.counters);
  o.Set("descriptors", layout_.descriptors);
  o.Set("descriptorCount", layout_.descriptor_count);
  o.Set("elements", layout_.elements);
  o.Set("inlineArea", layout_.inline_area);
  o.Set("inlineStride", layout_.inline_stride);
  o.Set("maxSge", shape_.max_sge);
  return o;
}

}  // namespace node_rdma
