#include "async_events.h"

#include "util/verbs_error.h"

namespace node_rdma {

namespace {

uint32_t SubjectOf(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return event.element.cq->handle;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp->qp_num;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return event.element.srq->handle;
    case IBV_EVENT_WQ_FATAL:
      return event.element.wq->handle;
    case IBV_EVENT_DEVICE_FATAL:
      return 0;
    default:
      return static_cast<uint32_t>(event.element.port_num);
  }
}

}  // namespace

int ReadAsyncEvents(ibv_context* context, std::vector<AsyncEvent>* events) {
  for (;;) {
    ibv_async_event event;
    errno = 0;
    if (int error = ErrorOfMinusOne(ibv_get_async_event(context, &event))) {
      return error == EAGAIN || error == EINTR ? 0 : error;
    }
    events->push_back({event.event_type, SubjectOf(event)});
    ibv_ack_async_event(&event);
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) return EIO;
  }
}

}  // namespace node_rdma
