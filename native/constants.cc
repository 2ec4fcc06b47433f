#include "constants.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>

#include "descriptors.h"
#include "queue_pair_attributes.h"

namespace node_rdma {

Napi::Value HeaderConstants(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Object all = Napi::Object::New(env);
  Napi::Object group;
  auto open = [&](const char* name) {
    group = Napi::Object::New(env);
    all.Set(name, group);
  };
  auto put = [&](const char* name, double value) { group.Set(name, Napi::Number::New(env, value)); };
#define PUT(name) put(#name, static_cast<double>(name))

  open("verbs");
  PUT(IBV_ACCESS_LOCAL_WRITE);
  PUT(IBV_ACCESS_REMOTE_WRITE);
  PUT(IBV_ACCESS_REMOTE_READ);
  PUT(IBV_ACCESS_REMOTE_ATOMIC);
  PUT(IBV_ACCESS_MW_BIND);
  PUT(IBV_ACCESS_ZERO_BASED);
  PUT(IBV_ACCESS_ON_DEMAND);
  PUT(IBV_ACCESS_HUGETLB);
  PUT(IBV_ACCESS_RELAXED_ORDERING);
  PUT(IBV_DEVICE_RESIZE_MAX_WR);
  PUT(IBV_DEVICE_BAD_PKEY_CNTR);
  PUT(IBV_DEVICE_BAD_QKEY_CNTR);
  PUT(IBV_DEVICE_RAW_MULTI);
  PUT(IBV_DEVICE_AUTO_PATH_MIG);
  PUT(IBV_DEVICE_CHANGE_PHY_PORT);
  PUT(IBV_DEVICE_UD_AV_PORT_ENFORCE);
  PUT(IBV_DEVICE_CURR_QP_STATE_MOD);
  PUT(IBV_DEVICE_SHUTDOWN_PORT);
  PUT(IBV_DEVICE_INIT_TYPE);
  PUT(IBV_DEVICE_PORT_ACTIVE_EVENT);
  PUT(IBV_DEVICE_SYS_IMAGE_GUID);
  PUT(IBV_DEVICE_RC_RNR_NAK_GEN);
  PUT(IBV_DEVICE_SRQ_RESIZE);
  PUT(IBV_DEVICE_N_NOTIFY_CQ);
  PUT(IBV_DEVICE_MEM_WINDOW);
  PUT(IBV_DEVICE_UD_IP_CSUM);
  PUT(IBV_DEVICE_XRC);
  PUT(IBV_DEVICE_MEM_MGT_EXTENSIONS);
  PUT(IBV_DEVICE_MEM_WINDOW_TYPE_2A);
  PUT(IBV_DEVICE_MEM_WINDOW_TYPE_2B);
  PUT(IBV_DEVICE_RC_IP_CSUM);
  PUT(IBV_DEVICE_RAW_IP_CSUM);
  PUT(IBV_DEVICE_MANAGED_FLOW_STEERING);
  PUT(IBV_SEND_FENCE);
  PUT(IBV_SEND_SIGNALED);
  PUT(IBV_SEND_SOLICITED);
  PUT(IBV_SEND_INLINE);
  PUT(IBV_WR_RDMA_WRITE);
  PUT(IBV_WR_RDMA_WRITE_WITH_IMM);
  PUT(IBV_WR_SEND);
  PUT(IBV_WR_SEND_WITH_IMM);
  PUT(IBV_WR_RDMA_READ);
  PUT(IBV_WR_ATOMIC_CMP_AND_SWP);
  PUT(IBV_WR_ATOMIC_FETCH_AND_ADD);
  PUT(IBV_WR_SEND_WITH_INV);
  PUT(IBV_WC_SEND);
  PUT(IBV_WC_RDMA_WRITE);
  PUT(IBV_WC_RDMA_READ);
  PUT(IBV_WC_COMP_SWAP);
  PUT(IBV_WC_FETCH_ADD);
  PUT(IBV_WC_BIND_MW);
  PUT(IBV_WC_LOCAL_INV);
  PUT(IBV_WC_RECV);
  PUT(IBV_WC_RECV_RDMA_WITH_IMM);
  PUT(IBV_WC_GRH);
  PUT(IBV_WC_WITH_IMM);
  PUT(IBV_WC_WITH_INV);
  PUT(IBV_WC_SUCCESS);
  PUT(IBV_WC_LOC_LEN_ERR);
  PUT(IBV_WC_LOC_QP_OP_ERR);
  PUT(IBV_WC_LOC_EEC_OP_ERR);
  PUT(IBV_WC_LOC_PROT_ERR);
  PUT(IBV_WC_WR_FLUSH_ERR);
  PUT(IBV_WC_MW_BIND_ERR);
  PUT(IBV_WC_BAD_RESP_ERR);
  PUT(IBV_WC_LOC_ACCESS_ERR);
  PUT(IBV_WC_REM_INV_REQ_ERR);
  PUT(IBV_WC_REM_ACCESS_ERR);
  PUT(IBV_WC_REM_OP_ERR);
  PUT(IBV_WC_RETRY_EXC_ERR);
  PUT(IBV_WC_RNR_RETRY_EXC_ERR);
  PUT(IBV_WC_LOC_RDD_VIOL_ERR);
  PUT(IBV_WC_REM_INV_RD_REQ_ERR);
  PUT(IBV_WC_REM_ABORT_ERR);
  PUT(IBV_WC_INV_EECN_ERR);
  PUT(IBV_WC_INV_EEC_STATE_ERR);
  PUT(IBV_WC_FATAL_ERR);
  PUT(IBV_WC_RESP_TIMEOUT_ERR);
  PUT(IBV_WC_GENERAL_ERR);
  PUT(IBV_WC_TM_ERR);
  PUT(IBV_WC_TM_RNDV_INCOMPLETE);
  PUT(IBV_QPT_RC);
  PUT(IBV_QPT_UC);
  PUT(IBV_QPT_UD);
  PUT(IBV_QPS_RESET);
  PUT(IBV_QPS_INIT);
  PUT(IBV_QPS_RTR);
  PUT(IBV_QPS_RTS);
  PUT(IBV_QPS_SQD);
  PUT(IBV_QPS_SQE);
  PUT(IBV_QPS_ERR);
  PUT(IBV_QP_STATE);
  PUT(IBV_QP_CUR_STATE);
  PUT(IBV_QP_EN_SQD_ASYNC_NOTIFY);
  PUT(IBV_QP_ACCESS_FLAGS);
  PUT(IBV_QP_PKEY_INDEX);
  PUT(IBV_QP_PORT);
  PUT(IBV_QP_QKEY);
  PUT(IBV_QP_AV);
  PUT(IBV_QP_PATH_MTU);
  PUT(IBV_QP_TIMEOUT);
  PUT(IBV_QP_RETRY_CNT);
  PUT(IBV_QP_RNR_RETRY);
  PUT(IBV_QP_RQ_PSN);
  PUT(IBV_QP_MAX_QP_RD_ATOMIC);
  PUT(IBV_QP_ALT_PATH);
  PUT(IBV_QP_MIN_RNR_TIMER);
  PUT(IBV_QP_SQ_PSN);
  PUT(IBV_QP_MAX_DEST_RD_ATOMIC);
  PUT(IBV_QP_PATH_MIG_STATE);
  PUT(IBV_QP_CAP);
  PUT(IBV_QP_DEST_QPN);
  PUT(IBV_QP_RATE_LIMIT);
  PUT(IBV_MTU_256);
  PUT(IBV_MTU_512);
  PUT(IBV_MTU_1024);
  PUT(IBV_MTU_2048);
  PUT(IBV_MTU_4096);
  PUT(IBV_MIG_MIGRATED);
  PUT(IBV_MIG_REARM);
  PUT(IBV_MIG_ARMED);
  PUT(IBV_NODE_CA);
  PUT(IBV_NODE_SWITCH);
  PUT(IBV_NODE_ROUTER);
  PUT(IBV_NODE_RNIC);
  PUT(IBV_NODE_USNIC);
  PUT(IBV_NODE_USNIC_UDP);
  PUT(IBV_NODE_UNSPECIFIED);
  PUT(IBV_TRANSPORT_IB);
  PUT(IBV_TRANSPORT_IWARP);
  PUT(IBV_TRANSPORT_USNIC);
  PUT(IBV_TRANSPORT_USNIC_UDP);
  PUT(IBV_TRANSPORT_UNSPECIFIED);
  PUT(IBV_TRANSPORT_UNKNOWN);
  PUT(IBV_PORT_NOP);
  PUT(IBV_PORT_DOWN);
  PUT(IBV_PORT_INIT);
  PUT(IBV_PORT_ARMED);
  PUT(IBV_PORT_ACTIVE);
  PUT(IBV_PORT_ACTIVE_DEFER);
  PUT(IBV_LINK_LAYER_UNSPECIFIED);
  PUT(IBV_LINK_LAYER_INFINIBAND);
  PUT(IBV_LINK_LAYER_ETHERNET);
  PUT(IBV_ATOMIC_NONE);
  PUT(IBV_ATOMIC_HCA);
  PUT(IBV_ATOMIC_GLOB);
  PUT(IBV_GID_TYPE_IB);
  PUT(IBV_GID_TYPE_ROCE_V1);
  PUT(IBV_GID_TYPE_ROCE_V2);
  PUT(IBV_EVENT_CQ_ERR);
  PUT(IBV_EVENT_QP_FATAL);
  PUT(IBV_EVENT_QP_REQ_ERR);
  PUT(IBV_EVENT_QP_ACCESS_ERR);
  PUT(IBV_EVENT_COMM_EST);
  PUT(IBV_EVENT_SQ_DRAINED);
  PUT(IBV_EVENT_PATH_MIG);
  PUT(IBV_EVENT_PATH_MIG_ERR);
  PUT(IBV_EVENT_DEVICE_FATAL);
  PUT(IBV_EVENT_PORT_ACTIVE);
  PUT(IBV_EVENT_PORT_ERR);
  PUT(IBV_EVENT_LID_CHANGE);
  PUT(IBV_EVENT_PKEY_CHANGE);
  PUT(IBV_EVENT_SM_CHANGE);
  PUT(IBV_EVENT_SRQ_ERR);
  PUT(IBV_EVENT_SRQ_LIMIT_REACHED);
  PUT(IBV_EVENT_QP_LAST_WQE_REACHED);
  PUT(IBV_EVENT_CLIENT_REREGISTER);
  PUT(IBV_EVENT_GID_CHANGE);
  PUT(IBV_EVENT_WQ_FATAL);

  open("connectionManager");
  PUT(RDMA_PS_IPOIB);
  PUT(RDMA_PS_TCP);
  PUT(RDMA_PS_UDP);
  PUT(RDMA_PS_IB);
  PUT(RDMA_CM_EVENT_ADDR_RESOLVED);
  PUT(RDMA_CM_EVENT_ADDR_ERROR);
  PUT(RDMA_CM_EVENT_ROUTE_RESOLVED);
  PUT(RDMA_CM_EVENT_ROUTE_ERROR);
  PUT(RDMA_CM_EVENT_CONNECT_REQUEST);
  PUT(RDMA_CM_EVENT_CONNECT_RESPONSE);
  PUT(RDMA_CM_EVENT_CONNECT_ERROR);
  PUT(RDMA_CM_EVENT_UNREACHABLE);
  PUT(RDMA_CM_EVENT_REJECTED);
  PUT(RDMA_CM_EVENT_ESTABLISHED);
  PUT(RDMA_CM_EVENT_DISCONNECTED);
  PUT(RDMA_CM_EVENT_DEVICE_REMOVAL);
  PUT(RDMA_CM_EVENT_MULTICAST_JOIN);
  PUT(RDMA_CM_EVENT_MULTICAST_ERROR);
  PUT(RDMA_CM_EVENT_ADDR_CHANGE);
  PUT(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  PUT(RDMA_OPTION_ID);
  PUT(RDMA_OPTION_ID_TOS);
  PUT(RDMA_OPTION_ID_REUSEADDR);
  PUT(RDMA_OPTION_ID_AFONLY);
  PUT(RDMA_OPTION_ID_ACK_TIMEOUT);
  PUT(RDMA_OPTION_IB);
  PUT(RDMA_OPTION_IB_PATH);
  PUT(RAI_PASSIVE);
  PUT(RAI_NUMERICHOST);
  PUT(RAI_NOROUTE);
  PUT(RAI_FAMILY);

  open("sendDescriptor");
  put("size", sizeof(SendDescriptor));
  put("opcode", offsetof(SendDescriptor, opcode));
  put("flags", offsetof(SendDescriptor, flags));
  put("sgeCount", offsetof(SendDescriptor, sge_count));
  put("id", offsetof(SendDescriptor, id));
  put("sge", offsetof(SendDescriptor, sge));
  put("immData", offsetof(SendDescriptor, imm_data));
  put("rkey", offsetof(SendDescriptor, rkey));
  put("remoteAddress", offsetof(SendDescriptor, remote_address));
  put("compareAdd", offsetof(SendDescriptor, compare_add));
  put("swap", offsetof(SendDescriptor, swap));
  put("idHigh", offsetof(SendDescriptor, id_high));

  open("receiveDescriptor");
  put("size", sizeof(ReceiveDescriptor));
  put("sgeCount", offsetof(ReceiveDescriptor, sge_count));
  put("id", offsetof(ReceiveDescriptor, id));
  put("sge", offsetof(ReceiveDescriptor, sge));
  put("idHigh", offsetof(ReceiveDescriptor, id_high));

  open("scatterGatherElement");
  put("size", sizeof(ScatterGatherElement));
  put("mr", offsetof(ScatterGatherElement, mr));
  put("length", offsetof(ScatterGatherElement, length));
  put("offset", offsetof(ScatterGatherElement, offset));

  open("completionRecord");
  put("size", sizeof(CompletionRecord));
  put("id", offsetof(CompletionRecord, id));
  put("status", offsetof(CompletionRecord, status));
  put("opcode", offsetof(CompletionRecord, opcode));
  put("flags", offsetof(CompletionRecord, flags));
  put("dlidPathBits", offsetof(CompletionRecord, dlid_path_bits));
  put("byteLength", offsetof(CompletionRecord, byte_length));
  put("immData", offsetof(CompletionRecord, imm_data));
  put("qpNum", offsetof(CompletionRecord, qp_num));
  put("pkeyIndex", offsetof(CompletionRecord, pkey_index));
  put("sourceLid", offsetof(CompletionRecord, source_lid));

  open("queueCounters");
  put("size", sizeof(QueueCounters));
  put("posted", offsetof(QueueCounters, posted));
  put("ended", offsetof(QueueCounters, ended));
  put("capacity", offsetof(QueueCounters, capacity));
  put("wanted", offsetof(QueueCounters, wanted));

  open("completionCounters");
  put("size", sizeof(CompletionCounters));
  put("outstanding", offsetof(CompletionCounters, outstanding));
  put("entries", offsetof(CompletionCounters, entries));
  put("limit", offsetof(CompletionCounters, limit));
  put("filled", offsetof(CompletionCounters, filled));

  open("other");
  put("inlineArea", kInlineArea);
  put("qpAttributeWords", kQpAttributeWords);
#undef PUT
  return all;
}

}  // namespace node_rdma
