// A device that does nothing: requests complete when they are posted, and the next poll returns them. Preloaded before libibverbs,
// it takes the place of the functions that a benchmark of the data path calls, so that what is measured is the caller's own cost.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// The header calls newer functions through the context, which has none of them here, and then those with these names.
#undef ibv_query_port
#undef ibv_reg_mr

// What is left of a request when it has completed.
struct entry {
  uint64_t wr_id;
  uint32_t qp_num;
  uint32_t byte_len;
  enum ibv_wc_opcode opcode;
};

struct null_cq {
  struct ibv_cq cq;
  uint32_t added;
  uint32_t taken;
  uint32_t mask;
  struct entry *entries;
};

struct null_qp {
  struct ibv_qp qp;
  int signal_all;
};

static struct ibv_device device = {
    .node_type = IBV_NODE_CA,
    .transport_type = IBV_TRANSPORT_IB,
    .name = "null0",
    .dev_name = "uverbs_null0",
};

static int add(struct ibv_cq *cq, const struct ibv_qp *qp, uint64_t wr_id, const struct ibv_sge *elements, int count,
               enum ibv_wc_opcode opcode) {
  struct null_cq *queue = (struct null_cq *)cq;
  if (queue->added - queue->taken > queue->mask) return ENOMEM;
  uint32_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += elements[i].length;
  queue->entries[queue->added++ & queue->mask] = (struct entry){wr_id, qp->qp_num, bytes, opcode};
  return 0;
}

static enum ibv_wc_opcode completion_of(enum ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad) {
  const int signal_all = ((struct null_qp *)qp)->signal_all;
  for (; request; request = request->next) {
    if (!signal_all && !(request->send_flags & IBV_SEND_SIGNALED)) continue;
    const int error = add(qp->send_cq, qp, request->wr_id, request->sg_list, request->num_sge,
                          completion_of(request->opcode));
    if (error) {
      *bad = request;
      return error;
    }
  }
  return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad) {
  for (; request; request = request->next) {
    const int error = add(qp->recv_cq, qp, request->wr_id, request->sg_list, request->num_sge, IBV_WC_RECV);
    if (error) {
      *bad = request;
      return error;
    }
  }
  return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *completions) {
  struct null_cq *queue = (struct null_cq *)cq;
  int count = 0;
  for (; count < most && queue->taken != queue->added; ++count) {
    const struct entry *entry = &queue->entries[queue->taken++ & queue->mask];
    completions[count] = (struct ibv_wc){
        .wr_id = entry->wr_id, .opcode = entry->opcode, .byte_len = entry->byte_len, .qp_num = entry->qp_num};
  }
  return count;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only) {
  (void)cq;
  (void)solicited_only;
  return 0;
}

struct ibv_device **ibv_get_device_list(int *count) {
  struct ibv_device **list = calloc(2, sizeof *list);
  list[0] = &device;
  if (count) *count = 1;
  return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }

__be64 ibv_get_device_guid(struct ibv_device *of) {
  (void)of;
  return htobe64(1);
}

int ibv_get_device_index(struct ibv_device *of) {
  (void)of;
  return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *of) {
  struct ibv_context *context = calloc(1, sizeof *context);
  context->device = of;
  context->cmd_fd = -1;
  context->async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  context->num_comp_vectors = 1;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  return context;
}

int ibv_close_device(struct ibv_context *context) {
  close(context->async_fd);
  free(context);
  return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes) {
  (void)context;
  *attributes = (struct ibv_device_attr){
      .node_guid = htobe64(1),
      .max_mr_size = UINT64_MAX,
      .max_qp = 1 << 16,
      .max_qp_wr = 1 << 14,
      .max_sge = 16,
      .max_cq = 1 << 16,
      .max_cqe = 1 << 20,
      .max_mr = 1 << 16,
      .max_pd = 1 << 16,
      .max_qp_rd_atom = 16,
      .max_qp_init_rd_atom = 16,
      .max_res_rd_atom = 1 << 20,
      .atomic_cap = IBV_ATOMIC_HCA,
      .max_ah = 1 << 16,
      .phys_port_cnt = 1,
  };
  return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compatible) {
  (void)context;
  (void)port;
  const struct ibv_port_attr attributes = {
      .state = IBV_PORT_ACTIVE,
      .max_mtu = IBV_MTU_4096,
      .active_mtu = IBV_MTU_1024,
      .gid_tbl_len = 1,
      .max_msg_sz = 1u << 31,
      .pkey_tbl_len = 1,
      .link_layer = IBV_LINK_LAYER_ETHERNET,
  };
  // What the older structure has; the caller has zeroed the rest.
  memcpy(compatible, &attributes, offsetof(struct ibv_port_attr, port_cap_flags2));
  return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most, uint32_t flags,
                             size_t entry_size) {
  (void)context;
  (void)flags;
  if (most == 0) return -EINVAL;
  memset(entries, 0, entry_size);
  inet_pton(AF_INET6, "::ffff:192.0.2.1", entries->gid.raw);
  entries->port_num = 1;
  entries->gid_type = IBV_GID_TYPE_ROCE_V2;
  return 1;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  struct ibv_pd *pd = calloc(1, sizeof *pd);
  pd->context = context;
  return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
  free(pd);
  return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access) {
  (void)iova;
  (void)access;
  static uint32_t key;
  struct ibv_mr *mr = calloc(1, sizeof *mr);
  *mr = (struct ibv_mr){pd->context, pd, address, length, ++key, key, key};
  return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access) {
  return ibv_reg_mr_iova2(pd, address, length, (uintptr_t)address, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr) {
  free(mr);
  return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                             struct ibv_comp_channel *channel, int vector) {
  (void)vector;
  static uint32_t handle;
  struct null_cq *queue = calloc(1, sizeof *queue);
  uint32_t size = 1;
  while (size < (uint32_t)entries) size <<= 1;
  queue->mask = size - 1;
  queue->entries = calloc(size, sizeof *queue->entries);
  queue->cq.context = context;
  queue->cq.channel = channel;
  queue->cq.cq_context = cq_context;
  queue->cq.handle = ++handle;
  queue->cq.cqe = entries;
  return &queue->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
  free(((struct null_cq *)cq)->entries);
  free(cq);
  return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
  static uint32_t number;
  struct null_qp *queue = calloc(1, sizeof *queue);
  queue->signal_all = init->sq_sig_all;
  queue->qp.context = pd->context;
  queue->qp.qp_context = init->qp_context;
  queue->qp.pd = pd;
  queue->qp.send_cq = init->send_cq;
  queue->qp.recv_cq = init->recv_cq;
  queue->qp.handle = queue->qp.qp_num = ++number;
  queue->qp.qp_type = init->qp_type;
  return &queue->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp) {
  free(qp);
  return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
  if (mask & IBV_QP_STATE) qp->state = attributes->qp_state;
  return 0;
}
