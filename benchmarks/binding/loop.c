// The data path in C: what a program pays that calls libibverbs itself. loop.js and loop.py do the same.
//
// loop PATH OPERATIONS SAMPLES: prints nanoseconds per operation of each sample, as a JSON array.
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatch = 32, kLength = 64, kMemory = 1 << 16 };

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_send_wr requests[kBatch];
static struct ibv_sge elements[kBatch];
static struct ibv_wc completions[kBatch];

static void fail(const char *what) {
  fprintf(stderr, "loop: %s failed\n", what);
  exit(1);
}

static void write_request(uint32_t place, uint32_t id) {
  struct ibv_sge *element = &elements[place];
  element->addr = (uintptr_t)mr->addr + id % (kMemory - kLength);
  element->length = kLength;
  element->lkey = mr->lkey;
  struct ibv_send_wr *request = &requests[place];
  request->wr_id = id;
  request->next = NULL;
  request->sg_list = element;
  request->num_sge = 1;
  request->opcode = IBV_WR_RDMA_WRITE;
  request->send_flags = IBV_SEND_SIGNALED;
  request->wr.rdma.remote_addr = (uintptr_t)mr->addr + id % (kMemory - kLength);
  request->wr.rdma.rkey = mr->rkey;
}

static void post(void) {
  struct ibv_send_wr *bad;
  if (ibv_post_send(qp, requests, &bad)) fail("ibv_post_send");
}

static void poll(int count) {
  for (int taken = 0; taken < count;) {
    const int some = ibv_poll_cq(cq, kBatch, completions);
    for (int i = 0; i < some; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) fail("a request");
    }
    taken += some;
  }
}

static void batch(uint32_t operations) {
  for (uint32_t done = 0; done < operations; done += kBatch) {
    for (uint32_t i = 0; i < kBatch; ++i) {
      write_request(i, done + i);
      if (i > 0) requests[i - 1].next = &requests[i];
    }
    post();
    poll(kBatch);
  }
}

static void single(uint32_t operations) {
  for (uint32_t i = 0; i < operations; ++i) {
    write_request(0, i);
    post();
    poll(1);
  }
}

static void prepared(uint32_t operations) {
  write_request(0, 1);
  for (uint32_t i = 0; i < operations; ++i) {
    post();
    poll(1);
  }
}

static void empty(uint32_t operations) {
  for (uint32_t i = 0; i < operations; ++i) {
    if (ibv_poll_cq(cq, kBatch, completions) != 0) fail("an empty poll");
  }
}

static void open_queue(void) {
  struct ibv_device **devices = ibv_get_device_list(NULL);
  if (!devices || !devices[0]) fail("ibv_get_device_list");
  struct ibv_context *context = ibv_open_device(devices[0]);
  if (!context) fail("ibv_open_device");
  struct ibv_pd *pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 256, NULL, NULL, 0);
  mr = ibv_reg_mr(pd, calloc(1, kMemory), kMemory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {128, 128, 1, 1, 0}};
  qp = ibv_create_qp(pd, &init);
  if (!cq || !mr || !qp) fail("making the queue pair");
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(uint32_t operations);
  } kPaths[] = {{"batch", batch}, {"single", single}, {"prepared", prepared}, {"objects", single}, {"empty", empty}};
  if (argc != 4) return 2;
  void (*run)(uint32_t) = NULL;
  for (size_t i = 0; i < sizeof kPaths / sizeof *kPaths; ++i) {
    if (strcmp(argv[1], kPaths[i].name) == 0) run = kPaths[i].run;
  }
  if (!run) return 2;
  const uint32_t operations = (uint32_t)strtoul(argv[2], NULL, 10);
  const int samples = atoi(argv[3]);
  open_queue();
  putchar('[');
  for (int i = 0; i < samples; ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    run(operations);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double nanoseconds =
        (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    printf("%s%.3f", i ? "," : "", nanoseconds / operations);
  }
  puts("]");
  return 0;
}
