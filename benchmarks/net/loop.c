// loop DEVICE_A DEVICE_B BYTES MESSAGES: messages from one device to the other with both ends in this process, as node-rdma/net sends
// them: copied into slots of 16 KiB behind a header, with credits that the receiver gives back, and copied out again. Prints the seconds.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 32, CONTROL = 8, SLOT = 16384, HEADER = 16, PORT = 1 };

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  union ibv_gid gid;
  int gid_index;
  enum ibv_mtu mtu;
  // Slots for what comes, and then slabs for what goes.
  char* memory;
};

static void require(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static struct ibv_context* open_device(const char* name) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  for (int i = 0; list && list[i]; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) return ibv_open_device(list[i]);
  }
  return NULL;
}

/* A GID of RoCE v2 that stands for an IPv4 address. */
static void choose_gid(struct end* end) {
  static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  struct ibv_gid_entry entries[64];
  const ssize_t count = ibv_query_gid_table(end->context, entries, 64, 0);
  for (ssize_t i = 0; i < count; ++i) {
    if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 || memcmp(entries[i].gid.raw, mapped, 12) != 0) continue;
    end->gid = entries[i].gid;
    end->gid_index = (int)entries[i].gid_index;
    return;
  }
  require(0, "no GID of RoCE v2 with an IPv4 address");
}

static void open_end(struct end* end, const char* device) {
  require((end->context = open_device(device)) != NULL, device);
  choose_gid(end);
  struct ibv_port_attr port;
  require(ibv_query_port(end->context, PORT, &port) == 0, "ibv_query_port");
  end->mtu = port.active_mtu;
  require((end->pd = ibv_alloc_pd(end->context)) != NULL, "ibv_alloc_pd");
  require((end->cq = ibv_create_cq(end->context, 4 * SLOTS, NULL, NULL, 0)) != NULL, "ibv_create_cq");
  const size_t bytes = 2 * (SLOTS + CONTROL) * SLOT;
  require((end->memory = aligned_alloc(4096, bytes)) != NULL, "aligned_alloc");
  memset(end->memory, 0, bytes);
  require((end->mr = ibv_reg_mr(end->pd, end->memory, bytes, IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
  struct ibv_qp_init_attr init = {
      .send_cq = end->cq,
      .recv_cq = end->cq,
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
      .cap = {.max_send_wr = SLOTS + CONTROL, .max_recv_wr = SLOTS + CONTROL, .max_send_sge = 1, .max_recv_sge = 1}};
  require((end->qp = ibv_create_qp(end->pd, &init)) != NULL, "ibv_create_qp");
}

static void connect_to(struct end* end, const struct end* peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
  require(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = end->mtu < peer->mtu ? end->mtu : peer->mtu,
                              .dest_qp_num = peer->qp->qp_num,
                              .min_rnr_timer = 12,
                              .max_dest_rd_atomic = 1,
                              .ah_attr = {.is_global = 1, .port_num = PORT}};
  attr.ah_attr.grh.dgid = peer->gid;
  attr.ah_attr.grh.sgid_index = (uint8_t)end->gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  require(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1};
  require(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "RTS");
}

static void receive(struct end* end, uint32_t slot) {
  struct ibv_sge sge = {(uintptr_t)(end->memory + (size_t)slot * SLOT), SLOT, end->mr->lkey};
  struct ibv_recv_wr request = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
  require(ibv_post_recv(end->qp, &request, &bad) == 0, "ibv_post_recv");
}

static char* slab_of(struct end* end, uint32_t slab) { return end->memory + (size_t)(SLOTS + CONTROL + slab) * SLOT; }

static void post(struct end* end, uint32_t slab, uint32_t bytes) {
  struct ibv_sge sge = {(uintptr_t)slab_of(end, slab), bytes, end->mr->lkey};
  struct ibv_send_wr request = {
      .wr_id = slab, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad;
  require(ibv_post_send(end->qp, &request, &bad) == 0, "ibv_post_send");
}

static int poll_some(struct end* end, struct ibv_wc* completions) {
  const int count = ibv_poll_cq(end->cq, SLOTS, completions);
  for (int i = 0; i < count; ++i) {
    if (completions[i].status == IBV_WC_SUCCESS) continue;
    fprintf(stderr, "%s\n", ibv_wc_status_str(completions[i].status));
    exit(1);
  }
  return count;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  require(argc == 5, "usage: loop DEVICE_A DEVICE_B BYTES MESSAGES");
  const uint64_t bytes = strtoull(argv[3], NULL, 10), messages = strtoull(argv[4], NULL, 10);
  struct end a, b;
  open_end(&a, argv[1]);
  open_end(&b, argv[2]);
  connect_to(&a, &b);
  connect_to(&b, &a);
  for (uint32_t slot = 0; slot < SLOTS + CONTROL; ++slot) {
    receive(&a, slot);
    receive(&b, slot);
  }
  char* source = calloc(1, bytes);
  char* target = calloc(1, bytes);
  require(source && target, "calloc");

  struct ibv_wc completions[SLOTS];
  uint32_t slabs[SLOTS], free_slabs = SLOTS, credits = SLOTS, to_return = 0, control = 0;
  for (uint32_t i = 0; i < SLOTS; ++i) slabs[i] = i;
  uint64_t sent = 0, sent_of_message = 0, came = 0, came_of_message = 0;
  const double began = now();
  while (came < messages || free_slabs < SLOTS) {
    while (sent < messages && credits > 0 && free_slabs > 0) {
      const uint32_t slab = slabs[--free_slabs];
      const uint64_t left = bytes - sent_of_message;
      const uint32_t part = left < SLOT - HEADER ? (uint32_t)left : SLOT - HEADER;
      *(uint32_t*)slab_of(&a, slab) = part;
      memcpy(slab_of(&a, slab) + HEADER, source + sent_of_message, part);
      post(&a, slab, HEADER + part);
      --credits;
      if ((sent_of_message += part) < bytes) continue;
      sent_of_message = 0;
      ++sent;
    }
    int count = poll_some(&a, completions);
    for (int i = 0; i < count; ++i) {
      const uint32_t place = (uint32_t)completions[i].wr_id;
      if (completions[i].opcode == IBV_WC_SEND) {
        slabs[free_slabs++] = place;
      } else {
        credits += *(uint32_t*)(a.memory + (size_t)place * SLOT);
        receive(&a, place);
      }
    }
    count = poll_some(&b, completions);
    for (int i = 0; i < count; ++i) {
      if (completions[i].opcode == IBV_WC_SEND) continue;
      const uint32_t place = (uint32_t)completions[i].wr_id;
      const char* frame = b.memory + (size_t)place * SLOT;
      const uint32_t part = *(const uint32_t*)frame;
      memcpy(target + came_of_message, frame + HEADER, part);
      receive(&b, place);
      ++to_return;
      if ((came_of_message += part) < bytes) continue;
      came_of_message = 0;
      ++came;
    }
    if (to_return < SLOTS / 2) continue;
    *(uint32_t*)slab_of(&b, control) = to_return;
    post(&b, control, HEADER);
    control = (control + 1) % CONTROL;
    to_return = 0;
  }
  printf("%.6f\n", now() - began);
  return 0;
}
