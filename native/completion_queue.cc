#include "completion_queue.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "memory_window.h"
#include "protection_domain.h"
#include "util/resize.h"
#include "util/verbs_error.h"
#include "work_queue.h"

namespace node_rdma {

namespace {

// Those that there are.
std::vector<std::shared_ptr<Resource>> OnlyThoseOf(std::vector<std::shared_ptr<Resource>> resources) {
  std::erase(resources, nullptr);
  return resources;
}

}  // namespace

CompletionQueue::CompletionQueue(AddonData& addon, std::shared_ptr<Context> context,
                                 std::shared_ptr<CompletionChannel> channel, ibv_cq* verbs, uint64_t serial,
                                 std::shared_ptr<Memory> records, std::shared_ptr<Resource> parent_domain)
    : Resource(addon.registry, OnlyThoseOf({context, channel, std::move(parent_domain)})),
      addon_(addon),
      context_(std::move(context)),
      channel_(std::move(channel)),
      verbs_(verbs),
      serial_(serial),
      queues_(addon.queues),
      records_(std::move(records)),
      counters_(reinterpret_cast<CompletionCounters*>(records_->data())),
      record_count_(static_cast<uint32_t>((records_->length() - sizeof(CompletionCounters)) /
                                          sizeof(CompletionRecord))) {
  SetEntries(static_cast<uint32_t>(verbs_->cqe));
  if (channel_) channel_->Add(serial_);
}

std::shared_ptr<CompletionQueue> CompletionQueue::Create(AddonData& addon, std::shared_ptr<Context> context,
                                                         std::shared_ptr<CompletionChannel> channel,
                                                         uint32_t entries, uint32_t vector,
                                                         const Extension* extension, int* error) {
  if (entries == 0 || entries > INT32_MAX || vector > INT32_MAX) {
    *error = EINVAL;
    return nullptr;
  }
  auto records = Memory::Allocate(
      sizeof(CompletionCounters) + std::min(entries, kMostRecords) * sizeof(CompletionRecord), 0, error);
  if (!records) return nullptr;
  const uint64_t serial = addon.NextSerial();
  ibv_comp_channel* events = channel ? channel->verbs() : nullptr;
  ibv_cq_ex* extended = nullptr;
  errno = 0;
  ibv_cq* verbs;
  if (extension) {
    extended = CreateExtended(context->verbs(), events, entries, serial, vector, *extension);
    verbs = extended ? ibv_cq_ex_to_cq(extended) : nullptr;
  } else {
    verbs = ibv_create_cq(context->verbs(), static_cast<int>(entries), std::bit_cast<void*>(serial), events,
                          static_cast<int>(vector));
  }
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  std::shared_ptr<CompletionQueue> queue(new CompletionQueue(addon, std::move(context), std::move(channel),
                                                             verbs, serial, std::move(records),
                                                             extension ? extension->parent_domain : nullptr));
  queue->extended_ = extended;
  if (extension) queue->wc_flags_ = extension->wc_flags;
  return queue;
}

// It waits for no event: those that were read are acknowledged, and the kernel drops those that were not.
int CompletionQueue::Destroy() { return ErrorOfResult(ibv_destroy_cq(verbs_)); }

void CompletionQueue::OnClosed() {
  if (channel_) channel_->Remove(serial_);
}

void CompletionQueue::ReleaseAbandoned(uint32_t most) {
  const uint32_t count = std::min(most, abandoned_);
  abandoned_ -= count;
  Release(count);
}

int CompletionQueue::Take(ibv_wc* completions, uint32_t most) {
  if (extended_) return TakeExtended(completions, most);
  if (!taken_) return ibv_poll_cq(verbs_, static_cast<int>(most), completions);
  completions[0] = *taken_;
  taken_.reset();
  if (most == 1) return 1;
  return 1 + std::max(ibv_poll_cq(verbs_, static_cast<int>(most - 1), completions + 1), 0);
}

int CompletionQueue::Look() {
  while (!taken_) {
    ibv_wc completion;
    const int count =
        extended_ ? ReadExtended(&completion, &taken_fields_) : ibv_poll_cq(verbs_, 1, &completion);
    if (count < 0) return count == -1 ? -EIO : count;
    if (count == 0) {
      ReleaseAbandoned(abandoned_);
      return 0;
    }
    if (addon_.queues.Find(static_cast<uint32_t>(completion.wr_id >> 32))) {
      taken_ = completion;
    } else {
      ReleaseAbandoned(1);
    }
  }
  return 1;
}

int CompletionQueue::Ready(uint32_t spin) {
  int ready = Look();
  if (ready != 0 || spin == 0) return ready;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(spin);
  do {
    ready = Look();
  } while (ready == 0 && std::chrono::steady_clock::now() < deadline);
  return ready;
}

int CompletionQueue::BeginResize(uint32_t entries) {
  if (entries == 0 || entries > INT32_MAX) return EINVAL;
  if (resizing_ || entries < counters_->outstanding) return EBUSY;
  resizing_ = true;
  // Meanwhile no more may be posted than either size has room for.
  SetEntries(std::min(entries_, entries));
  return 0;
}

void CompletionQueue::EndResize(bool) {
  resizing_ = false;
  SetEntries(static_cast<uint32_t>(verbs_->cqe));
}

int CompletionQueue::Poll() {
  constexpr uint32_t kChunk = 32;
  ibv_wc completions[kChunk];
  auto* const records = reinterpret_cast<CompletionRecord*>(counters_ + 1);
  const uint32_t limit = std::min(counters_->limit, record_count_);
  uint32_t filled = 0;
  counters_->filled = 0;
  while (filled < limit) {
    const uint32_t room = std::min(limit - filled, kChunk);
    const int count = Take(completions, room);
    if (count < 0) {
      if (filled > 0) break;
      return count == -1 ? EIO : -count;
    }
    for (int i = 0; i < count; ++i) {
      MendFlags(&completions[i]);
      filled += Fill(records[filled], completions[i]) ? 1 : 0;
    }
    if (static_cast<uint32_t>(count) < room) {
      ReleaseAbandoned(abandoned_);  // the queue is empty: there is none left in it
      break;
    }
  }
  counters_->filled = filled;
  return 0;
}

bool CompletionQueue::Fill(CompletionRecord& record, const ibv_wc& wc) {
  WorkQueue* queue = queues_.Find(static_cast<uint32_t>(wc.wr_id >> 32));
  if (!queue) [[unlikely]] {
    ReleaseAbandoned(1);
    return false;
  }
  record.id = queue->End(wc.wr_id);
  record.status = static_cast<uint8_t>(wc.status);
  record.opcode = static_cast<uint8_t>(wc.opcode);
  record.flags = static_cast<uint8_t>(wc.wc_flags);
  record.dlid_path_bits = wc.dlid_path_bits;
  record.byte_length = wc.status == IBV_WC_SUCCESS ? wc.byte_len : wc.vendor_err;
  record.imm_data = wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : be32toh(wc.imm_data);
  record.qp_num = wc.qp_num;
  record.source_qp = wc.src_qp & 0xffffff;
  record.service_level = wc.sl;
  record.pkey_index = wc.pkey_index;
  record.source_lid = wc.slid;
  if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
    record.flags = queue->IsFirst(wc.wr_id) ? 1 : 0;
    queue->NoteFailure();
  } else if (wc.wc_flags & IBV_WC_WITH_INV) [[unlikely]] {
    MemoryWindow::NoteInvalidated(addon_, verbs_->context, wc.invalidated_rkey);
  }
  return true;
}

namespace {

napi_value PollHot(napi_env env, napi_callback_info info) {
  auto* queue = Hot<CompletionQueue>(env, info);
  if (!queue) return nullptr;
  if (int error = queue->Poll()) AddonData::Of(env).ThrowErrno(env, "ibv_poll_cq", error);
  return nullptr;
}

napi_value ReadyHot(napi_env env, napi_callback_info info) {
  napi_value argument;
  auto* queue = Hot<CompletionQueue>(env, info, 1, &argument);
  if (!queue) return nullptr;
  uint32_t spin = 0;
  napi_get_value_uint32(env, argument, &spin);
  const int ready = queue->Ready(spin);
  if (ready < 0) {
    AddonData::Of(env).ThrowErrno(env, "ibv_poll_cq", -ready);
    return nullptr;
  }
  napi_value result;
  napi_get_boolean(env, ready > 0, &result);
  return result;
}

napi_value ReqNotifyHot(napi_env env, napi_callback_info info) {
  napi_value argument;
  auto* queue = Hot<CompletionQueue>(env, info, 1, &argument);
  if (!queue) return nullptr;
  bool solicited_only = false;
  napi_get_value_bool(env, argument, &solicited_only);
  if (int error = queue->Arm(solicited_only)) AddonData::Of(env).ThrowErrno(env, "ibv_req_notify_cq", error);
  return nullptr;
}

}  // namespace

void CompletionQueueWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("resize", &CompletionQueueWrap::Resize),
                        InstanceMethod("resizeSync", &CompletionQueueWrap::ResizeSync),
                        InstanceMethod("ref", &CompletionQueueWrap::Ref),
                        InstanceMethod("unref", &CompletionQueueWrap::Unref),
                    });
}

Napi::Object CompletionQueueWrap::New(Napi::Env env, const std::shared_ptr<CompletionQueue>& queue) {
  Napi::Object object = Wrap::New(env, queue);
  if (env.IsExceptionPending()) return {};
  Napi::ArrayBuffer records = Memory::ToArrayBuffer(env, queue->records());
  if (env.IsExceptionPending()) return {};
  object.Set("records", records);
  object.Set("serial", Napi::Number::New(env, static_cast<double>(queue->serial())));
  object.Set("handle", queue->verbs()->handle);
  object.Set("poll", BindHot(env, "poll", queue, PollHot));
  object.Set("ready", BindHot(env, "ready", queue, ReadyHot));
  object.Set("reqNotify", BindHot(env, "reqNotify", queue, ReqNotifyHot));
  return object;
}

Napi::Value CompletionQueueWrap::Resize(const Napi::CallbackInfo& info) {
  return ResizeQueue(info, Open(info.Env()), "ibv_resize_cq", /*sync=*/false);
}

Napi::Value CompletionQueueWrap::ResizeSync(const Napi::CallbackInfo& info) {
  return ResizeQueue(info, Open(info.Env()), "ibv_resize_cq", /*sync=*/true);
}

// Also of a closed queue: a wait that its closing ends has counted before.
Napi::Value CompletionQueueWrap::Ref(const Napi::CallbackInfo& info) {
  if (native()->channel()) native()->channel()->Ref();
  return info.Env().Undefined();
}

Napi::Value CompletionQueueWrap::Unref(const Napi::CallbackInfo& info) {
  if (native()->channel()) native()->channel()->Unref();
  return info.Env().Undefined();
}

}  // namespace node_rdma
