#include "cm_address_info.h"

#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <string>

#include "addon_data.h"
#include "socket_address.h"
#include "util/arguments.h"
#include "util/promise_worker.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

struct AddressQuery {
  std::optional<std::string> node, service;
  rdma_addrinfo hints = {};
  SocketAddress source;
  rdma_addrinfo* result = nullptr;
  int resolver_error = 0;  // an EAI_ code, which is no errno

  ~AddressQuery() {
    if (result) rdma_freeaddrinfo(result);
  }

  int Ask() {
    errno = 0;
    const int code = rdma_getaddrinfo(node ? node->c_str() : nullptr, service ? service->c_str() : nullptr,
                                      &hints, &result);
    if (code == 0) return 0;
    result = nullptr;
    // −1 is EAI_BADFLAGS too, but flags are checked before.
    if (code == -1 || code == EAI_SYSTEM) return errno ? errno : EIO;
    resolver_error = code;
    return 0;
  }
};

Napi::Value BytesOf(Napi::Env env, const void* data, size_t length) {
  return data && length > 0 ? Napi::Buffer<uint8_t>::Copy(env, static_cast<const uint8_t*>(data), length)
                            : env.Undefined();
}

Napi::Value NameOf(Napi::Env env, const char* name) {
  return name ? Napi::String::New(env, name) : env.Undefined();
}

Napi::Object EntryOf(Napi::Env env, const rdma_addrinfo& entry) {
  Napi::Object o = Napi::Object::New(env);
  o.Set("flags", entry.ai_flags);
  o.Set("qpType", entry.ai_qp_type);
  o.Set("portSpace", entry.ai_port_space);
  o.Set("source", SocketAddressToJs(env, entry.ai_src_addr));
  o.Set("destination", SocketAddressToJs(env, entry.ai_dst_addr));
  o.Set("sourceName", NameOf(env, entry.ai_src_canonname));
  o.Set("destinationName", NameOf(env, entry.ai_dst_canonname));
  o.Set("route", BytesOf(env, entry.ai_route, entry.ai_route_len));
  o.Set("connect", BytesOf(env, entry.ai_connect, entry.ai_connect_len));
  return o;
}

bool ReadOptional(const Napi::CallbackInfo& info, size_t index, const char* name,
                  std::optional<std::string>* out) {
  if (info[index].IsUndefined()) return true;
  Arguments arguments(info);
  return arguments.String(index, name, &out->emplace());
}

}  // namespace

Napi::Value GetAddressInfo(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  auto query = std::make_shared<AddressQuery>();
  uint32_t flags, family, port_space, qp_type;
  if (!ReadOptional(info, 0, "node", &query->node) || !ReadOptional(info, 1, "service", &query->service) ||
      !arguments.Uint32(2, "flags", &flags) || !arguments.Uint32(3, "family", &family) ||
      !arguments.Uint32(4, "portSpace", &port_space) || !arguments.Uint32(5, "qpType", &qp_type)) {
    return {};
  }
  rdma_addrinfo& hints = query->hints;
  hints.ai_flags = static_cast<int>(flags);
  hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : 0;
  if (hints.ai_family) hints.ai_flags |= RAI_FAMILY;
  hints.ai_port_space = static_cast<int>(port_space);
  hints.ai_qp_type = static_cast<int>(qp_type);
  if (!info[6].IsUndefined()) {
    if (!query->source.Read(info, arguments, 6, "source")) return {};
    hints.ai_src_addr = query->source.get();
    hints.ai_src_len = query->source.get()->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  }
  return PromiseWorker::Run(
      env, "rdma_getaddrinfo", {}, [query] { return query->Ask(); },
      [query](Napi::Env done_env) -> Napi::Value {
        if (query->resolver_error != 0) {
          AddonData::Of(done_env).ThrowCode(
              done_env, "ENOTFOUND", std::string("rdma_getaddrinfo: ") + gai_strerror(query->resolver_error));
          return done_env.Undefined();
        }
        Napi::Array list = Napi::Array::New(done_env);
        for (const rdma_addrinfo* entry = query->result; entry; entry = entry->ai_next) {
          list.Set(list.Length(), EntryOf(done_env, *entry));
        }
        return list;
      });
}

}  // namespace node_rdma
