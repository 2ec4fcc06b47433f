#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace node_rdma {

// An asynchronous event, copied: what it is about may be gone before JavaScript hears of it.
struct AsyncEvent {
  ibv_event_type type;
  uint32_t subject;  // queue pair number, handle of a CQ, SRQ or WQ, or port; 0 where it is about the device
};

// Reads all events that a context has, which must be non-blocking, and acknowledges each at once: nothing can
// be destroyed while an event about it is not acknowledged. Returns 0, or the errno for which there will be
// no more.
int ReadAsyncEvents(ibv_context* context, std::vector<AsyncEvent>* events);

}  // namespace node_rdma
