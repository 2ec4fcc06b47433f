// The C side of the comparison on a device: both ends in one process, as bench.js and bench.py have them.
//
// bench DEVICE_A DEVICE_B: reads commands from standard input, and answers each with one number on a line of its own.
//
//   bandwidth VERB SIZE WINDOW SIGNAL QPS MESSAGES    messages per second; MESSAGES for each queue pair
//   latency VERB SIZE WAIT ROUNDS                     half a round in microseconds, the median; WAIT: poll or events
//   delay SIZE WINDOW MILLISECONDS                    99th percentile of how late a sleep of 1 ms ends while another
//                                                     thread streams writes, in milliseconds
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  kMostWindow = 128,
  kReceives = 256,
  kPollBatch = 16,
  kMemory = 4 << 20,
  kMostQueuePairs = 1024,
};

struct end {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_mr *mr;
  union ibv_gid gid;
  int gid_index;
  enum ibv_mtu mtu;
};

// A queue pair for each connection, and one completion queue for each end.
struct session {
  int queue_pairs;
  struct ibv_comp_channel *channel[2];
  struct ibv_cq *cq[2];
  struct ibv_qp **qp[2];
};

static struct end ends[2];

static void fail(const char *what) {
  fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// The GID of type RoCE v2 with an IPv4 address.
static void choose_gid(struct end *end) {
  struct ibv_gid_entry entries[64];
  const ssize_t count = ibv_query_gid_table(end->context, entries, 64, 0);
  static const uint8_t kMapped[12] = {[10] = 0xff, [11] = 0xff};
  for (ssize_t i = 0; i < count; ++i) {
    if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 || memcmp(entries[i].gid.raw, kMapped, 12) != 0) continue;
    end->gid = entries[i].gid;
    end->gid_index = (int)entries[i].gid_index;
    return;
  }
  fail("there is no GID with an IPv4 address");
}

static void open_end(struct end *end, const char *name) {
  struct ibv_device **devices = ibv_get_device_list(NULL);
  for (struct ibv_device **device = devices; devices && *device; ++device) {
    if (strcmp(ibv_get_device_name(*device), name) == 0) end->context = ibv_open_device(*device);
  }
  if (!end->context) fail(name);
  struct ibv_port_attr port;
  if (ibv_query_port(end->context, 1, &port)) fail("ibv_query_port");
  end->mtu = port.active_mtu;
  choose_gid(end);
  end->pd = ibv_alloc_pd(end->context);
  void *memory = aligned_alloc(4096, kMemory);
  memset(memory, 0, kMemory);
  end->mr = ibv_reg_mr(end->pd, memory, kMemory,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (!end->mr) fail("ibv_reg_mr");
}

static void connect_qp(struct ibv_qp *qp, int side, uint32_t remote_qpn) {
  const struct end *local = &ends[side], *remote = &ends[1 - side];
  struct ibv_qp_attr attributes = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    fail("INIT");
  attributes = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR,
      .path_mtu = local->mtu < remote->mtu ? local->mtu : remote->mtu,
      .dest_qp_num = remote_qpn,
      .max_dest_rd_atomic = 16,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1,
                  .port_num = 1,
                  .grh = {.dgid = remote->gid, .sgid_index = (uint8_t)local->gid_index, .hop_limit = 64}},
  };
  if (ibv_modify_qp(qp, &attributes,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    fail("RTR");
  attributes = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 7, .max_rd_atomic = 16};
  if (ibv_modify_qp(qp, &attributes,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC))
    fail("RTS");
}

// How many requests each of so many queue pairs may have on their way.
static int send_depth(int queue_pairs) { return queue_pairs == 1 ? kMostWindow : 16; }
static int receive_depth(int queue_pairs) { return queue_pairs == 1 ? kReceives : 1; }

static struct session *session_of(int queue_pairs) {
  static struct session *sessions[kMostQueuePairs + 1];
  if (sessions[queue_pairs]) return sessions[queue_pairs];
  struct session *session = sessions[queue_pairs] = calloc(1, sizeof *session);
  session->queue_pairs = queue_pairs;
  const int depth = send_depth(queue_pairs), receives = receive_depth(queue_pairs);
  for (int side = 0; side < 2; ++side) {
    const struct end *end = &ends[side];
    session->channel[side] = ibv_create_comp_channel(end->context);
    session->cq[side] = ibv_create_cq(end->context, (depth + receives) * queue_pairs, NULL, session->channel[side], 0);
    session->qp[side] = calloc((size_t)queue_pairs, sizeof(struct ibv_qp *));
    if (!session->channel[side] || !session->cq[side]) fail("ibv_create_cq");
    for (int i = 0; i < queue_pairs; ++i) {
      struct ibv_qp_init_attr init = {.send_cq = session->cq[side],
                                      .recv_cq = session->cq[side],
                                      .qp_type = IBV_QPT_RC,
                                      .cap = {(uint32_t)depth, (uint32_t)receives, 1, 1, 0}};
      if (!(session->qp[side][i] = ibv_create_qp(end->pd, &init))) fail("ibv_create_qp");
    }
  }
  for (int i = 0; i < queue_pairs; ++i) {
    for (int side = 0; side < 2; ++side)
      connect_qp(session->qp[side][i], side, session->qp[1 - side][i]->qp_num);
  }
  return session;
}

static enum ibv_wr_opcode opcode_of(const char *verb) {
  if (strcmp(verb, "write") == 0) return IBV_WR_RDMA_WRITE;
  return strcmp(verb, "read") == 0 ? IBV_WR_RDMA_READ : IBV_WR_SEND;
}

static struct ibv_send_wr sends[kMostWindow];
static struct ibv_sge send_elements[kMostWindow];

// Messages lie one after the other, and begin again where the memory ends.
static size_t place_of(uint32_t number, size_t size) { return number % (kMemory / size) * size; }

static void write_send(int place, int side, uint64_t id, enum ibv_wr_opcode opcode, uint32_t number, uint32_t size,
                       bool signaled) {
  const size_t at = place_of(number, size);
  send_elements[place] = (struct ibv_sge){(uintptr_t)ends[side].mr->addr + at, size, ends[side].mr->lkey};
  sends[place] = (struct ibv_send_wr){
      .wr_id = id,
      .sg_list = &send_elements[place],
      .num_sge = 1,
      .opcode = opcode,
      .send_flags = signaled ? IBV_SEND_SIGNALED : 0,
      .wr.rdma = {(uintptr_t)ends[1 - side].mr->addr + at, ends[1 - side].mr->rkey},
  };
  if (place > 0) sends[place - 1].next = &sends[place];
}

static void post_sends(struct ibv_qp *qp) {
  struct ibv_send_wr *bad;
  if ((errno = ibv_post_send(qp, sends, &bad))) fail("ibv_post_send");
}

static void post_receives(struct ibv_qp *qp, int side, uint32_t size, int count) {
  static struct ibv_recv_wr receives[kReceives];
  struct ibv_sge element = {(uintptr_t)ends[side].mr->addr, size, ends[side].mr->lkey};
  for (int i = 0; i < count; ++i) {
    receives[i] = (struct ibv_recv_wr){
        .sg_list = &element, .num_sge = 1, .next = i + 1 < count ? &receives[i + 1] : NULL};
  }
  struct ibv_recv_wr *bad;
  if (count > 0 && (errno = ibv_post_recv(qp, receives, &bad))) fail("ibv_post_recv");
}

static int poll_cq(struct ibv_cq *cq, struct ibv_wc *completions) {
  const int count = ibv_poll_cq(cq, kPollBatch, completions);
  for (int i = 0; i < count; ++i) {
    if (completions[i].status == IBV_WC_SUCCESS) continue;
    fprintf(stderr, "bench: a request failed: %s\n", ibv_wc_status_str(completions[i].status));
    exit(1);
  }
  return count;
}

static double bandwidth(const char *verb, uint32_t size, uint32_t window, uint32_t signal, int queue_pairs,
                        uint32_t messages) {
  static uint32_t posted[kMostQueuePairs], completed[kMostQueuePairs];
  struct session *session = session_of(queue_pairs);
  const enum ibv_wr_opcode opcode = opcode_of(verb);
  const bool receives = opcode == IBV_WR_SEND;
  uint32_t ahead = 0, received = 0;
  memset(posted, 0, sizeof posted);
  memset(completed, 0, sizeof completed);
  if (receives) post_receives(session->qp[1][0], 1, size, (int)(ahead = messages < kReceives ? messages : kReceives));
  struct ibv_wc completions[kPollBatch];
  int open = queue_pairs;
  const double begin = now();
  while (open > 0 || (receives && received < messages)) {
    for (int q = 0; q < queue_pairs; ++q) {
      uint32_t room = window - (posted[q] - completed[q]);
      if (room > messages - posted[q]) room = messages - posted[q];
      if (room == 0) continue;
      for (uint32_t i = 0; i < room; ++i) {
        const uint32_t number = posted[q]++;
        write_send((int)i, 0, (uint64_t)q, opcode, number, size,
                   (number + 1) % signal == 0 || number + 1 == messages);
      }
      post_sends(session->qp[0][q]);
    }
    for (int count = poll_cq(session->cq[0], completions), i = 0; i < count; ++i) {
      const uint64_t q = completions[i].wr_id;
      completed[q] = completed[q] + signal < messages ? completed[q] + signal : messages;
      if (completed[q] == messages) --open;
    }
    if (!receives) continue;
    // All that have come: a message that found no receive would wait for a timer.
    for (uint32_t count = kPollBatch; count == kPollBatch;) {
      count = (uint32_t)poll_cq(session->cq[1], completions);
      received += count;
      const uint32_t more = count < messages - ahead ? count : messages - ahead;
      post_receives(session->qp[1][0], 1, size, (int)more);
      ahead += more;
    }
  }
  return (double)messages * queue_pairs / (now() - begin);
}

// One completion of that queue.
static void await(struct session *session, int side, bool events) {
  struct ibv_wc completion;
  for (;;) {
    const int count = ibv_poll_cq(session->cq[side], 1, &completion);
    if (count == 1) break;
    if (!events) continue;
    if (ibv_req_notify_cq(session->cq[side], 0)) fail("ibv_req_notify_cq");
    if (ibv_poll_cq(session->cq[side], 1, &completion) == 1) break;
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(session->channel[side], &cq, &context)) fail("ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
  }
  if (completion.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "bench: a request failed: %s\n", ibv_wc_status_str(completion.status));
    exit(1);
  }
}

static void send_one(struct session *session, int side, enum ibv_wr_opcode opcode, uint32_t size) {
  write_send(0, side, 0, opcode, 0, size, true);
  post_sends(session->qp[side][0]);
}

// One message from `side` to the other, and its end at both.
static void play_send(struct session *session, int side, uint32_t size, bool events, bool last) {
  send_one(session, side, IBV_WR_SEND, size);
  await(session, 1 - side, events);
  if (!last) post_receives(session->qp[1 - side][0], 1 - side, size, 1);
  await(session, side, events);
}

// The last byte tells that the message has come.
static void play_write(struct session *session, int side, uint32_t size, uint8_t number) {
  ((uint8_t *)ends[side].mr->addr)[size - 1] = number;
  volatile const uint8_t *there = (uint8_t *)ends[1 - side].mr->addr + size - 1;
  send_one(session, side, IBV_WR_RDMA_WRITE, size);
  while (*there != number) continue;
  await(session, side, false);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Nearest rank.
static double percentile(double *samples, int count, int percent) {
  qsort(samples, (size_t)count, sizeof *samples, ascending);
  const int rank = (count * percent + 99) / 100;
  return samples[(rank > 0 ? rank : 1) - 1];
}

static double latency(const char *verb, uint32_t size, bool events, int rounds) {
  struct session *session = session_of(1);
  const bool sends_message = opcode_of(verb) == IBV_WR_SEND;
  double *samples = calloc((size_t)rounds, sizeof *samples);
  if (sends_message) {
    for (int side = 0; side < 2; ++side) post_receives(session->qp[side][0], side, size, 1);
  }
  for (int i = 0; i < rounds; ++i) {
    const double begin = now();
    for (int side = 0; side < 2; ++side) {
      if (sends_message) {
        play_send(session, side, size, events, i + 1 == rounds);
      } else {
        play_write(session, side, size, (uint8_t)(2 * i + side + 1));
      }
    }
    samples[i] = (now() - begin) / 2 * 1e6;
  }
  const double median = percentile(samples, rounds, 50);
  free(samples);
  return median;
}

struct sleeper {
  volatile bool stopped;
  double late;
};

static void *sleep_again_and_again(void *data) {
  struct sleeper *sleeper = data;
  enum { kMost = 1 << 16 };
  double *samples = calloc(kMost, sizeof *samples);
  int count = 0;
  while (!sleeper->stopped && count < kMost) {
    const double begin = now();
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    samples[count++] = (now() - begin) * 1e3 - 1;
  }
  sleeper->late = percentile(samples, count, 99);
  free(samples);
  return NULL;
}

static double delay(uint32_t size, uint32_t window, double milliseconds) {
  struct sleeper sleeper = {0};
  pthread_t thread;
  if (pthread_create(&thread, NULL, sleep_again_and_again, &sleeper)) fail("pthread_create");
  const double end = now() + milliseconds / 1e3;
  while (now() < end) bandwidth("write", size, window, window / 2, 1, 200);
  sleeper.stopped = true;
  pthread_join(thread, NULL);
  return sleeper.late;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  open_end(&ends[0], argv[1]);
  open_end(&ends[1], argv[2]);
  char line[256], verb[16], wait[16];
  while (fgets(line, sizeof line, stdin)) {
    unsigned size, window, signal, queue_pairs, messages;
    double figure;
    if (sscanf(line, "bandwidth %15s %u %u %u %u %u", verb, &size, &window, &signal, &queue_pairs, &messages) == 6) {
      if (queue_pairs > kMostQueuePairs || window > (unsigned)send_depth((int)queue_pairs)) return 2;
      figure = bandwidth(verb, size, window, signal, (int)queue_pairs, messages);
    } else if (sscanf(line, "latency %15s %u %15s %u", verb, &size, wait, &messages) == 4) {
      figure = latency(verb, size, strcmp(wait, "events") == 0, (int)messages);
    } else if (sscanf(line, "delay %u %u %u", &size, &window, &messages) == 3) {
      figure = delay(size, window, messages);
    } else {
      return 2;
    }
    printf("%.17g\n", figure);
    fflush(stdout);
  }
  return 0;
}
