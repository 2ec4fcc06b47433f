#include "address_handle.h"

#include <algorithm>
#include <cstring>

#include "queue_pair_attributes.h"
#include "util/arguments.h"
#include "util/make_resource.h"
#include "util/verbs_error.h"

namespace node_rdma {

std::shared_ptr<AddressHandle> AddressHandle::Create(std::shared_ptr<Registry> registry,
                                                     const std::shared_ptr<ProtectionDomain>& domain,
                                                     ibv_ah_attr attributes, int* error) {
  errno = 0;
  ibv_ah* verbs = ibv_create_ah(domain->verbs(), &attributes);
  if ((*error = ErrorOfPointer(verbs))) return nullptr;
  return std::shared_ptr<AddressHandle>(new AddressHandle(std::move(registry), domain, verbs, attributes));
}

int AddressHandle::Destroy() { return ErrorOfResult(ibv_destroy_ah(verbs_)); }

bool AddressHandle::Publish(AddonData& addon) {
  slot_ = addon.address_handles.Add(this);
  if (slot_ == 0) return false;
  addon_ = &addon;
  return true;
}

void AddressHandle::OnClosed() {
  if (addon_) addon_->address_handles.Remove(slot_);
  addon_ = nullptr;
}

void AddressHandleWrap::Define(Napi::Env env) {
  Wrap::Define(env, {InstanceAccessor("workRequests", &AddressHandleWrap::WorkRequests, nullptr)});
}

Napi::Value AddressHandleWrap::WorkRequests(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), native()->work_requests);
}

namespace {

Napi::Value Present(Napi::Env env, const std::shared_ptr<AddressHandle>& handle) {
  AddonData& addon = AddonData::Of(env);
  if (!handle->Publish(addon)) {
    addon.ThrowErrno(env, "ibv_create_ah", ENOSPC);
    return {};
  }
  Napi::Object object = AddressHandleWrap::New(env, handle);
  if (env.IsExceptionPending()) return {};
  object.Set("slot", handle->slot());
  object.Set("handle", handle->verbs()->handle);
  auto words = Napi::Uint32Array::New(env, kAddressWords);
  PackAddress(handle->attributes(), words.Data());
  object.Set("words", words);
  return object;
}

}  // namespace

Napi::Value CreateAddressHandle(const Napi::CallbackInfo& info,
                                const std::shared_ptr<ProtectionDomain>& domain, bool sync) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  uint32_t* words;
  if (!arguments.Uint32Array(0, "words", kAddressWords, &words)) return {};
  ibv_ah_attr attributes = {};
  UnpackAddress(words, &attributes);
  return MakeResource<AddressHandle>(
      env, "ibv_create_ah", sync, domain,
      [registry = addon.registry, domain, attributes](int* error) {
        return AddressHandle::Create(registry, domain, attributes, error);
      },
      Present);
}

Napi::Value CreateAddressHandleFromCompletion(const Napi::CallbackInfo& info,
                                              const std::shared_ptr<ProtectionDomain>& domain, bool sync) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t port;
  uint32_t* fields;
  Napi::Object view;
  void* bytes;
  size_t length;
  if (!arguments.Uint32(0, "port", &port) || !arguments.Uint32Array(1, "completion", 4, &fields) ||
      !arguments.View(2, "header", &view, &bytes, &length)) {
    return {};
  }
  ibv_wc completion = {};
  completion.wc_flags = fields[0];
  completion.slid = static_cast<uint16_t>(fields[1]);
  completion.sl = static_cast<uint8_t>(fields[2]);
  completion.dlid_path_bits = static_cast<uint8_t>(fields[3]);
  ibv_grh header = {};
  std::memcpy(&header, bytes, std::min(length, sizeof header));
  return MakeResource<AddressHandle>(
      env, "ibv_create_ah_from_wc", sync, domain,
      [registry = AddonData::Of(env).registry, domain, port, completion,
       header](int* error) -> std::shared_ptr<AddressHandle> {
        ibv_wc wc = completion;
        ibv_grh grh = header;
        ibv_ah_attr attributes = {};
        errno = 0;
        *error = ErrorOfResult(ibv_init_ah_from_wc(domain->verbs()->context, static_cast<uint8_t>(port), &wc,
                                                   &grh, &attributes));
        if (*error) return nullptr;
        return AddressHandle::Create(registry, domain, attributes, error);
      },
      Present);
}

}  // namespace node_rdma
