#pragma once

#include <infiniband/verbs.h>
#include <napi.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace node_rdma {

class AddonData;
class CmEventChannel;
class CmId;

// An event of the connection manager, copied: the library frees it and its private data when it is
// acknowledged.
struct CmEvent {
  rdma_cm_event_type type;
  int status;                     // 0, a negative errno, or the reason of a rejection
  uint64_t id;                    // serial of the identifier; of the listener for a request
  std::shared_ptr<CmId> request;  // the new identifier that a request brings
  uint64_t multicast = 0;         // serial of the join, in the events of multicast
  bool datagram;                  // which of the two parameters is meant
  rdma_conn_param connection = {};
  ibv_ah_attr address = {};
  uint32_t remote_qpn = 0;
  uint32_t remote_qkey = 0;
  std::vector<uint8_t> private_data;

  Napi::Object ToObject(Napi::Env env);
};

// Takes the next event of a channel, which must be non-blocking, and acknowledges it. Returns 0, EAGAIN when
// there is none, or the errno for which there will be no more.
int TakeCmEvent(AddonData& addon, const std::shared_ptr<CmEventChannel>& channel, CmEvent* event);

}  // namespace node_rdma
