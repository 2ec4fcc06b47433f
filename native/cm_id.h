#pragma once

#include <infiniband/verbs.h>
#include <napi.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "addon_data.h"
#include "cm_event_channel.h"
#include "socket_address.h"
#include "util/resource.h"
#include "util/wrap.h"

namespace node_rdma {

class QueuePair;

// struct rdma_cm_id: one end of a connection, or a listener.
class CmId final : public Resource {
 public:
  static std::shared_ptr<CmId> Create(AddonData& addon, std::shared_ptr<CmEventChannel> channel,
                                      rdma_port_space port_space, int* error);
  // Takes over an identifier that the library has made, for a request.
  static std::shared_ptr<CmId> Adopt(AddonData& addon, std::shared_ptr<CmEventChannel> channel,
                                     rdma_cm_id* cm);
  ~CmId() override { Close(); }

  rdma_cm_id* cm() const { return cm_; }
  // By which events name it.
  uint64_t serial() const { return serial_; }
  // True once an address has bound it to a device; before that, much of the library would follow a null
  // pointer.
  bool bound() const { return cm_->verbs != nullptr; }

  // Where events go from now on.
  int Migrate(const std::shared_ptr<CmEventChannel>& channel);

  // The queue pair that the library made for it and changes by itself; null where there is none.
  std::shared_ptr<QueuePair> queue_pair() const;
  void SetQueuePair(const std::shared_ptr<QueuePair>& queue_pair) { queue_pair_ = queue_pair; }

  // Code of the time that the queue pair tells a peer to wait when no receive was posted. The library leaves
  // it at 0, which is 655 ms.
  void SetMinRnrTimer(uint8_t code) { min_rnr_timer_ = code; }
  // Any thread: gives it to the queue pair, which must be in RTS.
  int ApplyMinRnrTimer(QueuePair& queue_pair) const;

  // Groups that it has joined, or tries to. Its queue pair cannot be destroyed while it is in one.
  int JoinGroup(const SocketAddress& address, bool send_only, uint64_t serial);
  int LeaveGroup(const SocketAddress& address);
  void LeaveGroups();

  // An event of the identifier: what the library has done to the queue pair is noted.
  void NoteEvent(rdma_cm_event_type type);
  void NoteQueuePair();

 protected:
  int Destroy() override;

 private:
  CmId(AddonData& addon, std::shared_ptr<CmEventChannel> channel, rdma_cm_id* cm);

  std::shared_ptr<CmEventChannel> channel_;
  rdma_cm_id* cm_;
  uint64_t serial_;
  uint8_t min_rnr_timer_ = 0;
  std::weak_ptr<QueuePair> queue_pair_;
  std::mutex groups_mutex_;
  std::vector<SocketAddress> groups_;
};

class CmIdWrap final : public Wrap<CmIdWrap, CmId> {
 public:
  static constexpr Kind kKind = Kind::kCmId;
  static constexpr const char* kName = "CmId";
  static constexpr const char* kDestroy = "rdma_destroy_id";
  static constexpr napi_type_tag kTag = {0x7be9302d4c8a4f16, 0x96d20c5be1f34a87};

  static void Define(Napi::Env env);
  static Napi::Object New(Napi::Env env, const std::shared_ptr<CmId>& id);
  using Wrap::Wrap;

 private:
  // The identifier while it is open and bound to a device; null with an exception pending.
  std::shared_ptr<CmId> Bound(Napi::Env env, const char* syscall);
  Napi::Value Check(Napi::Env env, const char* syscall, int result);

  Napi::Value BindAddr(const Napi::CallbackInfo& info);
  Napi::Value ResolveAddr(const Napi::CallbackInfo& info);
  Napi::Value ResolveRoute(const Napi::CallbackInfo& info);
  Napi::Value CreateQp(const Napi::CallbackInfo& info);
  Napi::Value Connect(const Napi::CallbackInfo& info);
  Napi::Value Establish(const Napi::CallbackInfo& info);
  Napi::Value Listen(const Napi::CallbackInfo& info);
  Napi::Value Accept(const Napi::CallbackInfo& info);
  Napi::Value Reject(const Napi::CallbackInfo& info);
  Napi::Value Disconnect(const Napi::CallbackInfo& info);
  Napi::Value Notify(const Napi::CallbackInfo& info);
  Napi::Value InitQpAttr(const Napi::CallbackInfo& info);
  Napi::Value SetOption(const Napi::CallbackInfo& info);
  Napi::Value SetLocalEce(const Napi::CallbackInfo& info);
  Napi::Value GetRemoteEce(const Napi::CallbackInfo& info);
  Napi::Value Migrate(const Napi::CallbackInfo& info);
  Napi::Value JoinMulticast(const Napi::CallbackInfo& info);
  Napi::Value LeaveMulticast(const Napi::CallbackInfo& info);
  Napi::Value Route(const Napi::CallbackInfo& info);
  Napi::Value GetContext(const Napi::CallbackInfo& info);
};

}  // namespace node_rdma
