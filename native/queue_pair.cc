#include "queue_pair.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "address_handle.h"
#include "cm_id.h"
#include "domains.h"
#include "memory_window.h"
#include "queue_pair_attributes.h"
#include "queue_pair_extended.h"
#include "util/arguments.h"
#include "util/deny.h"
#include "util/promise_worker.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

const char* StateName(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state <= IBV_QPS_ERR ? kNames[state] : "UNKNOWN";
}

// What each type of queue pair may send; anything else is taken by ibv_post_send and breaks the connection
// later, or the process at once.
bool MaySend(ibv_qp_type type, uint8_t opcode) {
  if (type == IBV_QPT_RAW_PACKET) return opcode == IBV_WR_SEND;
  if (type == IBV_QPT_XRC_RECV) return false;
  const bool reliable = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_SEND_WITH_INV:
      return reliable;
    default:
      return false;
  }
}

bool IsAtomic(uint8_t opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

std::vector<std::shared_ptr<Resource>> ParentsIn(const QueuePair::Parts& parts) {
  std::vector<std::shared_ptr<Resource>> parents = {parts.domain, parts.send_cq, parts.receive_cq};
  if (parts.srq) parents.push_back(parts.srq);
  if (parts.cm_id) parents.push_back(parts.cm_id);
  if (parts.xrc_domain) parents.push_back(parts.xrc_domain);
  return parents;
}

constexpr uint32_t kPlainOpcodes = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_WRITE |
                                   1u << IBV_WR_RDMA_WRITE_WITH_IMM;

}  // namespace

QueuePair::QueuePair(AddonData& addon, Parts parts, ibv_qp* verbs, const ibv_qp_cap& cap)
    : Resource(addon.registry, ParentsIn(parts)),
      addon_(addon),
      parts_(std::move(parts)),
      verbs_(verbs),
      type_(verbs->qp_type),
      cap_(cap),
      plain_opcodes_(verbs->qp_type == IBV_QPT_RC || verbs->qp_type == IBV_QPT_UC ? kPlainOpcodes : 0) {}

std::shared_ptr<QueuePair> QueuePair::Create(AddonData& addon, Parts parts, ibv_qp_init_attr* init,
                                             const Extension* extension, uint32_t most_descriptors,
                                             int* error) {
  init->send_cq = parts.send_cq->verbs();
  init->recv_cq = parts.receive_cq->verbs();
  init->srq = parts.srq ? parts.srq->verbs() : nullptr;
  errno = 0;
  ibv_qp* verbs = nullptr;
  if (parts.cm_id) {
    rdma_cm_id* id = parts.cm_id->cm();
    if ((*error = ErrorOfMinusOne(rdma_create_qp(id, parts.domain->verbs(), init)))) return nullptr;
    verbs = id->qp;
  } else if (extension) {
    verbs = CreateExtended(parts, init, *extension);
  } else {
    verbs = ibv_create_qp(parts.domain->verbs(), init);
  }
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  std::shared_ptr<QueuePair> queue_pair(new QueuePair(addon, std::move(parts), verbs, init->cap));
  if (extension) queue_pair->send_operations_ = extension->send_operations;
  if ((*error = queue_pair->Prepare(most_descriptors))) {
    queue_pair->Close();
    queue_pair->OnClosed();
    return nullptr;
  }
  if (const auto& cm_id = queue_pair->parts_.cm_id) {
    // It is in INIT by now, or for datagrams in RTS.
    queue_pair->NoteQueried();
    cm_id->SetQueuePair(queue_pair);
  }
  return queue_pair;
}

int QueuePair::Prepare(uint32_t most_descriptors) {
  const QueueShape sends = {cap_.max_send_wr, std::max(cap_.max_send_sge, 1u), cap_.max_inline_data,
                            sizeof(SendDescriptor)};
  const uint32_t max_recv_wr = parts_.srq ? 0 : cap_.max_recv_wr;
  const QueueShape receives = {max_recv_wr, std::max(cap_.max_recv_sge, 1u), 0, sizeof(ReceiveDescriptor)};
  uint64_t size = 0;
  QueueLayout send_layout, receive_layout;
  if (!sends.Lay(most_descriptors, &size, &send_layout) ||
      !receives.Lay(most_descriptors, &size, &receive_layout)) {
    return ENOMEM;
  }
  int error = 0;
  memory_ = Memory::Allocate(size, 0, &error);
  if (!memory_) return error;
  ibv_pd* domain = parts_.domain->root();
  send_.emplace(addon_, domain, memory_, send_layout, sends);
  receive_.emplace(addon_, domain, memory_, receive_layout, receives);
  auto& send_requests = send_->requests().emplace(addon_, WorkQueue::Kind::kSend, this, parts_.send_cq.get(),
                                                  sends.max_wr, sends.max_sge, send_->counters());
  auto& receive_requests =
      receive_->requests().emplace(addon_, WorkQueue::Kind::kReceive, this, parts_.receive_cq.get(),
                                   receives.max_wr, receives.max_sge, receive_->counters());
  if (parts_.srq && !(joined_srq_ = parts_.srq->Join(parts_.receive_cq))) return EOVERFLOW;
  return send_requests.has_slot() && receive_requests.has_slot() ? 0 : ENOSPC;
}

void QueuePair::DestroyBefore(const std::shared_ptr<MemoryWindow>& window) {
  std::erase_if(bound_, [](const auto& other) {
    const auto alive = other.lock();
    return !alive || alive->closed();
  });
  bound_.push_back(window);
}

void QueuePair::DoNotDestroyBefore(const std::shared_ptr<MemoryWindow>& window) {
  std::erase_if(bound_, [&](const auto& other) { return other.lock() == window; });
}

int QueuePair::Destroy() {
  for (auto& bound : bound_) {
    if (auto window = bound.lock()) window->Close();
  }
  DetachAll();
  // In the error state the device finishes what it has begun; only then may the memory it worked on go.
  ibv_qp_attr error_state = {};
  error_state.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(verbs_, &error_state, IBV_QP_STATE);
  return parts_.cm_id ? DestroyOfConnectionManager() : ErrorOfResult(ibv_destroy_qp(verbs_));
}

// As rdma_destroy_qp, which would not tell of a failure; and the identifier forgets its queue pair before
// that is gone, since events that come meanwhile would use it.
int QueuePair::DestroyOfConnectionManager() {
  rdma_cm_id* id = parts_.cm_id->cm();
  parts_.cm_id->LeaveGroups();
  {
    std::lock_guard lock(addon_.cm_mutex);
    id->qp = nullptr;
  }
  const int error = ErrorOfResult(ibv_destroy_qp(verbs_));
  if (error != 0) {
    std::lock_guard lock(addon_.cm_mutex);
    id->qp = verbs_;
  }
  return error;
}

void QueuePair::OnClosed() {
  if (joined_srq_) parts_.srq->Part(parts_.receive_cq);
  joined_srq_ = false;
  for (auto* queue : {&send_, &receive_}) {
    if (!*queue || !(*queue)->requests()) continue;
    (*queue)->requests()->EndAll();
    (*queue)->requests().reset();
  }
}

template <bool kPlain>
[[gnu::always_inline]] inline bool QueuePair::TranslateSend(const SendDescriptor& d, uint32_t place,
                                                            WorkQueue::Request& noted, ibv_send_wr* request,
                                                            std::string* problem) {
  if (!kPlain && !MaySend(type(), d.opcode)) [[unlikely]] {
    return Deny(problem, "opcode ", d.opcode, " cannot be sent on a queue pair of this type");
  }
  const auto unknown = static_cast<uint8_t>(d.flags & ~(kPlainFlags | IBV_SEND_INLINE));
  if (!kPlain && unknown != 0) [[unlikely]] {
    return Deny(problem, "unknown send flags ", unknown);
  }
  const bool atomic = !kPlain && IsAtomic(d.opcode);
  const bool reads = atomic || (!kPlain && d.opcode == IBV_WR_RDMA_READ);
  const bool inlined = !kPlain && d.flags & IBV_SEND_INLINE;
  if (reads && inlined) [[unlikely]] {
    return Deny(problem, "a READ or an atomic cannot be inline: its bytes come from the other side");
  }
  if (reads && initiator_depth_ == 0) [[unlikely]] {
    return Deny(problem,
                "READ and atomics need maxRdAtomic of at least 1 on this queue pair; with 0 they would wait "
                "for ever");
  }
  uint64_t total = 0;
  const uint32_t count = kPlain ? 1 : d.sge_count;
  const SharedQueue::Elements wanted = {place, count, d.sge, /*device_writes=*/reads, inlined};
  if (!send_->Translate(wanted, noted, request->sg_list, &request->num_sge, &total, problem)) return false;
  if (inlined && total > cap_.max_inline_data) [[unlikely]] {
    return Deny(problem, total, " bytes inline, but maxInlineData is ", cap_.max_inline_data);
  }
  if (atomic && total != 8) [[unlikely]] {
    return Deny(problem, "an atomic needs exactly 8 bytes of local memory, not ", total);
  }
  request->opcode = static_cast<ibv_wr_opcode>(d.opcode);
  request->send_flags = d.flags;
  if (!kPlain && d.opcode == IBV_WR_SEND_WITH_INV) {
    request->invalidate_rkey = d.imm_data;
  } else {
    request->imm_data = htobe32(d.imm_data);
  }
  if (total > most_bytes_) [[unlikely]] {
    return Deny(problem, total, " bytes are more than the ", most_bytes_,
                type() == IBV_QPT_UD
                    ? " that a datagram carries on this port (its active MTU): it would be lost"
                    : " that a message may have on this port (maxMsgSz)");
  }
  if (!kPlain) {
    request->qp_type.xrc.remote_srqn = d.remote_srqn;
    return TranslateTarget(d, noted, request, problem);
  }
  request->wr.rdma = {d.remote_address, d.rkey};
  return true;
}

// Never inlined, and with a copy of its own: plain requests, by far the most, shall find the registers free.
[[gnu::noinline]] bool QueuePair::TranslateAt(uint32_t place, WorkQueue::Request& noted, ibv_send_wr* request,
                                              std::string* problem) {
  return TranslateSend<false>(send_->ReadSend(place), place, noted, request, problem);
}

bool QueuePair::TranslateAny(const SendDescriptor& d, uint32_t place, WorkQueue::Request& noted,
                             ibv_send_wr* request, std::string* problem) {
  return TranslateSend<false>(d, place, noted, request, problem);
}

bool QueuePair::TranslateTarget(const SendDescriptor& d, WorkQueue::Request& noted, ibv_send_wr* request,
                                std::string* problem) {
  if (type() == IBV_QPT_UD) {
    AddressHandle* handle = addon_.address_handles.Find(d.rkey);
    if (!handle || !handle->usable()) [[unlikely]] {
      return Deny(problem, "address handle ", d.rkey, " does not exist or is closed");
    }
    if (handle->domain() != parts_.domain->root()) [[unlikely]] {
      return Deny(problem, "the address handle belongs to another protection domain than the queue pair");
    }
    const auto remote_qpn = static_cast<uint32_t>(d.remote_address);
    if (remote_qpn > 0xffffff) [[unlikely]] {
      return Deny(problem, "the remote queue pair number ", remote_qpn, " has more than 24 bits");
    }
    send_->requests()->NameAddress(noted, *handle);
    request->wr.ud = {handle->verbs(), remote_qpn, static_cast<uint32_t>(d.remote_address >> 32)};
    return true;
  }
  if (IsAtomic(d.opcode)) {
    if (d.remote_address % 8 != 0) [[unlikely]] {
      return Deny(problem, "the remote address of an atomic must be a multiple of 8");
    }
    request->wr.atomic = {d.remote_address, d.compare_add, d.swap, d.rkey};
  } else {
    request->wr.rdma = {d.remote_address, d.rkey};
  }
  return true;
}

PostResult QueuePair::PostSend() {
  const ibv_qp_state state = posting_state_;
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_SQE && state != IBV_QPS_ERR) {
    return PostResult::Refused(
        addon_, kBadState,
        std::string("a queue pair in state ") + StateName(state) + " cannot send: it must be RTS");
  }
  PostResult result;
  const uint32_t count = send_->Fitting();
  if (count == 0) return result;
  auto& requests = addon_.send_requests;
  auto& elements = addon_.elements;
  const size_t most = send_->shape().max_sge;
  if (requests.size() < count) requests.resize(count);
  if (elements.size() < count * most) elements.resize(count * most);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = send_->Place(i);
    const auto descriptor = send_->ReadSend(place);
    ibv_send_wr& request = requests[i];
    request.sg_list = &elements[i * most];
    auto& noted = send_->requests()->Prepare(
        i, static_cast<uint64_t>(descriptor.id_high) << 32 | descriptor.id, &request.wr_id);
    const bool passed = IsPlain(descriptor)
                            ? TranslateSend<true>(descriptor, place, noted, &request, &addon_.problem)
                            : TranslateAt(place, noted, &request, &addon_.problem);
    if (!passed) [[unlikely]] {
      return send_->Refuse(i + 1);
    }
    request.next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  result.error = ErrorOfResult(ibv_post_send(verbs_, requests.data(), &bad));
  result.posted = result.error == 0 ? count : static_cast<uint32_t>(bad ? bad - requests.data() : 0);
  send_->requests()->Commit(result.posted, count);
  return result;
}

PostResult QueuePair::PostReceive() {
  if (parts_.srq) {
    return PostResult::Refused(addon_, kBadState,
                               "this queue pair takes its receives from a shared receive queue: post there");
  }
  const ibv_qp_state state = posting_state_;
  if (state == IBV_QPS_RESET || state == IBV_QPS_ERR) {
    return PostResult::Refused(addon_, kBadState,
                               std::string("a queue pair in state ") + StateName(state) +
                                   " takes no receive requests: " +
                                   (state == IBV_QPS_ERR ? "they might never end" : "bring it to INIT"));
  }
  const uint64_t least = type() == IBV_QPT_UD ? sizeof(ibv_grh) : 0;
  return receive_->PostReceives(least, [this](ibv_recv_wr* requests, ibv_recv_wr** bad) {
    return ibv_post_recv(verbs_, requests, bad);
  });
}

void QueuePair::NoteModified(const ibv_qp_attr& attributes, int mask) {
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) initiator_depth_ = attributes.max_rd_atomic;
  if (mask & IBV_QP_STATE) NoteState(attributes.qp_state);
  if (mask & IBV_QP_STATE && state_ == IBV_QPS_RESET) {
    // Binds that were under way may be lost: whether these windows are bound is not known any more.
    for (auto& bound : bound_) {
      if (auto window = bound.lock(); window && window->bound_on().get() == this) window->NoteFree();
    }
  }
  ibv_port_attr port = {};
  if (mask & IBV_QP_PORT && ibv_query_port(verbs_->context, attributes.port_num, &port) == 0) {
    most_bytes_ = type() == IBV_QPT_UD ? 128ull << port.active_mtu : port.max_msg_sz;
  }
}

void QueuePair::NoteState(ibv_qp_state state) {
  if (state == IBV_QPS_RESET && state_ != IBV_QPS_RESET) {
    for (auto* queue : {&send_, &receive_}) (*queue)->requests()->BeginAnew();
  }
  state_ = posting_state_ = state;
}

void QueuePair::NoteQueried() {
  ibv_qp_attr attributes = {};
  ibv_qp_init_attr init = {};
  if (Query(&attributes, &init) != 0) return;
  NoteModified(attributes, kQueried);
}

void QueuePair::NoteFailure(bool of_send) {
  if (type() != IBV_QPT_UD) {
    state_ = IBV_QPS_ERR;
  } else if (of_send && state_ == IBV_QPS_RTS) {
    state_ = IBV_QPS_SQE;
  }
  if (posting_state_ != IBV_QPS_RESET) Stays();
}

int QueuePair::Modify(ibv_qp_attr* attributes, int mask) const {
  return ErrorOfResult(ibv_modify_qp(verbs_, attributes, mask));
}

int QueuePair::Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const {
  constexpr int kEverything = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_CAP | IBV_QP_AV | IBV_QP_ALT_PATH;
  return ErrorOfResult(ibv_query_qp(verbs_, attributes, kEverything, init));
}

namespace {

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

  bool Stops() const {
    return mask & IBV_QP_STATE &&
           (attributes.qp_state == IBV_QPS_RESET || attributes.qp_state == IBV_QPS_ERR);
  }

  void NoteIn(QueuePair& queue_pair) const { queue_pair.NoteModified(attributes, mask); }
};

}  // namespace

void QueuePairWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("modify", &QueuePairWrap::Modify),
                        InstanceMethod("modifySync", &QueuePairWrap::ModifySync),
                        InstanceMethod("query", &QueuePairWrap::Query),
                        InstanceAccessor("state", &QueuePairWrap::State, nullptr),
                    });
}

Napi::Object QueuePairWrap::New(Napi::Env env, const std::shared_ptr<QueuePair>& queue_pair) {
  Napi::Object object = Wrap::New(env, queue_pair);
  if (env.IsExceptionPending()) return {};
  Napi::ArrayBuffer memory = Memory::ToArrayBuffer(env, queue_pair->memory());
  if (env.IsExceptionPending()) return {};
  const ibv_qp_cap& cap = queue_pair->cap();
  object.Set("qpNum", queue_pair->verbs()->qp_num);
  object.Set("handle", queue_pair->verbs()->handle);
  object.Set("maxInlineData", cap.max_inline_data);
  object.Set("memory", memory);
  object.Set("sendQueue", queue_pair->send_queue().ToObject(env));
  object.Set("receiveQueue", queue_pair->receive_queue().ToObject(env));
  object.Set("postSend", BindHot(env, "postSend", queue_pair, PostHot<QueuePair, &QueuePair::PostSend>));
  object.Set("postExtended",
             BindHot(env, "postExtended", queue_pair, PostHot<QueuePair, &QueuePair::PostExtended>));
  object.Set("postReceive",
             BindHot(env, "postReceive", queue_pair, PostHot<QueuePair, &QueuePair::PostReceive>));
  return object;
}

Napi::Value QueuePairWrap::Modify(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue_pair = Open(env);
  auto modification = std::make_shared<Modification>();
  if (!queue_pair || !modification->Read(info)) return {};
  std::vector<Resource::Hold> holds;
  holds.emplace_back(queue_pair);
  if (modification->Stops()) queue_pair->GoingTo(modification->attributes.qp_state);
  return PromiseWorker::Run(
      env, "ibv_modify_qp", std::move(holds),
      [queue_pair, modification] {
        return queue_pair->Modify(&modification->attributes, modification->mask);
      },
      [queue_pair, modification](Napi::Env done_env) {
        modification->NoteIn(*queue_pair);
        return done_env.Undefined();
      },
      [queue_pair] {
        queue_pair->Stays();
        queue_pair->NoteQueried();
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
  queue_pair->NoteModified(attributes, QueuePair::kQueried);
  auto words = Napi::Uint32Array::New(env, kQpAttributeWords);
  PackQpAttributes(attributes, words.Data());
  return words;
}

Napi::Value QueuePairWrap::State(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), native()->state());
}

Napi::Value CreateQueuePair(const Napi::CallbackInfo& info, std::shared_ptr<ProtectionDomain> domain,
                            size_t first, std::shared_ptr<CmId> cm_id) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  uint32_t type, descriptors;
  uint32_t* cap;
  bool signal_all;
  QueuePair::Parts parts;
  parts.domain = std::move(domain);
  parts.cm_id = std::move(cm_id);
  const char* syscall = parts.cm_id ? "rdma_create_qp" : "ibv_create_qp";
  if (!info[first + 7].IsUndefined()) syscall = "ibv_create_qp_ex";
  if (!arguments.Uint32(first, "type", &type)) return {};
  if (!(parts.send_cq = CompletionQueueWrap::From(info, first + 1, "sendCq"))) return {};
  if (!(parts.receive_cq = CompletionQueueWrap::From(info, first + 2, "recvCq"))) return {};
  if (!info[first + 3].IsUndefined() && !(parts.srq = SharedReceiveQueueWrap::From(info, first + 3, "srq"))) {
    return {};
  }
  if (!arguments.Uint32Array(first + 4, "cap", 5, &cap) ||
      !arguments.Boolean(first + 5, "sqSigAll", &signal_all) ||
      !arguments.Uint32(first + 6, "descriptors", &descriptors)) {
    return {};
  }
  std::optional<QueuePair::Extension> extension;
  if (!ReadExtension(info, first + 7, &extension, &parts.xrc_domain)) return {};
  if (extension && parts.cm_id) {
    addon.ThrowErrno(env, "rdma_create_qp_ex", EOPNOTSUPP);
    return {};
  }
  if (type < IBV_QPT_RC || (type > IBV_QPT_UD && (type < IBV_QPT_RAW_PACKET || type > IBV_QPT_XRC_RECV))) {
    addon.ThrowErrno(env, syscall, EOPNOTSUPP);
    return {};
  }
  // The library takes an object of another device by its number alone, and then uses a stranger of its own.
  const ibv_context* context = parts.domain->verbs()->context;
  if (parts.send_cq->verbs()->context != context || parts.receive_cq->verbs()->context != context ||
      (parts.srq && parts.srq->verbs()->context != context) ||
      (parts.xrc_domain && parts.xrc_domain->verbs()->context != context) ||
      (parts.cm_id && parts.cm_id->cm()->verbs != context)) {
    addon.ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                    "a completion queue, shared receive queue or identifier belongs to another context than "
                    "the protection "
                    "domain");
    return {};
  }
  ibv_qp_init_attr init = {};
  init.qp_type = static_cast<ibv_qp_type>(type);
  init.sq_sig_all = signal_all;
  init.cap = {cap[0], cap[1], cap[2], cap[3], cap[4]};
  int error = 0;
  auto queue_pair = QueuePair::Create(addon, std::move(parts), &init, extension ? &*extension : nullptr,
                                      std::clamp(descriptors, 1u, 1u << 20), &error);
  if (error == EOVERFLOW) {
    addon.ThrowCode(
        env, "ERR_RDMA_LIMIT",
        "the completion queue for receives has no room for all receives of the shared receive queue, any of "
        "which may complete there: create it with a larger cqe");
    return {};
  }
  if (!queue_pair) {
    addon.ThrowErrno(env, syscall, error);
    return {};
  }
  return QueuePairWrap::New(env, queue_pair);
}

}  // namespace node_rdma
