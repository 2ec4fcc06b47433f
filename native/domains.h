#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include "context.h"
#include "util/plain_resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_td.
class ThreadDomain final : public PlainResource<ibv_td> {
 public:
  using PlainResource::PlainResource;
  ~ThreadDomain() override { Close(); }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_dealloc_td(verbs())); }
};

class ThreadDomainWrap final : public Wrap<ThreadDomainWrap, ThreadDomain> {
 public:
  static constexpr Kind kKind = Kind::kThreadDomain;
  static constexpr const char* kName = "ThreadDomain";
  static constexpr const char* kDestroy = "ibv_dealloc_td";
  static constexpr napi_type_tag kTag = {0xf215cc1f933ec214, 0x8dec9ec6332e2928};

  static void Define(Napi::Env env) { Wrap::Define(env, {}); }
  using Wrap::Wrap;
};

// struct ibv_xrcd.
class XrcDomain final : public PlainResource<ibv_xrcd> {
 public:
  using PlainResource::PlainResource;
  ~XrcDomain() override { Close(); }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_close_xrcd(verbs())); }
};

class XrcDomainWrap final : public Wrap<XrcDomainWrap, XrcDomain> {
 public:
  static constexpr Kind kKind = Kind::kXrcDomain;
  static constexpr const char* kName = "XrcDomain";
  static constexpr const char* kDestroy = "ibv_close_xrcd";
  static constexpr napi_type_tag kTag = {0x8a39a8443654b7dd, 0x3142912996a46e28};

  static void Define(Napi::Env env) { Wrap::Define(env, {}); }
  using Wrap::Wrap;
};

// allocTd(context), openXrcd(context, fd, flags), allocParentDomain(pd, td), importPd(context, handle); `fd`
// may be undefined.
void DefineDomains(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
