#include "context_queries.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "context.h"
#include "queue_pair_attributes.h"
#include "util/arguments.h"
#include "util/newer_function.h"
#include "util/plain_resource.h"
#include "util/promise_worker.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

// A context and a place in one of a port's tables.
struct TablePlace {
  std::shared_ptr<Context> context;
  uint32_t port = 0;
  uint32_t index = 0;

  bool Read(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    return (context = ContextWrap::From(info, 0, "context")) && arguments.Uint32(1, "port", &port) &&
           arguments.Uint32(2, "index", &index);
  }
};

Napi::Value QueryGid(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  TablePlace place;
  if (!place.Read(info)) return {};
  ibv_gid gid = {};
  errno = 0;
  const int result = ibv_query_gid(place.context->verbs(), static_cast<uint8_t>(place.port),
                                   static_cast<int>(place.index), &gid);
  if (int error = ErrorOfMinusOne(result)) return Undefined(env, "ibv_query_gid", error);
  return Napi::Buffer<uint8_t>::Copy(env, gid.raw, sizeof gid.raw);
}

Napi::Value QueryGidEntry(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  TablePlace place;
  if (!place.Read(info)) return {};
  ibv_gid_entry entry = {};
  const int result = ibv_query_gid_ex(place.context->verbs(), place.port, place.index, &entry, 0);
  if (int error = ErrorOfResult(result)) return Undefined(env, "ibv_query_gid_ex", error);
  return GidEntryObject(env, entry);
}

Napi::Value QueryPkey(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  TablePlace place;
  if (!place.Read(info)) return {};
  __be16 pkey = 0;
  errno = 0;
  const int result = ibv_query_pkey(place.context->verbs(), static_cast<uint8_t>(place.port),
                                    static_cast<int>(place.index), &pkey);
  if (int error = ErrorOfMinusOne(result)) return Undefined(env, "ibv_query_pkey", error);
  return Napi::Number::New(env, ntohs(pkey));
}

// -1 where no place of the table has it.
Napi::Value PkeyIndex(const Napi::CallbackInfo& info) {
  TablePlace place;
  if (!place.Read(info)) return {};
  return Napi::Number::New(info.Env(),
                           ibv_get_pkey_index(place.context->verbs(), static_cast<uint8_t>(place.port),
                                              htons(static_cast<uint16_t>(place.index))));
}

Napi::Value QueryRtValues(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto context = ContextWrap::From(info, 0, "context");
  if (!context) return {};
  ibv_values_ex values = {};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  errno = 0;
  if (int error = ErrorOfResult(ibv_query_rt_values_ex(context->verbs(), &values))) {
    return Undefined(env, "ibv_query_rt_values_ex", error);
  }
  // The provider clears what it has not filled.
  if (!(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK)) {
    return Undefined(env, "ibv_query_rt_values_ex", EOPNOTSUPP);
  }
  // tv_nsec is the whole of it: ticks of the device's clock.
  return Napi::BigInt::New(env, static_cast<uint64_t>(values.raw_clock.tv_nsec));
}

// It asks the neighbour table through netlink, and may wait for the answer.
Napi::Value ResolveEthL2(const Napi::CallbackInfo& info) {
  struct Resolution {
    ibv_ah_attr attributes = {};
    std::array<uint8_t, ETHERNET_LL_SIZE> mac = {};
    uint16_t vlan = 0xffff;  // as the library says where there is none
  };
  Arguments arguments(info);
  uint32_t* words;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint32Array(1, "words", kAddressWords, &words)) return {};
  auto resolution = std::make_shared<Resolution>();
  UnpackAddress(words, &resolution->attributes);
  std::vector<Resource::Hold> holds;
  holds.emplace_back(context);
  return PromiseWorker::Run(
      info.Env(), "ibv_resolve_eth_l2_from_gid", std::move(holds),
      [context, resolution] {
        errno = 0;
        return ErrorOfResult(ibv_resolve_eth_l2_from_gid(context->verbs(), &resolution->attributes,
                                                         resolution->mac.data(), &resolution->vlan));
      },
      [resolution](Napi::Env env) {
        Napi::Object o = Napi::Object::New(env);
        o.Set("mac", Napi::Buffer<uint8_t>::Copy(env, resolution->mac.data(), resolution->mac.size()));
        o.Set("vlan", resolution->vlan);
        return o;
      });
}

// In units of 100 Mbit/s. Since rdma-core 60.
Napi::Value QueryPortSpeed(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t port;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint32(1, "port", &port)) return {};
  static const auto query = NewerFunction<int(ibv_context*, uint32_t, uint64_t*)>("ibv_query_port_speed");
  uint64_t speed = 0;
  const int error = query ? ErrorOfResult(query(context->verbs(), port, &speed)) : ENOSYS;
  if (error) return Undefined(env, "ibv_query_port_speed", error);
  return Napi::Number::New(env, static_cast<double>(speed));
}

// The library owns the descriptor that it imports, so it gets one of its own.
Napi::Value ImportDevice(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t fd;
  if (!Arguments(info).Uint32(0, "fd", &fd)) return {};
  AddonData& addon = AddonData::Of(env);
  int error = 0;
  auto context = Context::Import(addon, static_cast<int>(fd), &error);
  if (!context) return Undefined(env, "ibv_import_device", error);
  return ContextWrap::New(env, context);
}

Napi::Value CommandFd(const Napi::CallbackInfo& info) {
  auto context = ContextWrap::From(info, 0, "context");
  if (!context) return {};
  return Napi::Number::New(info.Env(), context->verbs()->cmd_fd);
}

}  // namespace

void DefineContextQueries(Napi::Env env, Napi::Object exports) {
  exports.Set("queryGid", Napi::Function::New<QueryGid>(env, "queryGid"));
  exports.Set("queryGidEntry", Napi::Function::New<QueryGidEntry>(env, "queryGidEntry"));
  exports.Set("queryPkey", Napi::Function::New<QueryPkey>(env, "queryPkey"));
  exports.Set("pkeyIndex", Napi::Function::New<PkeyIndex>(env, "pkeyIndex"));
  exports.Set("queryRtValues", Napi::Function::New<QueryRtValues>(env, "queryRtValues"));
  exports.Set("resolveEthL2", Napi::Function::New<ResolveEthL2>(env, "resolveEthL2"));
  exports.Set("queryPortSpeed", Napi::Function::New<QueryPortSpeed>(env, "queryPortSpeed"));
  exports.Set("importDevice", Napi::Function::New<ImportDevice>(env, "importDevice"));
  exports.Set("commandFd", Napi::Function::New<CommandFd>(env, "commandFd"));
}

}  // namespace node_rdma
