#include "memory_region.h"

#include <utility>

#include "util/arguments.h"
#include "util/make_resource.h"
#include "util/verbs_error.h"

namespace node_rdma {

MemoryRegion::MemoryRegion(std::shared_ptr<Registry> registry,
                           const std::shared_ptr<ProtectionDomain>& domain, const Request& request,
                           ibv_mr* verbs)
    : Resource(std::move(registry), request.parent
                                        ? std::vector<std::shared_ptr<Resource>>{domain, request.parent}
                                        : std::vector<std::shared_ptr<Resource>>{domain}),
      verbs_(verbs),
      domain_(domain),
      request_(request),
      iova_(request.has_iova ? request.iova : reinterpret_cast<uint64_t>(request.data)),
      lkey_(verbs->lkey) {}

std::shared_ptr<MemoryRegion> MemoryRegion::Register(std::shared_ptr<Registry> registry,
                                                     const std::shared_ptr<ProtectionDomain>& domain,
                                                     const Request& request, int* error) {
  errno = 0;
  ibv_mr* verbs =
      request.has_iova
          ? ibv_reg_mr_iova(domain->verbs(), request.data, request.length, request.iova, request.access)
          : ibv_reg_mr(domain->verbs(), request.data, request.length, request.access);
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  return std::make_shared<MemoryRegion>(std::move(registry), domain, request, verbs);
}

int MemoryRegion::Destroy() {
  if (!request_.imported) return ErrorOfResult(ibv_dereg_mr(verbs_));
  ibv_unimport_mr(verbs_);
  return 0;
}

bool MemoryRegion::Publish(AddonData& addon) {
  slot_ = addon.regions.Add(this);
  if (slot_ == 0) return false;
  addon_ = &addon;
  return true;
}

void MemoryRegion::OnClosed() {
  if (!addon_) return;
  addon_->regions.Remove(slot_);
  ForgetMemory();
  addon_ = nullptr;
}

void MemoryRegion::ForgetMemory() {
  view_.Reset();
  // Without the region nothing tells the owner of the memory apart from anybody else's: what is left of it
  // reads as empty.
  if (!buffer_.IsEmpty() && !addon_->ended()) {
    Napi::HandleScope scope(buffer_.Env());
    Napi::ArrayBuffer buffer = buffer_.Value();
    // One that is detached already was transferred: another thread may be reading it.
    if (!buffer.IsEmpty() && !buffer.IsDetached()) {
      if (addon_->Detach(buffer)) request_.memory->Unmap();
    }
  }
  buffer_.Reset();
  request_.memory.reset();
}

int MemoryRegion::Reregister(int flags, const std::shared_ptr<ProtectionDomain>& domain,
                             const Request& request, bool* usable) {
  errno = 0;
  return ErrorOfRereg(ibv_rereg_mr(verbs_, flags, domain->verbs(), request.data, request.length,
                                   flags & IBV_REREG_MR_CHANGE_ACCESS ? static_cast<int>(request.access) : 0),
                      usable);
}

void MemoryRegion::NoteReregistered(int flags, const std::shared_ptr<ProtectionDomain>& domain,
                                    const Request& request, Napi::Object view) {
  if (flags & IBV_REREG_MR_CHANGE_PD) {
    ReplaceParent(domain_, domain);
    domain_ = domain;
  }
  if (flags & IBV_REREG_MR_CHANGE_ACCESS) request_.access = request.access;
  if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
    ForgetMemory();
    request_.data = request.data;
    request_.length = request.length;
    request_.memory = request.memory;
    iova_ = reinterpret_cast<uint64_t>(request.data);
    KeepView(view);
  }
  lkey_ = verbs_->lkey;
}

void MemoryRegionWrap::Define(Napi::Env env) {
  Wrap::Define(env, {InstanceAccessor("workRequests", &MemoryRegionWrap::WorkRequests, nullptr)});
}

Napi::Value MemoryRegionWrap::WorkRequests(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), native()->work_requests);
}

bool DescribeRegion(Napi::Env env, Napi::Object object, const std::shared_ptr<MemoryRegion>& region,
                    Napi::Object view) {
  if (region->memory()) {
    Napi::ArrayBuffer buffer = Memory::ToArrayBuffer(env, region->memory());
    if (env.IsExceptionPending()) return false;
    region->WatchBuffer(buffer);
    object.Set("buffer", buffer);
    object.Set("view", env.Undefined());
  } else if (!view.IsEmpty()) {
    region->KeepView(view);
    object.Set("buffer", env.Undefined());
    object.Set("view", view);
  }
  object.Set("slot", region->slot());
  object.Set("lkey", region->verbs()->lkey);
  object.Set("rkey", region->verbs()->rkey);
  object.Set("handle", region->verbs()->handle);
  object.Set("iova", Napi::BigInt::New(env, region->iova()));
  object.Set("length", Napi::Number::New(env, static_cast<double>(region->length())));
  return true;
}

Napi::Value PresentRegion(Napi::Env env, const char* syscall, const std::shared_ptr<MemoryRegion>& region,
                          Napi::Object view) {
  AddonData& addon = AddonData::Of(env);
  if (!region->Publish(addon)) {
    addon.ThrowErrno(env, syscall, ENOSPC);
    return {};
  }
  Napi::Object object = MemoryRegionWrap::New(env, region);
  if (env.IsExceptionPending() || !DescribeRegion(env, object, region, view)) return {};
  return object;
}

bool ReadSource(const Napi::CallbackInfo& info, size_t index, uint64_t page_size,
                MemoryRegion::Request* request, Napi::Object* view) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  if (info[index].IsObject()) {
    void* data = nullptr;
    if (!arguments.View(index, "source", view, &data, &request->length)) return false;
    request->data = static_cast<std::byte*>(data);
    return true;
  }
  uint64_t length;
  if (!arguments.Uint64(index, "source", &length)) return false;
  int error = 0;
  request->memory = Memory::Allocate(length, page_size, &error);
  if (!request->memory) {
    AddonData::Of(env).ThrowErrno(env, "mmap", error);
    return false;
  }
  request->data = request->memory->data();
  request->length = request->memory->length();
  return true;
}

Napi::Value RegisterMemory(const Napi::CallbackInfo& info, const std::shared_ptr<ProtectionDomain>& domain,
                           bool sync) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  MemoryRegion::Request request;
  Napi::Object view;
  uint64_t page_size = 0;
  if (!arguments.Uint32(1, "access", &request.access) || !arguments.Uint64(2, "pageSize", &page_size))
    return {};
  if (!info[3].IsUndefined()) {
    if (!arguments.Uint64(3, "iova", &request.iova)) return {};
    request.has_iova = true;
  }
  if (page_size != 0 && (page_size & (page_size - 1)) != 0) {
    addon.ThrowErrno(env, "mmap", EINVAL);
    return {};
  }
  if (!ReadSource(info, 0, page_size, &request, &view)) return {};

  // The view must live until the region can hold it.
  auto kept_view = std::make_shared<Napi::ObjectReference>();
  if (!view.IsEmpty()) *kept_view = Napi::Persistent(view);
  return MakeResource<MemoryRegion>(
      env, "ibv_reg_mr", sync, domain,
      [registry = addon.registry, domain, request](int* error) {
        return MemoryRegion::Register(registry, domain, request, error);
      },
      [kept_view](Napi::Env present_env, const std::shared_ptr<MemoryRegion>& region) {
        return PresentRegion(present_env, "ibv_reg_mr", region,
                             kept_view->IsEmpty() ? Napi::Object() : kept_view->Value());
      });
}

}  // namespace node_rdma
