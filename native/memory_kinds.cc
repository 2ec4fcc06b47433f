#include "memory_kinds.h"

#include <infiniband/verbs.h>

#include <utility>
#include <vector>

#include "device_memory.h"
#include "memory_region.h"
#include "util/arguments.h"
#include "util/make_resource.h"
#include "util/plain_resource.h"
#include "util/promise_worker.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

// The region of what a function has just registered, or its failure.
Napi::Value PresentMade(Napi::Env env, const char* syscall, const std::shared_ptr<ProtectionDomain>& domain,
                        const MemoryRegion::Request& request, ibv_mr* verbs) {
  AddonData& addon = AddonData::Of(env);
  if (int error = ErrorOfPointer(verbs)) {
    addon.ThrowErrno(env, syscall, error);
    return {};
  }
  auto region = std::make_shared<MemoryRegion>(addon.registry, domain, request, verbs);
  return PresentRegion(env, syscall, region, Napi::Object());
}

Napi::Value AllocNullMr(const Napi::CallbackInfo& info) {
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain) return {};
  MemoryRegion::Request request;
  request.length = SIZE_MAX;
  request.access = IBV_ACCESS_LOCAL_WRITE;
  request.has_iova = true;
  errno = 0;
  ibv_mr* verbs = ibv_alloc_null_mr(domain->verbs());
  return PresentMade(info.Env(), "ibv_alloc_null_mr", domain, request, verbs);
}

// All memory that the process has and will have. It pins nothing, so it does not block.
Napi::Value RegImplicitMr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  MemoryRegion::Request request;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain || !arguments.Uint32(1, "access", &request.access)) return {};
  request.access |= IBV_ACCESS_ON_DEMAND;
  request.length = SIZE_MAX;
  request.has_iova = true;
  errno = 0;
  ibv_mr* verbs = ibv_reg_mr(domain->verbs(), nullptr, SIZE_MAX, request.access);
  return PresentMade(info.Env(), "ibv_reg_mr", domain, request, verbs);
}

Napi::Value RegDmabufMr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  MemoryRegion::Request request;
  uint32_t fd;
  uint64_t offset, length;
  bool sync;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain || !arguments.Uint32(1, "fd", &fd) || !arguments.Uint64(2, "offset", &offset) ||
      !arguments.Uint64(3, "length", &length) || !arguments.Uint64(4, "iova", &request.iova) ||
      !arguments.Uint32(5, "access", &request.access) || !arguments.Boolean(6, "sync", &sync)) {
    return {};
  }
  request.length = length;
  request.has_iova = true;
  return MakeResource<MemoryRegion>(
      info.Env(), "ibv_reg_dmabuf_mr", sync, domain,
      [registry = AddonData::Of(info.Env()).registry, domain, request, fd,
       offset](int* error) -> std::shared_ptr<MemoryRegion> {
        errno = 0;
        ibv_mr* verbs = ibv_reg_dmabuf_mr(domain->verbs(), offset, request.length, request.iova,
                                          static_cast<int>(fd), static_cast<int>(request.access));
        if ((*error = ErrorOfPointer(verbs))) return nullptr;
        return std::make_shared<MemoryRegion>(registry, domain, request, verbs);
      },
      [](Napi::Env env, const std::shared_ptr<MemoryRegion>& region) {
        return PresentRegion(env, "ibv_reg_dmabuf_mr", region, Napi::Object());
      });
}

Napi::Value RegDmMr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  MemoryRegion::Request request;
  uint64_t offset, length;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain) return {};
  auto memory = DeviceMemoryWrap::From(info, 1, "dm");
  if (!memory || !arguments.Uint64(2, "offset", &offset) || !arguments.Uint64(3, "length", &length) ||
      !arguments.Uint32(4, "access", &request.access)) {
    return {};
  }
  request.length = length;
  // Its first byte is at 0, for peers and for requests.
  request.access |= IBV_ACCESS_ZERO_BASED;
  request.has_iova = true;
  request.parent = memory;
  errno = 0;
  ibv_mr* verbs = ibv_reg_dm_mr(domain->verbs(), memory->verbs(), offset, length, request.access);
  return PresentMade(info.Env(), "ibv_reg_dm_mr", domain, request, verbs);
}

Napi::Value ImportMr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  MemoryRegion::Request request;
  uint32_t handle;
  uint64_t length;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain || !arguments.Uint32(1, "handle", &handle) || !arguments.Uint64(2, "iova", &request.iova) ||
      !arguments.Uint64(3, "length", &length) || !arguments.Uint32(4, "access", &request.access)) {
    return {};
  }
  request.length = length;
  request.has_iova = true;
  request.imported = true;
  errno = 0;
  ibv_mr* verbs = ibv_import_mr(domain->verbs(), handle);
  return PresentMade(info.Env(), "ibv_import_mr", domain, request, verbs);
}

// A region that is being registered anew.
struct Reregistration {
  std::shared_ptr<MemoryRegion> region;
  std::shared_ptr<ProtectionDomain> domain;
  MemoryRegion::Request request;
  Napi::ObjectReference view;
  Napi::ObjectReference object;
  uint32_t flags = 0;
  bool usable = true;

  bool Read(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    Napi::Object source;
    if (!(region = MemoryRegionWrap::From(info, 0, "mr")) || !arguments.Uint32(1, "flags", &flags) ||
        !(domain = ProtectionDomainWrap::From(info, 2, "pd")) ||
        (flags & IBV_REREG_MR_CHANGE_TRANSLATION && !ReadSource(info, 3, 0, &request, &source)) ||
        !arguments.Uint32(4, "access", &request.access)) {
      return false;
    }
    if (region->in_use()) {
      AddonData::Of(info.Env())
          .ThrowCode(info.Env(), "ERR_RDMA_BUSY", "outstanding work requests name the memory region");
      return false;
    }
    if (!source.IsEmpty()) view = Napi::Persistent(source);
    object = Napi::Persistent(info[0].As<Napi::Object>());
    ++region->closing;
    return true;
  }

  int Run() { return region->Reregister(static_cast<int>(flags), domain, request, &usable); }

  // Of a region that is usable no more, the device may have forgotten what it was: it takes no new work.
  void End() {
    if (usable) --region->closing;
  }

  Napi::Value Done(Napi::Env env) {
    End();
    Napi::Object source = view.IsEmpty() ? Napi::Object() : view.Value();
    region->NoteReregistered(static_cast<int>(flags), domain, request, source);
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
      DescribeRegion(env, object.Value(), region, source);
    } else {
      object.Value().Set("lkey", region->verbs()->lkey);
      object.Value().Set("rkey", region->verbs()->rkey);
    }
    return env.Undefined();
  }
};

Napi::Value ReregMr(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  auto work = std::make_shared<Reregistration>();
  bool sync;
  if (!arguments.Boolean(5, "sync", &sync) || !work->Read(info)) return {};
  if (sync) {
    if (int error = work->Run()) {
      work->End();
      return Undefined(env, "ibv_rereg_mr", error);
    }
    return work->Done(env);
  }
  std::vector<Resource::Hold> holds;
  holds.emplace_back(work->region);
  holds.emplace_back(work->domain);
  return PromiseWorker::Run(
      env, "ibv_rereg_mr", std::move(holds), [work] { return work->Run(); },
      [work](Napi::Env done_env) { return work->Done(done_env); }, [work] { work->End(); });
}

Napi::Value AdviseMr(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t advice, flags, count;
  bool sync;
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain || !arguments.Uint32(1, "advice", &advice) || !arguments.Uint32(2, "flags", &flags) ||
      !arguments.Boolean(3, "sync", &sync) || !arguments.Uint32(4, "count", &count)) {
    return {};
  }
  std::vector<ibv_sge> elements;
  std::vector<Resource::Hold> holds;
  holds.emplace_back(domain);
  for (size_t i = 0; i < count; ++i) {
    uint64_t offset;
    uint32_t length;
    auto region = MemoryRegionWrap::From(info, 5 + 3 * i, "mr");
    if (!region || !arguments.Uint64(6 + 3 * i, "offset", &offset) ||
        !arguments.Uint32(7 + 3 * i, "length", &length)) {
      return {};
    }
    if (region->domain() != domain->root()) {
      AddonData::Of(env).ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                                   "the memory region belongs to another protection domain");
      return {};
    }
    if (offset > region->length() || length > region->length() - offset) {
      AddonData::Of(env).ThrowErrno(env, "ibv_advise_mr", EINVAL);
      return {};
    }
    elements.push_back({region->iova() + offset, length, region->lkey()});
    holds.emplace_back(region);
  }
  auto work = [domain, advice, flags, elements = std::move(elements)]() mutable {
    return ErrorOfResult(ibv_advise_mr(domain->verbs(), static_cast<ibv_advise_mr_advice>(advice), flags,
                                       elements.data(), static_cast<uint32_t>(elements.size())));
  };
  if (sync) return Undefined(env, "ibv_advise_mr", work());
  return PromiseWorker::Run(env, "ibv_advise_mr", std::move(holds), std::move(work),
                            [](Napi::Env done_env) { return done_env.Undefined(); });
}

}  // namespace

void DefineMemoryKinds(Napi::Env env, Napi::Object exports) {
  exports.Set("allocNullMr", Napi::Function::New<AllocNullMr>(env, "allocNullMr"));
  exports.Set("regImplicitMr", Napi::Function::New<RegImplicitMr>(env, "regImplicitMr"));
  exports.Set("regDmabufMr", Napi::Function::New<RegDmabufMr>(env, "regDmabufMr"));
  exports.Set("regDmMr", Napi::Function::New<RegDmMr>(env, "regDmMr"));
  exports.Set("importMr", Napi::Function::New<ImportMr>(env, "importMr"));
  exports.Set("reregMr", Napi::Function::New<ReregMr>(env, "reregMr"));
  exports.Set("adviseMr", Napi::Function::New<AdviseMr>(env, "adviseMr"));
}

}  // namespace node_rdma
