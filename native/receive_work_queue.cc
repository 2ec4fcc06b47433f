#include "receive_work_queue.h"

#include <algorithm>
#include <utility>

#include "queue_pair_attributes.h"
#include "util/arguments.h"

namespace node_rdma {

std::shared_ptr<ReceiveWorkQueue> ReceiveWorkQueue::Create(
    AddonData& addon, const std::shared_ptr<ProtectionDomain>& domain,
    const std::shared_ptr<CompletionQueue>& completions, ibv_wq_init_attr* init, uint32_t most_descriptors,
    int* error) {
  init->wq_type = IBV_WQT_RQ;
  init->pd = domain->verbs();
  init->cq = completions->verbs();
  errno = 0;
  ibv_wq* verbs = ibv_create_wq(domain->verbs()->context, init);
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  std::shared_ptr<ReceiveWorkQueue> queue(new ReceiveWorkQueue(addon, domain, completions, verbs));
  const QueueShape shape = {init->max_wr, std::max(init->max_sge, 1u), 0, sizeof(ReceiveDescriptor)};
  uint64_t size = 0;
  QueueLayout layout;
  if (!shape.Lay(most_descriptors, &size, &layout)) {
    *error = ENOMEM;
    return nullptr;
  }
  queue->memory_ = Memory::Allocate(size, 0, error);
  if (!queue->memory_) return nullptr;
  queue->queue_.emplace(addon, domain->root(), queue->memory_, layout, shape);
  auto& requests =
      queue->queue_->requests().emplace(addon, WorkQueue::Kind::kReceive, nullptr, completions.get(),
                                        shape.max_wr, shape.max_sge, queue->queue_->counters());
  if (requests.has_slot()) return queue;
  *error = ENOSPC;
  queue->Close();
  queue->OnClosed();
  return nullptr;
}

void ReceiveWorkQueue::OnClosed() {
  if (!queue_ || !queue_->requests()) return;
  queue_->requests()->EndAll();
  queue_->requests().reset();
}

PostResult ReceiveWorkQueue::PostReceive() {
  if (verbs_->state != IBV_WQS_RDY) {
    return PostResult::Refused(addon_, kBadState,
                               "a work queue takes receives in the state ready only: modify() it");
  }
  return queue_->PostReceives(0, [this](ibv_recv_wr* requests, ibv_recv_wr** bad) {
    return ibv_post_wq_recv(verbs_, requests, bad);
  });
}

namespace {

Napi::Value CreateWq(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  ibv_wq_init_attr init = {};
  uint32_t descriptors;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain) return {};
  auto completions = CompletionQueueWrap::From(info, 1, "cq");
  if (!completions || !arguments.Uint32(2, "maxWr", &init.max_wr) ||
      !arguments.Uint32(3, "maxSge", &init.max_sge) || !arguments.Uint32(4, "flags", &init.create_flags) ||
      !arguments.Uint32(5, "descriptors", &descriptors)) {
    return {};
  }
  if (init.create_flags) init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
  if (completions->verbs()->context != domain->verbs()->context) {
    AddonData::Of(env).ThrowCode(
        env, "ERR_RDMA_FOREIGN_OBJECT",
        "the completion queue belongs to another context than the protection domain");
    return {};
  }
  int error = 0;
  auto queue = ReceiveWorkQueue::Create(AddonData::Of(env), domain, completions, &init,
                                        std::clamp(descriptors, 1u, 1u << 20), &error);
  if (!queue) return Undefined(env, "ibv_create_wq", error);
  return ReceiveWorkQueueWrap::New(env, queue);
}

Napi::Value CreateRwqIndTable(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  ibv_rwq_ind_table_init_attr init = {};
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint32(1, "logSize", &init.log_ind_tbl_size)) return {};
  std::vector<ibv_wq*> queues;
  std::vector<std::shared_ptr<Resource>> parents = {context};
  for (size_t i = 2; i < info.Length(); ++i) {
    auto queue = ReceiveWorkQueueWrap::From(info, i, "wq");
    if (!queue) return {};
    if (queue->verbs()->context != context->verbs()) {
      AddonData::Of(env).ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT", "a work queue belongs to another context");
      return {};
    }
    queues.push_back(queue->verbs());
    parents.push_back(queue);
  }
  if (init.log_ind_tbl_size > 16 || queues.size() != 1u << init.log_ind_tbl_size) {
    return Undefined(env, "ibv_create_rwq_ind_table", EINVAL);
  }
  init.ind_tbl = queues.data();
  errno = 0;
  ibv_rwq_ind_table* verbs = ibv_create_rwq_ind_table(context->verbs(), &init);
  return NewPlain<IndirectionTableWrap, IndirectionTable>(env, "ibv_create_rwq_ind_table", std::move(parents),
                                                          verbs);
}

Napi::Value CreateRssQp(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t type, function, flags;
  uint64_t fields;
  Napi::Object view;
  void* key;
  size_t key_length;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain) return {};
  auto table = IndirectionTableWrap::From(info, 1, "table");
  if (!table || !arguments.Uint32(2, "type", &type) || !arguments.Uint32(3, "function", &function) ||
      !arguments.View(4, "key", &view, &key, &key_length) || !arguments.Uint64(5, "fields", &fields) ||
      !arguments.Uint32(6, "flags", &flags)) {
    return {};
  }
  if (table->verbs()->context != domain->verbs()->context) {
    AddonData::Of(env).ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                                 "the indirection table belongs to another context");
    return {};
  }
  if (key_length > UINT8_MAX) return Undefined(env, "ibv_create_qp_ex", EINVAL);
  ibv_qp_init_attr_ex init = {};
  init.qp_type = static_cast<ibv_qp_type>(type);
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  init.pd = domain->verbs();
  init.rwq_ind_tbl = table->verbs();
  init.rx_hash_conf = {static_cast<uint8_t>(function), static_cast<uint8_t>(key_length),
                       static_cast<uint8_t*>(key), fields};
  if (flags) {
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = flags;
  }
  errno = 0;
  ibv_qp* verbs = ibv_create_qp_ex(domain->verbs()->context, &init);
  Napi::Object object =
      NewPlain<RssQueuePairWrap, RssQueuePair>(env, "ibv_create_qp_ex", {domain, table}, verbs);
  if (!env.IsExceptionPending()) object.Set("qpNum", verbs->qp_num);
  return object;
}

}  // namespace

void ReceiveWorkQueueWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {InstanceMethod("modify", &ReceiveWorkQueueWrap::Modify),
                     InstanceAccessor("state", &ReceiveWorkQueueWrap::State, nullptr)});
  exports.Set("createWq", Napi::Function::New<CreateWq>(env, "createWq"));
}

Napi::Object ReceiveWorkQueueWrap::New(Napi::Env env, const std::shared_ptr<ReceiveWorkQueue>& queue) {
  Napi::Object object = Wrap::New(env, queue);
  if (env.IsExceptionPending()) return {};
  Napi::ArrayBuffer memory = Memory::ToArrayBuffer(env, queue->memory());
  if (env.IsExceptionPending()) return {};
  object.Set("wqNum", queue->verbs()->wq_num);
  object.Set("handle", queue->verbs()->handle);
  object.Set("memory", memory);
  object.Set("receiveQueue", queue->queue().ToObject(env));
  object.Set("postReceive",
             BindHot(env, "postReceive", queue, PostHot<ReceiveWorkQueue, &ReceiveWorkQueue::PostReceive>));
  return object;
}

Napi::Value ReceiveWorkQueueWrap::Modify(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t words[5];
  for (size_t i = 0; i < 5; ++i) {
    if (!arguments.Uint32(i, "attribute", &words[i])) return {};
  }
  auto queue = Open(info.Env());
  if (!queue) return {};
  ibv_wq_attr attributes = {words[0], static_cast<ibv_wq_state>(words[1]),
                            static_cast<ibv_wq_state>(words[2]), words[3], words[4]};
  errno = 0;
  return Undefined(info.Env(), "ibv_modify_wq", ErrorOfResult(ibv_modify_wq(queue->verbs(), &attributes)));
}

Napi::Value ReceiveWorkQueueWrap::State(const Napi::CallbackInfo& info) {
  auto queue = Open(info.Env());
  if (!queue) return {};
  return Napi::Number::New(info.Env(), queue->verbs()->state);
}

void IndirectionTableWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {});
  exports.Set("createRwqIndTable", Napi::Function::New<CreateRwqIndTable>(env, "createRwqIndTable"));
}

void RssQueuePairWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {InstanceMethod("modify", &RssQueuePairWrap::Modify)});
  exports.Set("createRssQp", Napi::Function::New<CreateRssQp>(env, "createRssQp"));
}

Napi::Value RssQueuePairWrap::Modify(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t mask;
  uint32_t* words;
  if (!arguments.Uint32(0, "mask", &mask) ||
      !arguments.Uint32Array(1, "attributes", kQpAttributeWords, &words)) {
    return {};
  }
  auto queue_pair = Open(info.Env());
  if (!queue_pair) return {};
  ibv_qp_attr attributes = {};
  UnpackQpAttributes(words, &attributes);
  errno = 0;
  return Undefined(info.Env(), "ibv_modify_qp",
                   ErrorOfResult(ibv_modify_qp(queue_pair->verbs(), &attributes, static_cast<int>(mask))));
}

}  // namespace node_rdma
