#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <memory>

#include "addon_data.h"
#include "protection_domain.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_ah: the way to a peer, for datagrams.
class AddressHandle final : public Resource {
 public:
  // May run on any thread: on RoCE the kernel asks for the peer's link address, which may take a second.
  static std::shared_ptr<AddressHandle> Create(std::shared_ptr<Registry> registry,
                                               const std::shared_ptr<ProtectionDomain>& domain,
                                               ibv_ah_attr attributes, int* error);
  ~AddressHandle() override { Close(); }

  // On the JavaScript thread, as is everything below.
  bool Publish(AddonData& addon);
  void OnClosed() override;
  bool in_use() const override { return work_requests > 0; }

  ibv_ah* verbs() const { return verbs_; }
  // The root of its domain.
  ibv_pd* domain() const { return domain_; }
  const ibv_ah_attr& attributes() const { return attributes_; }
  uint32_t slot() const { return slot_; }

  uint32_t work_requests = 0;

 protected:
  int Destroy() override;

 private:
  AddressHandle(std::shared_ptr<Registry> registry, const std::shared_ptr<ProtectionDomain>& domain,
                ibv_ah* verbs, const ibv_ah_attr& attributes)
      : Resource(std::move(registry), {domain}),
        verbs_(verbs),
        domain_(domain->root()),
        attributes_(attributes) {}

  ibv_ah* verbs_;
  ibv_pd* domain_;
  ibv_ah_attr attributes_;
  uint32_t slot_ = 0;
  AddonData* addon_ = nullptr;
};

class AddressHandleWrap final : public Wrap<AddressHandleWrap, AddressHandle> {
 public:
  static constexpr Kind kKind = Kind::kAddressHandle;
  static constexpr const char* kName = "AddressHandle";
  static constexpr const char* kDestroy = "ibv_destroy_ah";
  static constexpr napi_type_tag kTag = {0x27d45b90fe1c4836, 0x95a3c8e06d7f4b12};

  static void Define(Napi::Env env);
  using Wrap::Wrap;

 private:
  Napi::Value WorkRequests(const Napi::CallbackInfo& info);
};

// pd.createAh(words): the words of an address vector, as in a queue pair's attributes.
Napi::Value CreateAddressHandle(const Napi::CallbackInfo& info,
                                const std::shared_ptr<ProtectionDomain>& domain, bool sync);

// pd.createAhFromWc(port, completion, header): the way back to the sender of a datagram. `completion` is
// [wc_flags, slid, sl, dlid_path_bits]; `header` the first 40 bytes of its receive, ignored where wc_flags
// says that they are none.
Napi::Value CreateAddressHandleFromCompletion(const Napi::CallbackInfo& info,
                                              const std::shared_ptr<ProtectionDomain>& domain, bool sync);

}  // namespace node_rdma
