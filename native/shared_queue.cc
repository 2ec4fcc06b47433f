#include "shared_queue.h"

#include <bit>

#include "memory_region.h"

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

bool SharedQueue::Translate(const Elements& wanted, ibv_sge* elements, int* translated, uint64_t* total,
                            std::string* problem) {
  if (wanted.count > shape_.max_sge) {
    *problem = std::to_string(wanted.count) + " scatter/gather elements, but the queue was created for " +
               std::to_string(shape_.max_sge);
    return false;
  }
  *translated = 0;
  *total = 0;
  for (uint32_t k = 0; k < wanted.count; ++k) {
    // A copy: the shared memory may change under our hands, the checked values may not.
    const ScatterGatherElement element =
        wanted.count > 1 ? At<ScatterGatherElement>(layout_.elements)[wanted.place * shape_.max_sge + k]
                         : wanted.only;
    *total += element.length;
    if (wanted.inlined && element.mr == kInlineArea) {
      if (element.length > shape_.max_inline || wanted.count != 1) {
        *problem = std::to_string(element.length) + " bytes inline, but maxInlineData is " +
                   std::to_string(shape_.max_inline);
        return false;
      }
      auto* bytes = At<std::byte>(layout_.inline_area + wanted.place * layout_.inline_stride);
      if (element.length > 0)
        elements[(*translated)++] = {reinterpret_cast<uint64_t>(bytes), element.length, 0};
      continue;
    }
    MemoryRegion* region = addon_.regions.Find(element.mr);
    if (!region || !region->usable()) {
      *problem = "memory region " + std::to_string(element.mr) + " does not exist or is closed";
      return false;
    }
    if (region->domain() != domain_) {
      *problem = "the memory region belongs to another protection domain than the queue";
      return false;
    }
    if (element.offset > region->length() || element.length > region->length() - element.offset) {
      *problem = "offset " + std::to_string(element.offset) + " and length " +
                 std::to_string(element.length) + " reach outside the memory region of " +
                 std::to_string(region->length()) + " bytes";
      return false;
    }
    if (wanted.device_writes && !region->locally_writable()) {
      *problem = "the device would write into a memory region that was registered without localWrite";
      return false;
    }
    if (wanted.inlined && !region->data()) {
      *problem = "bytes cannot be inline from a memory region that this process does not see";
      return false;
    }
    // An element of length 0 means 2^31 bytes to some devices.
    if (element.length == 0) continue;
    uint64_t address = wanted.inlined ? reinterpret_cast<uint64_t>(region->data() + element.offset)
                                      : region->iova() + element.offset;
    elements[(*translated)++] = {address, element.length, region->lkey()};
    requests_->Name(wanted.ahead, element.mr);
  }
  return true;
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
