#include "cm_id.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "context.h"
#include "protection_domain.h"
#include "queue_pair.h"
#include "queue_pair_attributes.h"
#include "socket_address.h"
#include "util/arguments.h"
#include "util/promise_worker.h"
#include "util/verbs_error.h"

namespace node_rdma {

CmId::CmId(AddonData& addon, std::shared_ptr<CmEventChannel> channel, rdma_cm_id* cm)
    : Resource(addon.registry, {channel}),
      channel_(std::move(channel)),
      cm_(cm),
      serial_(addon.NextSerial()) {
  cm_->context = this;
}

std::shared_ptr<CmId> CmId::Create(AddonData& addon, std::shared_ptr<CmEventChannel> channel,
                                   rdma_port_space port_space, int* error) {
  rdma_cm_id* cm = nullptr;
  errno = 0;
  if ((*error = ErrorOfMinusOne(rdma_create_id(channel->cm(), &cm, nullptr, port_space)))) return nullptr;
  return Adopt(addon, std::move(channel), cm);
}

std::shared_ptr<CmId> CmId::Adopt(AddonData& addon, std::shared_ptr<CmEventChannel> channel, rdma_cm_id* cm) {
  return std::shared_ptr<CmId>(new CmId(addon, std::move(channel), cm));
}

int CmId::Destroy() {
  errno = 0;
  return ErrorOfMinusOne(rdma_destroy_id(cm_));
}

int CmId::Migrate(const std::shared_ptr<CmEventChannel>& channel) {
  errno = 0;
  if (int error = ErrorOfMinusOne(rdma_migrate_id(cm_, channel->cm()))) return error;
  ReplaceParent(channel_, channel);
  channel_ = channel;
  return 0;
}

std::shared_ptr<QueuePair> CmId::queue_pair() const {
  auto queue_pair = queue_pair_.lock();
  return queue_pair && queue_pair->usable() ? queue_pair : nullptr;
}

int CmId::ApplyMinRnrTimer(QueuePair& queue_pair) const {
  if (queue_pair.type() != IBV_QPT_RC) return 0;
  ibv_qp_attr attributes = {};
  attributes.min_rnr_timer = min_rnr_timer_;
  return queue_pair.Modify(&attributes, IBV_QP_MIN_RNR_TIMER);
}

int CmId::JoinGroup(const SocketAddress& address, bool send_only, uint64_t serial) {
  SocketAddress group = address;
  rdma_cm_join_mc_attr_ex join = {};
  join.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  join.join_flags = send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;
  join.addr = group.get();
  errno = 0;
  if (int error = ErrorOfMinusOne(
          rdma_join_multicast_ex(cm_, &join, std::bit_cast<void*>(static_cast<uintptr_t>(serial)))))
    return error;
  std::lock_guard lock(groups_mutex_);
  groups_.push_back(group);
  return 0;
}

int CmId::LeaveGroup(const SocketAddress& address) {
  SocketAddress group = address;
  {
    std::lock_guard lock(groups_mutex_);
    auto joined = std::find_if(groups_.begin(), groups_.end(), [&](const SocketAddress& one) {
      return std::memcmp(&one.storage, &group.storage, sizeof group.storage) == 0;
    });
    if (joined == groups_.end()) return EADDRNOTAVAIL;
    groups_.erase(joined);
  }
  errno = 0;
  return ErrorOfMinusOne(rdma_leave_multicast(cm_, group.get()));
}

void CmId::LeaveGroups() {
  std::vector<SocketAddress> groups;
  {
    std::lock_guard lock(groups_mutex_);
    groups.swap(groups_);
  }
  for (SocketAddress& group : groups) rdma_leave_multicast(cm_, group.get());
}

void CmId::NoteQueuePair() {
  if (auto queue_pair = this->queue_pair()) queue_pair->NoteQueried();
}

void CmId::NoteEvent(rdma_cm_event_type type) {
  auto queue_pair = this->queue_pair();
  if (!queue_pair) return;
  if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED ||
      type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_DISCONNECTED) {
    queue_pair->NoteQueried();
  }
  if (type == RDMA_CM_EVENT_ESTABLISHED && queue_pair->state() == IBV_QPS_RTS) ApplyMinRnrTimer(*queue_pair);
}

namespace {

struct ConnectionParameters {
  rdma_conn_param param = {};
  uint8_t min_rnr_timer = 0;
  std::vector<uint8_t> private_data;

  // [responderResources, initiatorDepth, flowControl, retryCount, rnrRetryCount, srq, qpNum, minRnrTimer] and
  // the private data or undefined.
  bool Read(const Napi::CallbackInfo& info, size_t most_private_data);
};

bool ReadPrivateData(const Napi::CallbackInfo& info, size_t index, size_t most, std::vector<uint8_t>* out) {
  if (info[index].IsUndefined()) return true;
  Arguments arguments(info);
  Napi::Object object;
  void* data = nullptr;
  size_t length = 0;
  if (!arguments.View(index, "privateData", &object, &data, &length)) return false;
  if (length > most) {
    AddonData::Of(info.Env())
        .ThrowCode(info.Env(), "ERR_RDMA_LIMIT", "privateData is longer than its message carries");
    return false;
  }
  const auto* bytes = static_cast<const uint8_t*>(data);
  out->assign(bytes, bytes + length);
  return true;
}

bool ConnectionParameters::Read(const Napi::CallbackInfo& info, size_t most_private_data) {
  Arguments arguments(info);
  uint32_t* words;
  if (!arguments.Uint32Array(0, "parameters", 8, &words) ||
      !ReadPrivateData(info, 1, most_private_data, &private_data)) {
    return false;
  }
  param.responder_resources = static_cast<uint8_t>(words[0]);
  param.initiator_depth = static_cast<uint8_t>(words[1]);
  param.flow_control = static_cast<uint8_t>(words[2]);
  param.retry_count = static_cast<uint8_t>(words[3]);
  param.rnr_retry_count = static_cast<uint8_t>(words[4]);
  param.srq = static_cast<uint8_t>(words[5]);
  param.qp_num = words[6];
  min_rnr_timer = static_cast<uint8_t>(words[7]);
  param.private_data = private_data.empty() ? nullptr : private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  return true;
}

// What each message carries at the most, in bytes: the kernel's limits, and never more than the library's own
// buffers hold.
size_t MostPrivateData(const CmId& id, size_t of_connection, size_t of_datagrams) {
  return id.cm()->qp_type == IBV_QPT_UD ? of_datagrams : of_connection;
}

// A call on another thread that uses the identifier and the queue pair that the library made for it.
std::vector<Resource::Hold> HoldsOf(const std::shared_ptr<CmId>& id) {
  std::vector<Resource::Hold> holds;
  holds.emplace_back(id);
  if (auto queue_pair = id->queue_pair()) holds.emplace_back(queue_pair);
  return holds;
}

}  // namespace

void CmIdWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("bindAddr", &CmIdWrap::BindAddr),
                        InstanceMethod("resolveAddr", &CmIdWrap::ResolveAddr),
                        InstanceMethod("resolveRoute", &CmIdWrap::ResolveRoute),
                        InstanceMethod("createQp", &CmIdWrap::CreateQp),
                        InstanceMethod("connect", &CmIdWrap::Connect),
                        InstanceMethod("establish", &CmIdWrap::Establish),
                        InstanceMethod("listen", &CmIdWrap::Listen),
                        InstanceMethod("accept", &CmIdWrap::Accept),
                        InstanceMethod("reject", &CmIdWrap::Reject),
                        InstanceMethod("disconnect", &CmIdWrap::Disconnect),
                        InstanceMethod("notify", &CmIdWrap::Notify),
                        InstanceMethod("initQpAttr", &CmIdWrap::InitQpAttr),
                        InstanceMethod("setOption", &CmIdWrap::SetOption),
                        InstanceMethod("setLocalEce", &CmIdWrap::SetLocalEce),
                        InstanceMethod("getRemoteEce", &CmIdWrap::GetRemoteEce),
                        InstanceMethod("migrate", &CmIdWrap::Migrate),
                        InstanceMethod("joinMulticast", &CmIdWrap::JoinMulticast),
                        InstanceMethod("leaveMulticast", &CmIdWrap::LeaveMulticast),
                        InstanceMethod("route", &CmIdWrap::Route),
                        InstanceMethod("context", &CmIdWrap::GetContext),
                    });
}

Napi::Object CmIdWrap::New(Napi::Env env, const std::shared_ptr<CmId>& id) {
  Napi::Object object = Wrap::New(env, id);
  if (env.IsExceptionPending()) return {};
  object.Set("serial", Napi::Number::New(env, static_cast<double>(id->serial())));
  object.Set("portSpace", static_cast<int>(id->cm()->ps));
  object.Set("qpType", static_cast<int>(id->cm()->qp_type));
  return object;
}

std::shared_ptr<CmId> CmIdWrap::Bound(Napi::Env env, const char* syscall) {
  auto id = Open(env);
  if (id && !id->bound()) {
    AddonData::Of(env).ThrowCode(env, "ERR_RDMA_INVALID_STATE",
                                 std::string(syscall) + ": the identifier is bound to no device yet");
    return nullptr;
  }
  return id;
}

Napi::Value CmIdWrap::Check(Napi::Env env, const char* syscall, int result) {
  if (int error = ErrorOfMinusOne(result)) AddonData::Of(env).ThrowErrno(env, syscall, error);
  return env.Undefined();
}

// bindAddr(host, port)
Napi::Value CmIdWrap::BindAddr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  SocketAddress address;
  auto id = Open(info.Env());
  if (!id || !address.Read(info, arguments, 0, "address")) return {};
  errno = 0;
  return Check(info.Env(), "rdma_bind_addr", rdma_bind_addr(id->cm(), address.get()));
}

// resolveAddr(timeoutMs, host, port, sourceHost or undefined, sourcePort)
Napi::Value CmIdWrap::ResolveAddr(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t timeout;
  SocketAddress destination, source;
  auto id = Open(info.Env());
  if (!id || !arguments.Uint32(0, "timeoutMs", &timeout) ||
      !destination.Read(info, arguments, 1, "address")) {
    return {};
  }
  const bool has_source = !info[3].IsUndefined();
  if (has_source && !source.Read(info, arguments, 3, "source")) return {};
  errno = 0;
  return Check(info.Env(), "rdma_resolve_addr",
               rdma_resolve_addr(id->cm(), has_source ? source.get() : nullptr, destination.get(),
                                 static_cast<int>(timeout)));
}

// On another thread: on InfiniBand and RoCE the library first asks the ibacm service, where that runs.
Napi::Value CmIdWrap::ResolveRoute(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t timeout;
  auto id = Bound(env, "rdma_resolve_route");
  if (!id || !arguments.Uint32(0, "timeoutMs", &timeout)) return {};
  return PromiseWorker::Run(
      env, "rdma_resolve_route", HoldsOf(id),
      [id, timeout] {
        errno = 0;
        return ErrorOfMinusOne(rdma_resolve_route(id->cm(), static_cast<int>(timeout)));
      },
      [](Napi::Env done_env) { return done_env.Undefined(); });
}

// createQp(pd, type, sendCq, recvCq, srq, cap, sqSigAll, descriptors)
Napi::Value CmIdWrap::CreateQp(const Napi::CallbackInfo& info) {
  auto id = Bound(info.Env(), "rdma_create_qp");
  if (!id) return {};
  auto domain = ProtectionDomainWrap::From(info, 0, "pd");
  if (!domain) return {};
  return CreateQueuePair(info, std::move(domain), 1, id);
}

Napi::Value CmIdWrap::Connect(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Bound(env, "rdma_connect");
  auto parameters = std::make_shared<ConnectionParameters>();
  if (!id || !parameters->Read(info, MostPrivateData(*id, 56, 180))) return {};
  id->SetMinRnrTimer(parameters->min_rnr_timer);
  return PromiseWorker::Run(
      env, "rdma_connect", HoldsOf(id),
      [id, parameters] {
        errno = 0;
        return ErrorOfMinusOne(rdma_connect(id->cm(), &parameters->param));
      },
      [](Napi::Env done_env) { return done_env.Undefined(); });
}

Napi::Value CmIdWrap::Establish(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Bound(env, "rdma_establish");
  if (!id) return {};
  return PromiseWorker::Run(
      env, "rdma_establish", HoldsOf(id),
      [id] {
        errno = 0;
        return ErrorOfMinusOne(rdma_establish(id->cm()));
      },
      [](Napi::Env done_env) { return done_env.Undefined(); });
}

Napi::Value CmIdWrap::Listen(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t backlog;
  auto id = Open(info.Env());
  if (!id || !arguments.Uint32(0, "backlog", &backlog)) return {};
  errno = 0;
  return Check(info.Env(), "rdma_listen", rdma_listen(id->cm(), static_cast<int>(backlog)));
}

// On another thread: it brings the queue pair to RTR, for which the kernel may ask for the peer's address.
Napi::Value CmIdWrap::Accept(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Bound(env, "rdma_accept");
  auto parameters = std::make_shared<ConnectionParameters>();
  if (!id || !parameters->Read(info, MostPrivateData(*id, 196, 136))) return {};
  id->SetMinRnrTimer(parameters->min_rnr_timer);
  auto queue_pair = id->queue_pair();
  return PromiseWorker::Run(
      env, "rdma_accept", HoldsOf(id),
      [id, parameters, queue_pair] {
        errno = 0;
        if (int error = ErrorOfMinusOne(rdma_accept(id->cm(), &parameters->param))) return error;
        return queue_pair ? id->ApplyMinRnrTimer(*queue_pair) : 0;
      },
      [id](Napi::Env done_env) {
        id->NoteQueuePair();
        return done_env.Undefined();
      },
      [id] { id->NoteQueuePair(); });
}

// reject(privateData or undefined, withEce)
Napi::Value CmIdWrap::Reject(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  std::vector<uint8_t> data;
  bool ece;
  auto id = Open(info.Env());
  if (!id || !ReadPrivateData(info, 0, MostPrivateData(*id, 148, 136), &data) ||
      !arguments.Boolean(1, "ece", &ece)) {
    return {};
  }
  const auto length = static_cast<uint8_t>(data.size());
  errno = 0;
  if (ece) return Check(info.Env(), "rdma_reject_ece", rdma_reject_ece(id->cm(), data.data(), length));
  return Check(info.Env(), "rdma_reject", rdma_reject(id->cm(), data.data(), length));
}

Napi::Value CmIdWrap::Disconnect(const Napi::CallbackInfo& info) {
  auto id = Bound(info.Env(), "rdma_disconnect");
  if (!id) return {};
  errno = 0;
  int error = ErrorOfMinusOne(rdma_disconnect(id->cm()));
  id->NoteQueuePair();
  if (error) AddonData::Of(info.Env()).ThrowErrno(info.Env(), "rdma_disconnect", error);
  return info.Env().Undefined();
}

Napi::Value CmIdWrap::Notify(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t event;
  auto id = Open(info.Env());
  if (!id || !arguments.Uint32(0, "event", &event)) return {};
  errno = 0;
  return Check(info.Env(), "rdma_notify", rdma_notify(id->cm(), static_cast<ibv_event_type>(event)));
}

// initQpAttr(state): a word with the mask, then those of the attributes.
Napi::Value CmIdWrap::InitQpAttr(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t state;
  auto id = Bound(env, "rdma_init_qp_attr");
  if (!id || !arguments.Uint32(0, "state", &state)) return {};
  ibv_qp_attr attributes = {};
  attributes.qp_state = static_cast<ibv_qp_state>(state);
  int mask = 0;
  errno = 0;
  if (int error = ErrorOfMinusOne(rdma_init_qp_attr(id->cm(), &attributes, &mask))) {
    AddonData::Of(env).ThrowErrno(env, "rdma_init_qp_attr", error);
    return {};
  }
  auto words = Napi::Uint32Array::New(env, 1 + kQpAttributeWords);
  words[0] = static_cast<uint32_t>(mask);
  PackQpAttributes(attributes, words.Data() + 1);
  return words;
}

// setOption(level, name, bytes)
Napi::Value CmIdWrap::SetOption(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t level, name;
  Napi::Object object;
  void* data = nullptr;
  size_t length = 0;
  auto id = Open(info.Env());
  if (!id || !arguments.Uint32(0, "level", &level) || !arguments.Uint32(1, "name", &name) ||
      !arguments.View(2, "value", &object, &data, &length)) {
    return {};
  }
  errno = 0;
  return Check(info.Env(), "rdma_set_option",
               rdma_set_option(id->cm(), static_cast<int>(level), static_cast<int>(name), data, length));
}

// setLocalEce(vendorId, options)
Napi::Value CmIdWrap::SetLocalEce(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_ece ece = {};
  auto id = Open(info.Env());
  if (!id || !arguments.Uint32(0, "vendorId", &ece.vendor_id) ||
      !arguments.Uint32(1, "options", &ece.options)) {
    return {};
  }
  errno = 0;
  return Check(info.Env(), "rdma_set_local_ece", rdma_set_local_ece(id->cm(), &ece));
}

Napi::Value CmIdWrap::GetRemoteEce(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Open(env);
  if (!id) return {};
  ibv_ece ece = {};
  errno = 0;
  if (int error = ErrorOfMinusOne(rdma_get_remote_ece(id->cm(), &ece))) {
    AddonData::Of(env).ThrowErrno(env, "rdma_get_remote_ece", error);
    return {};
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("vendorId", ece.vendor_id);
  object.Set("options", ece.options);
  return object;
}

Napi::Value CmIdWrap::Migrate(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Open(env);
  if (!id) return {};
  auto channel = CmEventChannelWrap::From(info, 0, "channel");
  if (!channel) return {};
  if (int error = id->Migrate(channel)) AddonData::Of(env).ThrowErrno(env, "rdma_migrate_id", error);
  return env.Undefined();
}

// joinMulticast(host, port, sendOnly): the serial by which events name the join.
Napi::Value CmIdWrap::JoinMulticast(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  SocketAddress address;
  bool send_only;
  auto id = Bound(env, "rdma_join_multicast");
  if (!id || !address.Read(info, arguments, 0, "address") || !arguments.Boolean(2, "sendOnly", &send_only)) {
    return {};
  }
  const uint64_t serial = addon.NextSerial();
  if (int error = id->JoinGroup(address, send_only, serial)) {
    addon.ThrowErrno(env, "rdma_join_multicast_ex", error);
    return {};
  }
  return Napi::Number::New(env, static_cast<double>(serial));
}

Napi::Value CmIdWrap::LeaveMulticast(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  SocketAddress address;
  auto id = Open(info.Env());
  if (!id || !address.Read(info, arguments, 0, "address")) return {};
  if (int error = id->LeaveGroup(address)) {
    AddonData::Of(info.Env()).ThrowErrno(info.Env(), "rdma_leave_multicast", error);
  }
  return info.Env().Undefined();
}

// Where it is and where it leads, as far as that is known.
Napi::Value CmIdWrap::Route(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Open(env);
  if (!id) return {};
  const rdma_route& route = id->cm()->route;
  const rdma_ib_addr& gids = route.addr.addr.ibaddr;
  Napi::Object o = Napi::Object::New(env);
  o.Set("local", SocketAddressToJs(env, &route.addr.src_addr));
  o.Set("peer", SocketAddressToJs(env, &route.addr.dst_addr));
  o.Set("portNum", id->bound() ? id->cm()->port_num : 0);
  o.Set("sgid", Napi::Buffer<uint8_t>::Copy(env, gids.sgid.raw, sizeof gids.sgid.raw));
  o.Set("dgid", Napi::Buffer<uint8_t>::Copy(env, gids.dgid.raw, sizeof gids.dgid.raw));
  o.Set("pkey", be16toh(gids.pkey));
  return o;
}

// The context of its device, or undefined before it has one.
Napi::Value CmIdWrap::GetContext(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto id = Open(env);
  if (!id) return {};
  return id->bound() ? ContextWrap::OfConnectionManager(env, id->cm()->verbs) : env.Undefined();
}

}  // namespace node_rdma
