#include "cm_event.h"

#include <mutex>

#include "addon_data.h"
#include "cm_event_channel.h"
#include "cm_id.h"
#include "queue_pair_attributes.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

bool IsOfMulticast(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

void CopyParameters(const rdma_cm_event& from, CmEvent* to) {
  const void* data = nullptr;
  uint8_t length = 0;
  if (to->datagram) {
    to->address = from.param.ud.ah_attr;
    to->remote_qpn = from.param.ud.qp_num;
    to->remote_qkey = from.param.ud.qkey;
    // Of a join this is no data, but what the join was given.
    if (IsOfMulticast(from.event)) {
      to->multicast = reinterpret_cast<uintptr_t>(from.param.ud.private_data);
      return;
    }
    data = from.param.ud.private_data;
    length = from.param.ud.private_data_len;
  } else {
    to->connection = from.param.conn;
    to->remote_qpn = from.param.conn.qp_num;
    data = from.param.conn.private_data;
    length = from.param.conn.private_data_len;
  }
  if (!data) return;
  const auto* bytes = static_cast<const uint8_t*>(data);
  to->private_data.assign(bytes, bytes + length);
}

}  // namespace

int TakeCmEvent(AddonData& addon, const std::shared_ptr<CmEventChannel>& channel, CmEvent* event) {
  rdma_cm_event* taken = nullptr;
  {
    // The library looks at the identifier's queue pair here, and may bring it to RTS or to ERR.
    std::lock_guard lock(addon.cm_mutex);
    errno = 0;
    if (int error = ErrorOfMinusOne(rdma_get_cm_event(channel->cm(), &taken))) return error;
  }
  // Where the library itself failed on the way it says −1, and errno tells.
  event->type = taken->event;
  event->status = taken->status == -1 && errno > 0 ? -errno : taken->status;
  // Until the event is acknowledged, what it names cannot be destroyed.
  rdma_cm_id* id = taken->event == RDMA_CM_EVENT_CONNECT_REQUEST ? taken->listen_id : taken->id;
  auto* owner = static_cast<CmId*>(id->context);
  event->id = owner->serial();
  event->datagram = id->qp_type == IBV_QPT_UD || IsOfMulticast(taken->event);
  CopyParameters(*taken, event);
  if (taken->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    event->request = CmId::Adopt(addon, channel, taken->id);
  } else {
    owner->NoteEvent(taken->event);
  }
  rdma_ack_cm_event(taken);
  return 0;
}

Napi::Object CmEvent::ToObject(Napi::Env env) {
  Napi::Object o = Napi::Object::New(env);
  o.Set("type", static_cast<int>(type));
  o.Set("status", status);
  o.Set("id", Napi::Number::New(env, static_cast<double>(id)));
  if (request) o.Set("request", CmIdWrap::New(env, request));
  if (env.IsExceptionPending()) return o;
  o.Set("remoteQpn", remote_qpn);
  o.Set("privateData", Napi::Buffer<uint8_t>::Copy(env, private_data.data(), private_data.size()));
  if (datagram) {
    auto words = Napi::Uint32Array::New(env, kAddressWords);
    PackAddress(address, words.Data());
    o.Set("address", words);
    o.Set("remoteQkey", remote_qkey);
    o.Set("multicast", Napi::Number::New(env, static_cast<double>(multicast)));
  } else {
    o.Set("responderResources", connection.responder_resources);
    o.Set("initiatorDepth", connection.initiator_depth);
    o.Set("flowControl", connection.flow_control != 0);
    o.Set("retryCount", connection.retry_count);
    o.Set("rnrRetryCount", connection.rnr_retry_count);
    o.Set("srq", connection.srq != 0);
  }
  return o;
}

}  // namespace node_rdma
