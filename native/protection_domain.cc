#include "protection_domain.h"

#include "address_handle.h"
#include "memory_region.h"
#include "queue_pair.h"
#include "shared_receive_queue.h"
#include "util/verbs_error.h"

namespace node_rdma {

std::shared_ptr<ProtectionDomain> ProtectionDomain::Alloc(std::shared_ptr<Registry> registry,
                                                          std::shared_ptr<Context> context, int* error) {
  errno = 0;
  ibv_pd* verbs = ibv_alloc_pd(context->verbs());
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  return std::make_shared<ProtectionDomain>(
      std::move(registry), std::vector<std::shared_ptr<Resource>>{std::move(context)}, verbs, verbs,
      /*imported=*/false);
}

int ProtectionDomain::Destroy() {
  if (!imported_) return ErrorOfResult(ibv_dealloc_pd(verbs_));
  ibv_unimport_pd(verbs_);
  return 0;
}

void ProtectionDomainWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("regMr", &ProtectionDomainWrap::RegMr),
                        InstanceMethod("regMrSync", &ProtectionDomainWrap::RegMrSync),
                        InstanceMethod("createQp", &ProtectionDomainWrap::CreateQp),
                        InstanceMethod("createSrq", &ProtectionDomainWrap::CreateSrq),
                        InstanceMethod("createAh", &ProtectionDomainWrap::CreateAh),
                        InstanceMethod("createAhSync", &ProtectionDomainWrap::CreateAhSync),
                        InstanceMethod("createAhFromWc", &ProtectionDomainWrap::CreateAhFromWc),
                        InstanceMethod("createAhFromWcSync", &ProtectionDomainWrap::CreateAhFromWcSync),
                    });
}

Napi::Object ProtectionDomainWrap::New(Napi::Env env, const std::shared_ptr<ProtectionDomain>& domain) {
  Napi::Object object = Wrap::New(env, domain);
  if (!env.IsExceptionPending()) object.Set("handle", domain->verbs()->handle);
  return object;
}

Napi::Value ProtectionDomainWrap::RegMr(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return RegisterMemory(info, domain, /*sync=*/false);
}

Napi::Value ProtectionDomainWrap::RegMrSync(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return RegisterMemory(info, domain, /*sync=*/true);
}

Napi::Value ProtectionDomainWrap::CreateQp(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return CreateQueuePair(info, std::move(domain));
}

Napi::Value ProtectionDomainWrap::CreateSrq(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return CreateSharedReceiveQueue(info, domain);
}

Napi::Value ProtectionDomainWrap::CreateAh(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return CreateAddressHandle(info, domain, /*sync=*/false);
}

Napi::Value ProtectionDomainWrap::CreateAhFromWc(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return CreateAddressHandleFromCompletion(info, domain, /*sync=*/false);
}

Napi::Value ProtectionDomainWrap::CreateAhFromWcSync(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return CreateAddressHandleFromCompletion(info, domain, /*sync=*/true);
}

Napi::Value ProtectionDomainWrap::CreateAhSync(const Napi::CallbackInfo& info) {
  auto domain = Open(info.Env());
  if (!domain) return {};
  return CreateAddressHandle(info, domain, /*sync=*/true);
}

}  // namespace node_rdma
