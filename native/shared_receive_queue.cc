#include "shared_receive_queue.h"

#include <algorithm>

#include "domains.h"
#include "util/arguments.h"
#include "util/resize.h"

namespace node_rdma {

std::shared_ptr<SharedReceiveQueue> SharedReceiveQueue::Create(
    AddonData& addon, std::vector<std::shared_ptr<Resource>> parents,
    const std::shared_ptr<ProtectionDomain>& domain, ibv_srq_init_attr_ex* init, uint32_t most_descriptors,
    int* error) {
  init->pd = domain->verbs();
  errno = 0;
  ibv_srq* verbs = ibv_create_srq_ex(domain->verbs()->context, init);
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  std::shared_ptr<SharedReceiveQueue> queue(
      new SharedReceiveQueue(addon, std::move(parents), domain->root(), verbs));
  // A tag has a receive, and each operation on it may complete.
  const uint32_t tag_operations = init->tm_cap.max_num_tags + init->tm_cap.max_ops;
  if ((*error = queue->Prepare(init->attr, tag_operations, most_descriptors))) return nullptr;
  return queue;
}

int SharedReceiveQueue::Prepare(const ibv_srq_attr& attributes, uint32_t tag_operations,
                                uint32_t most_descriptors) {
  const QueueShape shape = {attributes.max_wr + tag_operations, std::max(attributes.max_sge, 1u), 0,
                            sizeof(ReceiveDescriptor)};
  uint64_t size = 0;
  QueueLayout layout;
  if (!shape.Lay(most_descriptors, &size, &layout)) return ENOMEM;
  int error = 0;
  memory_ = Memory::Allocate(size, 0, &error);
  if (!memory_) return error;
  queue_.emplace(addon_, domain_, memory_, layout, shape);
  auto& requests = queue_->requests().emplace(addon_, WorkQueue::Kind::kSharedReceive, nullptr, nullptr,
                                              shape.max_wr, shape.max_sge, queue_->counters());
  capacity_ = shape.max_wr;
  return requests.has_slot() ? 0 : ENOSPC;
}

int SharedReceiveQueue::Destroy() { return ErrorOfResult(ibv_destroy_srq(verbs_)); }

bool SharedReceiveQueue::CompleteIn(const std::shared_ptr<CompletionQueue>& completions) {
  if (!Join(completions)) return false;
  completions_ = completions;
  return true;
}

void SharedReceiveQueue::OnClosed() {
  if (completions_) Part(std::exchange(completions_, nullptr));
  if (!queue_ || !queue_->requests()) return;
  queue_->requests()->EndAll();
  queue_->requests().reset();
}

PostResult SharedReceiveQueue::PostReceive() {
  return queue_->PostReceives(/*least=*/0, [this](ibv_recv_wr* requests, ibv_recv_wr** bad) {
    return ibv_post_srq_recv(verbs_, requests, bad);
  });
}

bool SharedReceiveQueue::Join(const std::shared_ptr<CompletionQueue>& completions) {
  auto [entry, first] = joined_.try_emplace(completions, 0);
  if (first) {
    if (completions->room() < reserved()) {
      joined_.erase(entry);
      return false;
    }
    completions->Reserve(reserved());
  }
  ++entry->second;
  return true;
}

void SharedReceiveQueue::Part(const std::shared_ptr<CompletionQueue>& completions) {
  auto entry = joined_.find(completions);
  if (entry == joined_.end() || --entry->second > 0) return;
  joined_.erase(entry);
  // What the last of the queue pairs has left in the completion queue takes room until it is polled.
  completions->Abandon(reserved());
}

int SharedReceiveQueue::BeginResize(uint32_t max_wr) {
  WorkQueue& requests = *queue_->requests();
  if (max_wr == 0) return EINVAL;
  if (resizing_to_ != 0 || max_wr < requests.outstanding()) return EBUSY;
  const uint32_t more = max_wr > capacity_ ? max_wr - capacity_ : 0;
  for (auto& [completions, count] : joined_) {
    if (completions->room() < more) return EOVERFLOW;
  }
  for (auto& [completions, count] : joined_) completions->Reserve(more);
  resizing_to_ = max_wr;
  // Meanwhile no more may be posted than either size has room for.
  requests.SetCapacity(std::min(capacity_, max_wr));
  return 0;
}

int SharedReceiveQueue::Resize(uint32_t max_wr) {
  ibv_srq_attr attributes = {};
  attributes.max_wr = max_wr;
  return ErrorOfResult(ibv_modify_srq(verbs_, &attributes, IBV_SRQ_MAX_WR));
}

void SharedReceiveQueue::EndResize(bool done) {
  const uint32_t before = reserved();
  if (done) capacity_ = resizing_to_;
  resizing_to_ = 0;
  queue_->requests()->SetCapacity(capacity_);
  for (auto& [completions, count] : joined_) completions->Release(before - capacity_);
}

void SharedReceiveQueueWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("modify", &SharedReceiveQueueWrap::Modify),
                        InstanceMethod("resize", &SharedReceiveQueueWrap::Resize),
                        InstanceMethod("resizeSync", &SharedReceiveQueueWrap::ResizeSync),
                        InstanceMethod("query", &SharedReceiveQueueWrap::Query),
                    });
}

Napi::Object SharedReceiveQueueWrap::New(Napi::Env env, const std::shared_ptr<SharedReceiveQueue>& queue) {
  Napi::Object object = Wrap::New(env, queue);
  if (env.IsExceptionPending()) return {};
  Napi::ArrayBuffer memory = Memory::ToArrayBuffer(env, queue->memory());
  if (env.IsExceptionPending()) return {};
  object.Set("handle", queue->verbs()->handle);
  object.Set("memory", memory);
  object.Set("receiveQueue", queue->queue().ToObject(env));
  object.Set("postReceive", BindHot(env, "postReceive", queue,
                                    PostHot<SharedReceiveQueue, &SharedReceiveQueue::PostReceive>));
  return object;
}

Napi::Value SharedReceiveQueueWrap::Modify(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t limit;
  if (!arguments.Uint32(0, "srqLimit", &limit)) return {};
  auto queue = Open(env);
  if (!queue) return {};
  ibv_srq_attr attributes = {};
  attributes.srq_limit = limit;
  if (int error = ErrorOfResult(ibv_modify_srq(queue->verbs(), &attributes, IBV_SRQ_LIMIT))) {
    AddonData::Of(env).ThrowErrno(env, "ibv_modify_srq", error);
  }
  return env.Undefined();
}

Napi::Value SharedReceiveQueueWrap::Resize(const Napi::CallbackInfo& info) {
  return ResizeQueue(info, Open(info.Env()), "ibv_modify_srq", /*sync=*/false);
}

Napi::Value SharedReceiveQueueWrap::ResizeSync(const Napi::CallbackInfo& info) {
  return ResizeQueue(info, Open(info.Env()), "ibv_modify_srq", /*sync=*/true);
}

Napi::Value SharedReceiveQueueWrap::Query(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue = Open(env);
  if (!queue) return {};
  ibv_srq_attr attributes = {};
  if (int error = ErrorOfResult(ibv_query_srq(queue->verbs(), &attributes))) {
    AddonData::Of(env).ThrowErrno(env, "ibv_query_srq", error);
    return {};
  }
  Napi::Object o = Napi::Object::New(env);
  o.Set("maxWr", attributes.max_wr);
  o.Set("maxSge", attributes.max_sge);
  o.Set("srqLimit", attributes.srq_limit);
  return o;
}

Napi::Value CreateSharedReceiveQueue(const Napi::CallbackInfo& info,
                                     const std::shared_ptr<ProtectionDomain>& domain) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  uint32_t max_wr, max_sge, limit, descriptors;
  if (!arguments.Uint32(0, "maxWr", &max_wr) || !arguments.Uint32(1, "maxSge", &max_sge) ||
      !arguments.Uint32(2, "srqLimit", &limit) || !arguments.Uint32(3, "descriptors", &descriptors)) {
    return {};
  }
  ibv_srq_init_attr_ex init = {};
  init.attr = {max_wr, max_sge, limit};
  init.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  std::vector<std::shared_ptr<Resource>> parents = {domain};
  std::shared_ptr<CompletionQueue> completions;
  const char* syscall = "ibv_create_srq";
  if (!info[4].IsUndefined()) {
    syscall = "ibv_create_srq_ex";
    uint32_t type;
    if (!arguments.Uint32(4, "type", &type) ||
        !arguments.Uint32(7, "maxNumTags", &init.tm_cap.max_num_tags) ||
        !arguments.Uint32(8, "maxOps", &init.tm_cap.max_ops)) {
      return {};
    }
    completions = CompletionQueueWrap::From(info, 6, "cq");
    if (!completions) return {};
    init.srq_type = static_cast<ibv_srq_type>(type);
    init.cq = completions->verbs();
    init.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ;
    parents.push_back(completions);
    if (type == IBV_SRQT_TM) init.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
    if (!info[5].IsUndefined()) {
      auto xrc_domain = XrcDomainWrap::From(info, 5, "xrcd");
      if (!xrc_domain) return {};
      init.xrcd = xrc_domain->verbs();
      init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
      parents.push_back(xrc_domain);
    }
    const ibv_context* context = domain->verbs()->context;
    if (init.cq->context != context || (init.xrcd && init.xrcd->context != context)) {
      addon.ThrowCode(
          env, "ERR_RDMA_FOREIGN_OBJECT",
          "the completion queue or XRC domain belongs to another context than the protection domain");
      return {};
    }
  }
  int error = 0;
  auto queue = SharedReceiveQueue::Create(addon, std::move(parents), domain, &init,
                                          std::clamp(descriptors, 1u, 1u << 20), &error);
  if (!queue) {
    addon.ThrowErrno(env, syscall, error);
    return {};
  }
  if (completions && !queue->CompleteIn(completions)) {
    queue->Close();
    queue->OnClosed();
    addon.ThrowCode(
        env, "ERR_RDMA_LIMIT",
        "the completion queue has no room for all receives of the shared receive queue: create it with a "
        "larger cqe");
    return {};
  }
  return SharedReceiveQueueWrap::New(env, queue);
}

}  // namespace node_rdma
