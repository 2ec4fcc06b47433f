#include "memory_window.h"

#include "memory_region.h"
#include "util/arguments.h"

namespace node_rdma {

void MemoryWindow::NoteBound(const std::shared_ptr<QueuePair>& queue_pair, uint32_t rkey) {
  NoteFree();
  verbs()->rkey = rkey;
  bound_on_ = queue_pair;
  auto self = std::static_pointer_cast<MemoryWindow>(shared_from_this());
  addon_.bound_windows[{verbs()->context, rkey}] = self;
  // A window that is invalidated stays with its queue pair until it is bound elsewhere: the request may be
  // under way.
  if (auto before = last_bound_on_.lock()) before->DoNotDestroyBefore(self);
  last_bound_on_ = queue_pair;
  queue_pair->DestroyBefore(self);
}

void MemoryWindow::NoteFree() {
  if (!closed()) addon_.bound_windows.erase({verbs()->context, verbs()->rkey});
  bound_on_.reset();
}

void MemoryWindow::NoteInvalidated(AddonData& addon, ibv_context* context, uint32_t rkey) {
  auto found = addon.bound_windows.find({context, rkey});
  if (found == addon.bound_windows.end()) return;
  if (auto window = found->second.lock(); window && !window->closed()) {
    window->NoteFree();
  } else {
    addon.bound_windows.erase(found);
  }
}

namespace {

Napi::Value AllocMw(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t type;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain || !arguments.Uint32(1, "type", &type)) return {};
  AddonData& addon = AddonData::Of(env);
  errno = 0;
  ibv_mw* verbs = ibv_alloc_mw(domain->verbs(), static_cast<ibv_mw_type>(type));
  if (int error = ErrorOfPointer(verbs)) {
    addon.ThrowErrno(env, "ibv_alloc_mw", error);
    return {};
  }
  return MemoryWindowWrap::New(env, std::make_shared<MemoryWindow>(addon, domain, verbs));
}

// A request about a window on the send queue of a queue pair: what bindMw() and invalidateMw() have in
// common.
struct WindowRequest {
  std::shared_ptr<MemoryWindow> window;
  std::shared_ptr<QueuePair> queue_pair;
  uint64_t id = 0;
  uint32_t flags = 0;

  bool Read(const Napi::CallbackInfo& info, size_t id_at) {
    Arguments arguments(info);
    window = MemoryWindowWrap::From(info, 0, "mw");
    if (!window || !(queue_pair = QueuePairWrap::From(info, 1, "qp"))) return false;
    if (!arguments.Uint64(id_at, "wrId", &id) || !arguments.Uint32(id_at + 1, "flags", &flags)) return false;
    Napi::Env env = info.Env();
    AddonData& addon = AddonData::Of(env);
    if (window->domain()->root() != queue_pair->domain()->root()) {
      addon.ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                      "the memory window belongs to another protection domain than the queue pair");
      return false;
    }
    if (queue_pair->state() != IBV_QPS_RTS) {
      addon.ThrowCode(env, kBadState, "a window is bound and invalidated on a queue pair in RTS only");
      return false;
    }
    if (queue_pair->sends().requests()->free() == 0) {
      addon.ThrowCode(env, "ERR_RDMA_QUEUE_FULL",
                      "the send queue, or its completion queue, has no room: poll completions first");
      return false;
    }
    return true;
  }

  // Posts it by `post`, which gets its wr_id and returns 0 or a positive errno, and keeps `region` for as
  // long as it is under way.
  template <class Post>
  int Run(const std::shared_ptr<MemoryRegion>& region, Post post) {
    WorkQueue& requests = *queue_pair->sends().requests();
    uint64_t wr_id;
    auto& noted = requests.Prepare(0, id, &wr_id);
    if (region) requests.Name(noted, *region);
    const int error = post(wr_id);
    requests.Commit(error == 0 ? 1 : 0, 1);
    return error;
  }

  // By ibv_wr_*, where the queue pair was created for that.
  int Send(const std::shared_ptr<MemoryRegion>& region, ibv_send_wr* request) {
    const bool binds = request->opcode == IBV_WR_BIND_MW;
    ibv_qp_ex* extended = queue_pair->ForOperation(binds ? IBV_QP_EX_WITH_BIND_MW : IBV_QP_EX_WITH_LOCAL_INV);
    return Run(region, [&](uint64_t wr_id) {
      if (extended) {
        ibv_wr_start(extended);
        extended->wr_id = wr_id;
        extended->wr_flags = flags;
        if (binds) {
          ibv_wr_bind_mw(extended, request->bind_mw.mw, request->bind_mw.rkey, &request->bind_mw.bind_info);
        } else {
          ibv_wr_local_inv(extended, request->invalidate_rkey);
        }
        return ErrorOfResult(ibv_wr_complete(extended));
      }
      request->wr_id = wr_id;
      request->send_flags = flags;
      ibv_send_wr* bad = nullptr;
      return ErrorOfResult(ibv_post_send(queue_pair->verbs(), request, &bad));
    });
  }
};

Napi::Value BindMw(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  WindowRequest request;
  uint64_t offset, length;
  uint32_t access;
  // Never without a region: the provider of rxe would look at it all the same.
  auto region = MemoryRegionWrap::From(info, 2, "mr");
  if (!region || !arguments.Uint64(3, "offset", &offset) || !arguments.Uint64(4, "length", &length) ||
      !arguments.Uint32(5, "access", &access) || !request.Read(info, 6)) {
    return {};
  }
  MemoryWindow& window = *request.window;
  if (region->domain() != window.domain()->root()) {
    addon.ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                    "the memory region belongs to another protection domain than the window");
    return {};
  }
  // A bind of no bytes closes a window of type 1.
  if (offset > region->length() || length > region->length() - offset || (length == 0 && window.type_2())) {
    addon.ThrowCode(env, kBadDescriptor,
                    "the window must have at least one byte, and lie within its memory region");
    return {};
  }
  const ibv_mw_bind_info range = {region->verbs(), region->iova() + offset, length, access};
  if (window.type_2() && window.bound_on()) {
    addon.ThrowCode(env, kBadState, "the window is bound: invalidate it first");
    return {};
  }
  int error;
  if (window.type_2()) {
    const uint32_t rkey = ibv_inc_rkey(window.verbs()->rkey);
    ibv_send_wr send = {};
    send.opcode = IBV_WR_BIND_MW;
    send.bind_mw = {window.verbs(), rkey, range};
    error = request.Send(region, &send);
    if (error == 0) window.NoteBound(request.queue_pair, rkey);
  } else {
    error = request.Run(region, [&](uint64_t wr_id) {
      ibv_mw_bind bind = {wr_id, request.flags, range};
      return ErrorOfResult(ibv_bind_mw(request.queue_pair->verbs(), window.verbs(), &bind));
    });
  }
  if (error) {
    addon.ThrowErrno(env, "ibv_bind_mw", error);
    return {};
  }
  return Napi::Number::New(env, window.verbs()->rkey);
}

Napi::Value InvalidateMw(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  WindowRequest request;
  if (!request.Read(info, 2)) return {};
  MemoryWindow& window = *request.window;
  // The kernel takes what is not bound for an object that is, and the machine dies (Linux 6.1).
  if (window.bound_on() != request.queue_pair) {
    addon.ThrowCode(env, kBadState, "the window is not bound on this queue pair");
    return {};
  }
  ibv_send_wr send = {};
  send.opcode = IBV_WR_LOCAL_INV;
  send.invalidate_rkey = window.verbs()->rkey;
  if (int error = request.Send(nullptr, &send)) {
    addon.ThrowErrno(env, "ibv_post_send", error);
    return {};
  }
  window.NoteFree();
  return Napi::Number::New(env, window.verbs()->rkey);
}

}  // namespace

void MemoryWindowWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {InstanceAccessor("rkey", &MemoryWindowWrap::Rkey, nullptr),
                     InstanceAccessor("bound", &MemoryWindowWrap::Bound, nullptr)});
  exports.Set("allocMw", Napi::Function::New<AllocMw>(env, "allocMw"));
  exports.Set("bindMw", Napi::Function::New<BindMw>(env, "bindMw"));
  exports.Set("invalidateMw", Napi::Function::New<InvalidateMw>(env, "invalidateMw"));
}

Napi::Value MemoryWindowWrap::Rkey(const Napi::CallbackInfo& info) {
  auto window = Open(info.Env());
  if (!window) return {};
  return Napi::Number::New(info.Env(), window->verbs()->rkey);
}

Napi::Value MemoryWindowWrap::Bound(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), native()->bound_on() != nullptr);
}

}  // namespace node_rdma
