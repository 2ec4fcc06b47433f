#include "completion_queue.h"

#include <endian.h>

#include <algorithm>
#include <utility>

#include "util/verbs_error.h"
#include "work_queue.h"

namespace node_rdma {

CompletionQueue::CompletionQueue(AddonData& addon, std::shared_ptr<Context> context, ibv_cq* verbs,
                                 std::shared_ptr<Memory> records)
    : Resource(addon.registry, {context}),
      addon_(addon),
      context_(std::move(context)),
      verbs_(verbs),
      records_(std::move(records)),
      counters_(reinterpret_cast<CompletionCounters*>(records_->data())),
      record_count_(static_cast<uint32_t>((records_->length() - sizeof(CompletionCounters)) /
                                          sizeof(CompletionRecord))) {}

std::shared_ptr<CompletionQueue> CompletionQueue::Create(AddonData& addon, std::shared_ptr<Context> context,
                                                         uint32_t entries, uint32_t vector, int* error) {
  if (entries == 0 || entries > INT32_MAX || vector > INT32_MAX) {
    *error = EINVAL;
    return nullptr;
  }
  auto records = Memory::Allocate(
      sizeof(CompletionCounters) + std::min(entries, kMostRecords) * sizeof(CompletionRecord), 0, error);
  if (!records) return nullptr;
  errno = 0;
  ibv_cq* verbs =
      ibv_create_cq(context->verbs(), static_cast<int>(entries), nullptr, nullptr, static_cast<int>(vector));
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  return std::shared_ptr<CompletionQueue>(
      new CompletionQueue(addon, std::move(context), verbs, std::move(records)));
}

int CompletionQueue::Destroy() { return ErrorOfResult(ibv_destroy_cq(verbs_)); }

void CompletionQueue::ReleaseAbandoned(uint32_t most) {
  const uint32_t count = std::min(most, abandoned_);
  abandoned_ -= count;
  Release(count);
}

int CompletionQueue::Poll(uint32_t limit) {
  constexpr uint32_t kChunk = 32;
  ibv_wc completions[kChunk];
  auto* record = reinterpret_cast<CompletionRecord*>(records_->data() + sizeof(CompletionCounters));
  limit = std::min(limit, record_count_);
  uint32_t taken = 0;
  while (taken < limit) {
    uint32_t room = std::min(limit - taken, kChunk);
    int count = ibv_poll_cq(verbs_, static_cast<int>(room), completions);
    if (count < 0) return taken > 0 ? static_cast<int>(taken) : count == -1 ? -EIO : count;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = completions[i];
      WorkQueue* queue = addon_.queues.Find(static_cast<uint32_t>(wc.wr_id >> 32));
      if (!queue) {
        ReleaseAbandoned(1);
        continue;
      }
      const uint64_t id = queue->End(wc.wr_id);
      record->id = static_cast<uint32_t>(id);
      record->id_high = static_cast<uint32_t>(id >> 32);
      record->status = static_cast<uint8_t>(wc.status);
      record->opcode = static_cast<uint8_t>(wc.opcode);
      record->flags = static_cast<uint8_t>(wc.wc_flags);
      record->dlid_path_bits = wc.dlid_path_bits;
      record->byte_length = wc.status == IBV_WC_SUCCESS ? wc.byte_len : wc.vendor_err;
      record->imm_data = wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : be32toh(wc.imm_data);
      record->qp_num = wc.qp_num;
      record->source_qp = wc.src_qp & 0xffffff;
      record->service_level = wc.sl;
      record->pkey_index = wc.pkey_index;
      record->source_lid = wc.slid;
      if (wc.status != IBV_WC_SUCCESS) queue->NoteFailure();
      ++record;
      ++taken;
    }
    if (static_cast<uint32_t>(count) < room) {
      ReleaseAbandoned(abandoned_);  // the queue is empty: there is none left in it
      break;
    }
  }
  return static_cast<int>(taken);
}

namespace {

napi_value PollHot(napi_env env, napi_callback_info info) {
  size_t argc = 1;
  napi_value argv[1];
  void* data;
  napi_get_cb_info(env, info, &argc, argv, nullptr, &data);
  auto& queue = *static_cast<std::shared_ptr<CompletionQueue>*>(data);
  if (queue->closed() || queue->closing) {
    AddonData::Of(env).ThrowCode(env, "ERR_RDMA_CLOSED", "CompletionQueue is closed");
    return nullptr;
  }
  uint32_t limit = UINT32_MAX;
  napi_get_value_uint32(env, argv[0], &limit);
  int count = queue->Poll(limit);
  if (count < 0) {
    AddonData::Of(env).ThrowErrno(env, "ibv_poll_cq", -count);
    return nullptr;
  }
  napi_value result;
  napi_create_int32(env, count, &result);
  return result;
}

}  // namespace

void CompletionQueueWrap::Define(Napi::Env env) { Wrap::Define(env, {}); }

Napi::Object CompletionQueueWrap::New(Napi::Env env, const std::shared_ptr<CompletionQueue>& queue) {
  Napi::Object object = Wrap::New(env, queue);
  if (env.IsExceptionPending()) return {};
  Napi::ArrayBuffer records = Memory::ToArrayBuffer(env, queue->records());
  if (env.IsExceptionPending()) return {};
  object.Set("records", records);
  object.Set("cqe", queue->verbs()->cqe);
  object.Set("handle", queue->verbs()->handle);
  object.Set("poll", BindHot(env, "poll", queue, PollHot));
  return object;
}

}  // namespace node_rdma
