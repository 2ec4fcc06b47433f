#include "queue_pair_settings.h"

#include <infiniband/verbs.h>

#include <cstring>
#include <memory>

#include "queue_pair.h"
#include "util/arguments.h"
#include "util/plain_resource.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

// A queue pair and the multicast group that it is to join or leave.
struct Membership {
  std::shared_ptr<QueuePair> queue_pair;
  ibv_gid gid = {};
  uint32_t lid = 0;

  bool Read(const Napi::CallbackInfo& info) {
    Arguments arguments(info);
    Napi::Object view;
    void* bytes;
    size_t length;
    if (!(queue_pair = QueuePairWrap::From(info, 0, "qp")) ||
        !arguments.View(1, "gid", &view, &bytes, &length) || !arguments.Uint32(2, "lid", &lid)) {
      return false;
    }
    if (length != sizeof gid.raw) {
      AddonData::Of(info.Env()).ThrowErrno(info.Env(), "ibv_attach_mcast", EINVAL);
      return false;
    }
    std::memcpy(gid.raw, bytes, sizeof gid.raw);
    return true;
  }
};

Napi::Value AttachMcast(const Napi::CallbackInfo& info) {
  Membership membership;
  if (!membership.Read(info)) return {};
  return Undefined(info.Env(), "ibv_attach_mcast",
                   membership.queue_pair->Attach(membership.gid, static_cast<uint16_t>(membership.lid)));
}

Napi::Value DetachMcast(const Napi::CallbackInfo& info) {
  Membership membership;
  if (!membership.Read(info)) return {};
  return Undefined(info.Env(), "ibv_detach_mcast",
                   membership.queue_pair->Detach(membership.gid, static_cast<uint16_t>(membership.lid)));
}

Napi::Value SetEce(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_ece ece = {};
  auto queue_pair = QueuePairWrap::From(info, 0, "qp");
  if (!queue_pair || !arguments.Uint32(1, "vendorId", &ece.vendor_id) ||
      !arguments.Uint32(2, "options", &ece.options)) {
    return {};
  }
  errno = 0;
  return Undefined(info.Env(), "ibv_set_ece", ErrorOfResult(ibv_set_ece(queue_pair->verbs(), &ece)));
}

Napi::Value QueryEce(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto queue_pair = QueuePairWrap::From(info, 0, "qp");
  if (!queue_pair) return {};
  ibv_ece ece = {};
  errno = 0;
  if (int error = ErrorOfResult(ibv_query_ece(queue_pair->verbs(), &ece))) {
    return Undefined(env, "ibv_query_ece", error);
  }
  Napi::Object o = Napi::Object::New(env);
  o.Set("vendorId", ece.vendor_id);
  o.Set("options", ece.options);
  return o;
}

Napi::Value ModifyQpRateLimit(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_qp_rate_limit_attr attributes = {};
  uint32_t packet;
  auto queue_pair = QueuePairWrap::From(info, 0, "qp");
  if (!queue_pair || !arguments.Uint32(1, "rateLimit", &attributes.rate_limit) ||
      !arguments.Uint32(2, "maxBurstSize", &attributes.max_burst_sz) ||
      !arguments.Uint32(3, "typicalPacketSize", &packet)) {
    return {};
  }
  attributes.typical_pkt_sz = static_cast<uint16_t>(packet);
  errno = 0;
  return Undefined(info.Env(), "ibv_modify_qp_rate_limit",
                   ErrorOfResult(ibv_modify_qp_rate_limit(queue_pair->verbs(), &attributes)));
}

Napi::Value QueryQpDataInOrder(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t opcode, flags;
  auto queue_pair = QueuePairWrap::From(info, 0, "qp");
  if (!queue_pair || !arguments.Uint32(1, "opcode", &opcode) || !arguments.Uint32(2, "flags", &flags))
    return {};
  return Napi::Number::New(
      info.Env(), ibv_query_qp_data_in_order(queue_pair->verbs(), static_cast<ibv_wr_opcode>(opcode), flags));
}

}  // namespace

int QueuePair::Attach(const ibv_gid& gid, uint16_t lid) {
  errno = 0;
  const int error = ErrorOfResult(ibv_attach_mcast(verbs_, &gid, lid));
  if (error == 0) groups_.push_back({gid, lid});
  return error;
}

int QueuePair::Detach(const ibv_gid& gid, uint16_t lid) {
  errno = 0;
  const int error = ErrorOfResult(ibv_detach_mcast(verbs_, &gid, lid));
  if (error == 0) {
    std::erase_if(groups_, [&](const Group& group) {
      return group.lid == lid && std::memcmp(group.gid.raw, gid.raw, sizeof gid.raw) == 0;
    });
  }
  return error;
}

// The kernel keeps a queue pair that is a member.
void QueuePair::DetachAll() {
  for (const Group& group : groups_) ibv_detach_mcast(verbs_, &group.gid, group.lid);
}

void DefineQueuePairSettings(Napi::Env env, Napi::Object exports) {
  exports.Set("attachMcast", Napi::Function::New<AttachMcast>(env, "attachMcast"));
  exports.Set("detachMcast", Napi::Function::New<DetachMcast>(env, "detachMcast"));
  exports.Set("setEce", Napi::Function::New<SetEce>(env, "setEce"));
  exports.Set("queryEce", Napi::Function::New<QueryEce>(env, "queryEce"));
  exports.Set("modifyQpRateLimit", Napi::Function::New<ModifyQpRateLimit>(env, "modifyQpRateLimit"));
  exports.Set("queryQpDataInOrder", Napi::Function::New<QueryQpDataInOrder>(env, "queryQpDataInOrder"));
}

}  // namespace node_rdma
