#include "domains.h"

#include <memory>
#include <utility>
#include <vector>

#include "protection_domain.h"
#include "util/arguments.h"

namespace node_rdma {

namespace {

Napi::Value AllocTd(const Napi::CallbackInfo& info) {
  auto context = ContextWrap::From(info, 0, "context");
  if (!context) return {};
  ibv_td_init_attr attributes = {};
  errno = 0;
  ibv_td* verbs = ibv_alloc_td(context->verbs(), &attributes);
  return NewPlain<ThreadDomainWrap, ThreadDomain>(info.Env(), "ibv_alloc_td", {context}, verbs);
}

Napi::Value OpenXrcd(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t fd = 0, flags;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || (!info[1].IsUndefined() && !arguments.Uint32(1, "fd", &fd)) ||
      !arguments.Uint32(2, "flags", &flags)) {
    return {};
  }
  ibv_xrcd_init_attr attributes = {};
  attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attributes.fd = info[1].IsUndefined() ? -1 : static_cast<int>(fd);
  attributes.oflags = static_cast<int>(flags);
  errno = 0;
  ibv_xrcd* verbs = ibv_open_xrcd(context->verbs(), &attributes);
  return NewPlain<XrcDomainWrap, XrcDomain>(info.Env(), "ibv_open_xrcd", {context}, verbs);
}

Napi::Value PresentDomain(Napi::Env env, const char* syscall, std::vector<std::shared_ptr<Resource>> parents,
                          ibv_pd* verbs, ibv_pd* root, bool imported) {
  AddonData& addon = AddonData::Of(env);
  if (int error = ErrorOfPointer(verbs)) {
    addon.ThrowErrno(env, syscall, error);
    return {};
  }
  return ProtectionDomainWrap::New(
      env, std::make_shared<ProtectionDomain>(addon.registry, std::move(parents), verbs, root ? root : verbs,
                                              imported));
}

Napi::Value AllocParentDomain(const Napi::CallbackInfo& info) {
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain) return {};
  std::vector<std::shared_ptr<Resource>> parents = {domain};
  ibv_parent_domain_init_attr attributes = {};
  attributes.pd = domain->verbs();
  if (!info[1].IsUndefined()) {
    auto thread = ThreadDomainWrap::From(info, 1, "td");
    if (!thread) return {};
    attributes.td = thread->verbs();
    parents.push_back(thread);
  }
  errno = 0;
  ibv_pd* verbs = ibv_alloc_parent_domain(domain->verbs()->context, &attributes);
  return PresentDomain(info.Env(), "ibv_alloc_parent_domain", std::move(parents), verbs, domain->root(),
                       /*imported=*/false);
}

Napi::Value ImportPd(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t handle;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint32(1, "handle", &handle)) return {};
  errno = 0;
  ibv_pd* verbs = ibv_import_pd(context->verbs(), handle);
  return PresentDomain(info.Env(), "ibv_import_pd", {context}, verbs, nullptr, /*imported=*/true);
}

}  // namespace

void DefineDomains(Napi::Env env, Napi::Object exports) {
  ThreadDomainWrap::Define(env);
  XrcDomainWrap::Define(env);
  exports.Set("allocTd", Napi::Function::New<AllocTd>(env, "allocTd"));
  exports.Set("openXrcd", Napi::Function::New<OpenXrcd>(env, "openXrcd"));
  exports.Set("allocParentDomain", Napi::Function::New<AllocParentDomain>(env, "allocParentDomain"));
  exports.Set("importPd", Napi::Function::New<ImportPd>(env, "importPd"));
}

}  // namespace node_rdma
