#include "queue_pair.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "memory_region.h"
#include "queue_pair_attributes.h"
#include "util/arguments.h"
#include "util/promise_worker.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

constexpr char kBadDescriptor[] = "ERR_RDMA_INVALID_DESCRIPTOR";
constexpr char kBadState[] = "ERR_RDMA_INVALID_STATE";

const char* StateName(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state <= IBV_QPS_ERR ? kNames[state] : "UNKNOWN";
}

// What each type of queue pair may send; anything else is taken by ibv_post_send and breaks the connection
// later.
bool MaySend(ibv_qp_type type, uint8_t opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_SEND_WITH_INV:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

constexpr uint8_t kSendFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

// Most that one shared memory of a queue pair may take, far above any sane size of queues.
constexpr uint64_t kMostShared = 1ull << 31;

template <class Descriptor>
uint64_t Id(const Descriptor& descriptor) {
  return static_cast<uint64_t>(descriptor.id_high) << 32 | descriptor.id;
}

std::string Text(uint64_t number) { return std::to_string(number); }

}  // namespace

QueuePair::QueuePair(AddonData& addon, std::shared_ptr<ProtectionDomain> domain,
                     std::shared_ptr<CompletionQueue> send_cq, std::shared_ptr<CompletionQueue> receive_cq,
                     ibv_qp* verbs, const ibv_qp_cap& cap)
    : Resource(addon.registry, {domain, send_cq, receive_cq}),
      addon_(addon),
      domain_(std::move(domain)),
      send_cq_(std::move(send_cq)),
      receive_cq_(std::move(receive_cq)),
      verbs_(verbs),
      cap_(cap) {}

std::shared_ptr<QueuePair> QueuePair::Create(AddonData& addon, std::shared_ptr<ProtectionDomain> domain,
                                             std::shared_ptr<CompletionQueue> send_cq,
                                             std::shared_ptr<CompletionQueue> receive_cq,
                                             ibv_qp_init_attr* init, uint32_t most_descriptors, int* error) {
  init->send_cq = send_cq->verbs();
  init->recv_cq = receive_cq->verbs();
  errno = 0;
  ibv_qp* verbs = ibv_create_qp(domain->verbs(), init);
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  std::shared_ptr<QueuePair> queue_pair(
      new QueuePair(addon, std::move(domain), std::move(send_cq), std::move(receive_cq), verbs, init->cap));
  if ((*error = queue_pair->Prepare(most_descriptors))) return nullptr;
  return queue_pair;
}

int QueuePair::Prepare(uint32_t most_descriptors) {
  uint64_t size = 0;
  auto lay = [&size, most_descriptors](QueueLayout* layout, uint32_t wr, uint32_t sge, uint32_t inline_data,
                                       size_t descriptor_size) {
    layout->counters = static_cast<uint32_t>(size);
    size += sizeof(QueueCounters);
    layout->descriptor_count = std::bit_ceil(std::clamp(wr, 1u, most_descriptors));
    layout->descriptors = static_cast<uint32_t>(size);
    size += layout->descriptor_count * descriptor_size;
    if (sge > 1) {
      layout->elements = static_cast<uint32_t>(size);
      size += static_cast<uint64_t>(layout->descriptor_count) * sge * sizeof(ScatterGatherElement);
    }
    if (inline_data > 0) {
      layout->inline_area = static_cast<uint32_t>(size);
      layout->inline_stride = (inline_data + 7) & ~7u;
      size += static_cast<uint64_t>(layout->descriptor_count) * layout->inline_stride;
    }
    size = (size + 63) & ~63ull;
    return size <= kMostShared;
  };
  if (!lay(&send_layout_, cap_.max_send_wr, cap_.max_send_sge, cap_.max_inline_data,
           sizeof(SendDescriptor)) ||
      !lay(&receive_layout_, cap_.max_recv_wr, cap_.max_recv_sge, 0, sizeof(ReceiveDescriptor))) {
    return ENOMEM;
  }
  int error = 0;
  memory_ = Memory::Allocate(size, 0, &error);
  if (!memory_) return error;
  send_queue_.emplace(addon_, this, true, cap_.max_send_wr, cap_.max_send_sge, *send_cq_,
                      At<QueueCounters>(send_layout_.counters));
  receive_queue_.emplace(addon_, this, false, cap_.max_recv_wr, cap_.max_recv_sge, *receive_cq_,
                         At<QueueCounters>(receive_layout_.counters));
  return send_queue_->has_slot() && receive_queue_->has_slot() ? 0 : ENOSPC;
}

int QueuePair::Destroy() {
  // In the error state the device finishes what it has begun; only then may the memory it worked on go.
  ibv_qp_attr error_state = {};
  error_state.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(verbs_, &error_state, IBV_QP_STATE);
  return ErrorOfResult(ibv_destroy_qp(verbs_));
}

void QueuePair::OnClosed() {
  if (send_queue_) send_queue_->EndAll();
  if (receive_queue_) receive_queue_->EndAll();
  send_queue_.reset();
  receive_queue_.reset();
}

bool QueuePair::TranslateElements(WorkQueue& queue, const QueueLayout& layout,
                                  const ScatterGatherElement& only, uint32_t place, uint32_t count,
                                  uint32_t ahead, bool device_writes, bool inlined, ibv_sge* elements,
                                  int* translated, uint64_t* total, std::string* problem) {
  const uint32_t most = queue.sends() ? cap_.max_send_sge : cap_.max_recv_sge;
  if (count > most) {
    *problem = Text(count) + " scatter/gather elements, but the queue pair was created for " + Text(most);
    return false;
  }
  *translated = 0;
  *total = 0;
  for (uint32_t k = 0; k < count; ++k) {
    // A copy: the shared memory may change under our hands, the checked values may not.
    ScatterGatherElement element = only;
    if (count > 1) element = At<ScatterGatherElement>(layout.elements)[place * most + k];
    *total += element.length;
    if (inlined && element.mr == kInlineArea) {
      if (element.length > cap_.max_inline_data || count != 1) {
        *problem = Text(element.length) + " bytes inline, but maxInlineData is " + Text(cap_.max_inline_data);
        return false;
      }
      auto* bytes = At<std::byte>(layout.inline_area + place * layout.inline_stride);
      if (element.length > 0) {
        elements[(*translated)++] = {reinterpret_cast<uint64_t>(bytes), element.length, 0};
      }
      continue;
    }
    MemoryRegion* region = addon_.regions.Find(element.mr);
    if (!region || region->closing || region->closed()) {
      *problem = "memory region " + Text(element.mr) + " does not exist or is closed";
      return false;
    }
    if (region->domain() != domain_->verbs()) {
      *problem = "the memory region belongs to another protection domain than the queue pair";
      return false;
    }
    if (element.offset > region->length() || element.length > region->length() - element.offset) {
      *problem = "offset " + Text(element.offset) + " and length " + Text(element.length) +
                 " reach outside the memory region of " + Text(region->length()) + " bytes";
      return false;
    }
    if (device_writes && !region->locally_writable()) {
      *problem = "the device would write into a memory region that was registered without localWrite";
      return false;
    }
    // An element of length 0 means 2^31 bytes to some devices.
    if (element.length == 0) continue;
    uint64_t address = inlined ? reinterpret_cast<uint64_t>(region->data() + element.offset)
                               : region->iova() + element.offset;
    elements[(*translated)++] = {address, element.length, region->lkey()};
    queue.Name(ahead, element.mr);
  }
  return true;
}

bool QueuePair::TranslateSend(const SendDescriptor& d, uint32_t place, uint32_t ahead, ibv_send_wr* request,
                              ibv_sge* elements, std::string* problem) {
  if (!MaySend(type(), d.opcode)) {
    *problem = "opcode " + Text(d.opcode) + " cannot be sent on a queue pair of this type";
    return false;
  }
  if (d.flags & ~kSendFlags) {
    *problem = "unknown send flags " + Text(d.flags & ~kSendFlags);
    return false;
  }
  const bool atomic = d.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || d.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const bool reads = atomic || d.opcode == IBV_WR_RDMA_READ;
  const bool inlined = d.flags & IBV_SEND_INLINE;
  if (reads && inlined) {
    *problem = "a READ or an atomic cannot be inline: its bytes come from the other side";
    return false;
  }
  if (reads && initiator_depth_ == 0) {
    *problem =
        "READ and atomics need maxRdAtomic of at least 1 on this queue pair; with 0 they would wait for ever";
    return false;
  }
  uint64_t total = 0;
  if (!TranslateElements(*send_queue_, send_layout_, d.sge, place, d.sge_count, ahead, reads, inlined,
                         elements, &request->num_sge, &total, problem)) {
    return false;
  }
  if (inlined && total > cap_.max_inline_data) {
    *problem = Text(total) + " bytes inline, but maxInlineData is " + Text(cap_.max_inline_data);
    return false;
  }
  if (atomic && total != 8) {
    *problem = "an atomic needs exactly 8 bytes of local memory, not " + Text(total);
    return false;
  }
  if (atomic && d.remote_address % 8 != 0) {
    *problem = "the remote address of an atomic must be a multiple of 8";
    return false;
  }
  request->sg_list = elements;
  request->opcode = static_cast<ibv_wr_opcode>(d.opcode);
  request->send_flags = d.flags;
  if (d.opcode == IBV_WR_SEND_WITH_INV) {
    request->invalidate_rkey = d.imm_data;
  } else {
    request->imm_data = htobe32(d.imm_data);
  }
  if (atomic) {
    request->wr.atomic = {d.remote_address, d.compare_add, d.swap, d.rkey};
  } else {
    request->wr.rdma = {d.remote_address, d.rkey};
  }
  return true;
}

QueuePair::PostResult QueuePair::PostSend(uint32_t first, uint32_t count) {
  PostResult result;
  if (state_ != IBV_QPS_RTS && state_ != IBV_QPS_SQD && state_ != IBV_QPS_SQE && state_ != IBV_QPS_ERR) {
    result.code = kBadState;
    result.problem =
        std::string("a queue pair in state ") + StateName(state_) + " cannot send: it must be RTS";
    return result;
  }
  count = std::min({count, send_queue_->free(), send_layout_.descriptor_count});
  if (count == 0) return result;
  auto& requests = addon_.send_requests;
  auto& elements = addon_.elements;
  const size_t most = std::max(cap_.max_send_sge, 1u);
  if (requests.size() < count) requests.resize(count);
  if (elements.size() < count * most) elements.resize(count * most);
  const auto* descriptors = At<SendDescriptor>(send_layout_.descriptors);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = (first + i) & (send_layout_.descriptor_count - 1);
    const SendDescriptor descriptor = descriptors[place];
    ibv_send_wr& request = requests[i];
    request = {};
    request.wr_id = send_queue_->Prepare(i, Id(descriptor));
    if (!TranslateSend(descriptor, place, i, &request, &elements[i * most], &result.problem)) {
      result.code = kBadDescriptor;
      result.problem = "descriptor " + Text(place) + ": " + result.problem;
      return result;
    }
    request.next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  result.error = ErrorOfResult(ibv_post_send(verbs_, requests.data(), &bad));
  result.posted = result.error == 0 ? count : static_cast<uint32_t>(bad ? bad - requests.data() : 0);
  send_queue_->Commit(result.posted);
  return result;
}

QueuePair::PostResult QueuePair::PostReceive(uint32_t first, uint32_t count) {
  PostResult result;
  if (state_ == IBV_QPS_RESET || state_ == IBV_QPS_ERR) {
    result.code = kBadState;
    result.problem = std::string("a queue pair in state ") + StateName(state_) +
                     " takes no receive requests: " +
                     (state_ == IBV_QPS_ERR ? "they might never end" : "bring it to INIT");
    return result;
  }
  count = std::min({count, receive_queue_->free(), receive_layout_.descriptor_count});
  if (count == 0) return result;
  auto& requests = addon_.receive_requests;
  auto& elements = addon_.elements;
  const size_t most = std::max(cap_.max_recv_sge, 1u);
  if (requests.size() < count) requests.resize(count);
  if (elements.size() < count * most) elements.resize(count * most);
  const auto* descriptors = At<ReceiveDescriptor>(receive_layout_.descriptors);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = (first + i) & (receive_layout_.descriptor_count - 1);
    const ReceiveDescriptor descriptor = descriptors[place];
    ibv_recv_wr& request = requests[i];
    request = {};
    request.wr_id = receive_queue_->Prepare(i, Id(descriptor));
    request.sg_list = &elements[i * most];
    uint64_t total = 0;
    if (!TranslateElements(*receive_queue_, receive_layout_, descriptor.sge, place, descriptor.sge_count, i,
                           /*device_writes=*/true, /*inlined=*/false, request.sg_list, &request.num_sge,
                           &total, &result.problem)) {
      result.code = kBadDescriptor;
      result.problem = "descriptor " + Text(place) + ": " + result.problem;
      return result;
    }
    request.next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  result.error = ErrorOfResult(ibv_post_recv(verbs_, requests.data(), &bad));
  result.posted = result.error == 0 ? count : static_cast<uint32_t>(bad ? bad - requests.data() : 0);
  receive_queue_->Commit(result.posted);
  return result;
}

int QueuePair::Modify(ibv_qp_attr* attributes, int mask) const {
  return ErrorOfResult(ibv_modify_qp(verbs_, attributes, mask));
}

int QueuePair::Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const {
  constexpr int kEverything = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_CAP | IBV_QP_AV | IBV_QP_ALT_PATH;
  return ErrorOfResult(ibv_query_qp(verbs_, attributes, kEverything, init));
}

namespace {

using Post = QueuePair::PostResult (QueuePair::*)(uint32_t, uint32_t);

template <Post kPost>
napi_value PostHot(napi_env env, napi_callback_info info) {
  constexpr const char* kSyscall = kPost == &QueuePair::PostSend ? "ibv_post_send" : "ibv_post_recv";
  size_t argc = 2;
  napi_value argv[2];
  void* data;
  napi_get_cb_info(env, info, &argc, argv, nullptr, &data);
  auto& queue_pair = *static_cast<std::shared_ptr<QueuePair>*>(data);
  if (queue_pair->closed() || queue_pair->closing) {
    AddonData::Of(env).ThrowCode(env, "ERR_RDMA_CLOSED", "QueuePair is closed");
    return nullptr;
  }
  uint32_t first, count;
  if (napi_get_value_uint32(env, argv[0], &first) != napi_ok ||
      napi_get_value_uint32(env, argv[1], &count) != napi_ok) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "\"first\" and \"count\" must be numbers");
    return nullptr;
  }
  const auto result = (queue_pair.get()->*kPost)(first, count);
  if (result.code) {
    AddonData::Of(env).ThrowCode(env, result.code, result.problem);
    return nullptr;
  }
  napi_value posted;
  napi_create_uint32(env, result.posted, &posted);
  if (result.error) {
    Napi::Value error = AddonData::Of(env).ErrorFromErrno(env, kSyscall, result.error);
    if (!error.IsEmpty()) {
      error.As<Napi::Object>().Set("posted", posted);
      napi_throw(env, error);
    }
    return nullptr;
  }
  return posted;
}

// A modification on its way from JavaScript to the device.
struct Modification {
  ibv_qp_attr attributes = {};
  int mask = 0;

  bool Read(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    uint32_t bits;
    uint32_t* words;
    if (!arguments.Uint32(0, "mask", &bits) ||
        !arguments.Uint32Array(1, "attributes", kQpAttributeWords, &words)) {
      return false;
    }
    UnpackQpAttributes(words, &attributes);
    mask = static_cast<int>(bits);
    return true;
  }

  void NoteIn(QueuePair& queue_pair) const {
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) queue_pair.NoteInitiatorDepth(attributes.max_rd_atomic);
    if (mask & IBV_QP_STATE) queue_pair.NoteState(attributes.qp_state);
  }
};

Napi::Object LayoutObject(Napi::Env env, const QueuePair::QueueLayout& layout, uint32_t capacity,
                          uint32_t max_sge) {
  Napi::Object o = Napi::Object::New(env);
  o.Set("counters", layout.counters);
  o.Set("descriptors", layout.descriptors);
  o.Set("descriptorCount", layout.descriptor_count);
  o.Set("elements", layout.elements);
  o.Set("inlineArea", layout.inline_area);
  o.Set("inlineStride", layout.inline_stride);
  o.Set("capacity", capacity);
  o.Set("maxSge", max_sge);
  return o;
}

}  // namespace

void QueuePairWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("modify", &QueuePairWrap::Modify),
                        InstanceMethod("modifySync", &QueuePairWrap::ModifySync),
                        InstanceMethod("query", &QueuePairWrap::Query),
                        InstanceAccessor("state", &QueuePairWrap::State, nullptr),
                    });
}

Napi::Object QueuePairWrap::New(Napi::Env env, std::shared_ptr<QueuePair> queue_pair) {
  Napi::Object object = Wrap::New(env, queue_pair);
  if (env.IsExceptionPending()) return {};
  Napi::ArrayBuffer memory = Memory::ToArrayBuffer(env, queue_pair->memory());
  if (env.IsExceptionPending()) return {};
  const ibv_qp_cap& cap = queue_pair->cap();
  object.Set("qpNum", queue_pair->verbs()->qp_num);
  object.Set("handle", queue_pair->verbs()->handle);
  object.Set("maxInlineData", cap.max_inline_data);
  object.Set("memory", memory);
  object.Set("sendQueue", LayoutObject(env, queue_pair->send_layout(), cap.max_send_wr, cap.max_send_sge));
  object.Set("receiveQueue",
             LayoutObject(env, queue_pair->receive_layout(), cap.max_recv_wr, cap.max_recv_sge));
  object.Set("postSend", BindHot(env, "postSend", queue_pair, PostHot<&QueuePair::PostSend>));
  object.Set("postReceive", BindHot(env, "postReceive", queue_pair, PostHot<&QueuePair::PostReceive>));
  return object;
}

Napi::Value QueuePairWrap::Modify(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue_pair = Open(env);
  auto modification = std::make_shared<Modification>();
  if (!queue_pair || !modification->Read(info)) return {};
  std::vector<Resource::Hold> holds;
  holds.emplace_back(queue_pair);
  return PromiseWorker::Run(
      env, "ibv_modify_qp", std::move(holds),
      [queue_pair, modification] {
        return queue_pair->Modify(&modification->attributes, modification->mask);
      },
      [queue_pair, modification](Napi::Env done_env) {
        modification->NoteIn(*queue_pair);
        return done_env.Undefined();
      });
}

Napi::Value QueuePairWrap::ModifySync(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue_pair = Open(env);
  Modification modification;
  if (!queue_pair || !modification.Read(info)) return {};
  if (int error = queue_pair->Modify(&modification.attributes, modification.mask)) {
    AddonData::Of(env).ThrowErrno(env, "ibv_modify_qp", error);
    return {};
  }
  modification.NoteIn(*queue_pair);
  return env.Undefined();
}

Napi::Value QueuePairWrap::Query(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue_pair = Open(env);
  if (!queue_pair) return {};
  ibv_qp_attr attributes = {};
  ibv_qp_init_attr init = {};
  if (int error = queue_pair->Query(&attributes, &init)) {
    AddonData::Of(env).ThrowErrno(env, "ibv_query_qp", error);
    return {};
  }
  queue_pair->NoteState(attributes.qp_state);
  auto words = Napi::Uint32Array::New(env, kQpAttributeWords);
  PackQpAttributes(attributes, words.Data());
  return words;
}

Napi::Value QueuePairWrap::State(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), native()->state());
}

Napi::Value CreateQueuePair(const Napi::CallbackInfo& info, std::shared_ptr<ProtectionDomain> domain) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  uint32_t type, descriptors;
  uint32_t* cap;
  bool signal_all;
  if (!arguments.Uint32(0, "type", &type)) return {};
  auto send_cq = CompletionQueueWrap::From(info, 1, "sendCq");
  if (!send_cq) return {};
  auto receive_cq = CompletionQueueWrap::From(info, 2, "recvCq");
  if (!receive_cq) return {};
  if (!arguments.Uint32Array(3, "cap", 5, &cap) || !arguments.Boolean(4, "sqSigAll", &signal_all) ||
      !arguments.Uint32(5, "descriptors", &descriptors)) {
    return {};
  }
  if (type != IBV_QPT_RC && type != IBV_QPT_UC) {
    addon.ThrowErrno(env, "ibv_create_qp", EOPNOTSUPP);
    return {};
  }
  // The library takes a queue of another device by its number alone, and then uses a stranger of its own.
  for (const auto& queue : {send_cq, receive_cq}) {
    if (queue->verbs()->context != domain->verbs()->context) {
      addon.ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                      "the completion queue belongs to another context than the protection domain");
      return {};
    }
  }
  ibv_qp_init_attr init = {};
  init.qp_type = static_cast<ibv_qp_type>(type);
  init.sq_sig_all = signal_all;
  init.cap = {cap[0], cap[1], cap[2], cap[3], cap[4]};
  int error = 0;
  auto queue_pair = QueuePair::Create(addon, std::move(domain), std::move(send_cq), std::move(receive_cq),
                                      &init, std::clamp(descriptors, 1u, 1u << 20), &error);
  if (!queue_pair) {
    addon.ThrowErrno(env, "ibv_create_qp", error);
    return {};
  }
  return QueuePairWrap::New(env, std::move(queue_pair));
}

}  // namespace node_rdma
