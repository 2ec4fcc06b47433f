/*
 * Stands in for libibverbs.so.1 in a test's child process: a device that can do everything, and does nothing but write down,
 * one line of JSON a call, what it is asked for. 64-bit numbers are strings; objects are named by their handles; bytes are
 * hexadecimal, as they lie in memory. Lines go to the file that RECORD_TO names.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

/* Writing a line. */

static FILE *out;

static void begin(const char *call) {
  if (!out) out = fopen(getenv("RECORD_TO"), "a");
  fprintf(out, "{\"call\":\"%s\"", call);
}
static void number(const char *name, unsigned value) { fprintf(out, ",\"%s\":%u", name, value); }
static void wide(const char *name, uint64_t value) {
  fprintf(out, ",\"%s\":\"%llu\"", name, (unsigned long long)value);
}
static void bytes(const char *name, const void *data, size_t length) {
  fprintf(out, ",\"%s\":\"", name);
  for (size_t i = 0; i < length; ++i) fprintf(out, "%02x", ((const uint8_t *)data)[i]);
  fprintf(out, "\"");
}
static void end(void) {
  fprintf(out, "}\n");
  fflush(out);
}
/* Absent where the pointer is null. */
#define HANDLE(name, pointer) ((pointer) ? number(name, (pointer)->handle) : (void)0)

static uint32_t next_handle = 1;
#define NEW(type) ((type *)calloc(1, sizeof(type)))

/* Objects whose public struct has no handle. */
struct td { struct ibv_td base; uint32_t handle; };
struct xrcd { struct ibv_xrcd base; uint32_t handle; };
struct counters { struct ibv_counters base; uint32_t handle; };
struct action { struct ibv_flow_action base; uint32_t handle; };

static void elements(const struct ibv_sge *list, int count) {
  fprintf(out, ",\"sge\":[");
  for (int i = 0; i < count; ++i)
    fprintf(out, "%s{\"addr\":\"%llu\",\"length\":%u,\"lkey\":%u}", i ? "," : "", (unsigned long long)list[i].addr,
            list[i].length, list[i].lkey);
  fprintf(out, "]");
}

/* The device and its context. */

static struct ibv_device device = {
    .node_type = IBV_NODE_CA,
    .transport_type = IBV_TRANSPORT_IB,
    .name = "recorder0",
    .dev_name = "uverbs0",
    .ibdev_path = "/sys/class/infiniband/recorder0",
};

struct ibv_device **ibv_get_device_list(int *count) {
  struct ibv_device **list = calloc(2, sizeof *list);
  list[0] = &device;
  if (count) *count = 1;
  return list;
}
void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }
int ibv_get_device_index(struct ibv_device *d) { return d ? 0 : -1; }
__be64 ibv_get_device_guid(struct ibv_device *d) { return d ? 0x0100000000000002ull : 0; }

static void fill(struct ibv_device_attr *attr) {
  memset(attr, 0, sizeof *attr);
  attr->vendor_id = 0x1234;
  attr->phys_port_cnt = 1;
  attr->max_qp_wr = attr->max_srq_wr = attr->max_cqe = 1 << 15;
  attr->max_sge = attr->max_srq_sge = attr->max_sge_rd = 16;
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->max_pkeys = 1;
}
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
  (void)context;
  fill(attr);
  return 0;
}
static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size) {
  (void)context, (void)input;
  memset(attr, 0, size);
  fill(&attr->orig_attr);
  attr->max_dm_size = 1 << 20;
  attr->phys_port_cnt_ex = 1;
  return 0;
}
static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size) {
  (void)context, (void)port;
  memset(attr, 0, size);
  attr->state = IBV_PORT_ACTIVE;
  attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
  attr->gid_tbl_len = attr->pkey_tbl_len = 1;
  attr->max_msg_sz = 1u << 30;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr) {
  return query_port(context, port, (struct ibv_port_attr *)attr, sizeof(struct ibv_port_attr));
}
static const uint8_t own_gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid) {
  (void)context, (void)port, (void)index;
  memcpy(gid->raw, own_gid, 16);
  return 0;
}
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size) {
  (void)flags;
  memset(entry, 0, size);
  ibv_query_gid(context, (uint8_t)port, (int)index, &entry->gid);
  entry->gid_index = index;
  entry->port_num = port;
  entry->gid_type = IBV_GID_TYPE_ROCE_V2;
  return 0;
}
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most, uint32_t flags,
                             size_t size) {
  if (most > 0) _ibv_query_gid_ex(context, 1, 0, entries, flags, size);
  return 1;
}
int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey) {
  (void)context, (void)port, (void)index;
  *pkey = 0xffff;
  return 0;
}
int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey) {
  (void)context, (void)port;
  return pkey == 0xffff ? 0 : -1;
}
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
  (void)context, (void)event;
  errno = EAGAIN;
  return -1;
}
void ibv_ack_async_event(struct ibv_async_event *event) { (void)event; }
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values) {
  (void)context;
  begin("query_rt_values");
  number("comp_mask", values->comp_mask);
  end();
  values->raw_clock.tv_nsec = 0x123456789abcll;
  return 0;
}

/* Domains. */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  struct ibv_pd *pd = NEW(struct ibv_pd);
  pd->context = context;
  pd->handle = next_handle++;
  return pd;
}
int ibv_dealloc_pd(struct ibv_pd *pd) {
  begin("dealloc_pd");
  HANDLE("pd", pd);
  end();
  free(pd);
  return 0;
}
struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle) {
  begin("import_pd");
  number("handle", handle);
  end();
  return ibv_alloc_pd(context);
}
void ibv_unimport_pd(struct ibv_pd *pd) {
  begin("unimport_pd");
  HANDLE("pd", pd);
  end();
  free(pd);
}
static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr) {
  struct td *td = NEW(struct td);
  td->base.context = context;
  td->handle = next_handle++;
  begin("alloc_td");
  number("comp_mask", attr->comp_mask);
  HANDLE("td", td);
  end();
  return &td->base;
}
static int dealloc_td(struct ibv_td *td) {
  begin("dealloc_td");
  HANDLE("td", (struct td *)td);
  end();
  free(td);
  return 0;
}
static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr) {
  struct ibv_pd *pd = ibv_alloc_pd(context);
  begin("alloc_parent_domain");
  HANDLE("pd", attr->pd);
  HANDLE("td", (struct td *)attr->td);
  number("comp_mask", attr->comp_mask);
  number("allocators", attr->alloc || attr->free || attr->pd_context);
  HANDLE("made", pd);
  end();
  return pd;
}
static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr) {
  struct xrcd *xrcd = NEW(struct xrcd);
  xrcd->base.context = context;
  xrcd->handle = next_handle++;
  begin("open_xrcd");
  number("comp_mask", attr->comp_mask);
  number("has_fd", attr->fd >= 0);
  number("oflags", (unsigned)attr->oflags);
  HANDLE("made", xrcd);
  end();
  return &xrcd->base;
}
static int close_xrcd(struct ibv_xrcd *xrcd) {
  begin("close_xrcd");
  HANDLE("xrcd", (struct xrcd *)xrcd);
  end();
  free(xrcd);
  return 0;
}

/* Memory. */

static struct ibv_mr *new_mr(struct ibv_pd *pd, void *addr, size_t length) {
  struct ibv_mr *mr = NEW(struct ibv_mr);
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->handle = next_handle++;
  mr->lkey = 0x1000 + mr->handle;
  mr->rkey = 0x2000 + mr->handle;
  return mr;
}
static struct ibv_mr *recorded_mr(const char *call, struct ibv_pd *pd, uint64_t addr, uint64_t length, uint64_t iova,
                                  unsigned access) {
  struct ibv_mr *mr = new_mr(pd, (void *)(uintptr_t)addr, length);
  begin(call);
  HANDLE("pd", pd);
  wide("addr", addr);
  wide("length", length);
  wide("iova", iova);
  number("access", access);
  number("lkey", mr->lkey);
  end();
  return mr;
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access) {
  return recorded_mr("reg_mr", pd, (uintptr_t)addr, length, iova, access);
}
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
  return recorded_mr("reg_mr", pd, (uintptr_t)addr, length, (uintptr_t)addr, (unsigned)access);
}
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                 int access) {
  struct ibv_mr *mr = recorded_mr("reg_dmabuf_mr", pd, offset, length, iova, (unsigned)access);
  begin("dmabuf");
  number("fd", (unsigned)fd);
  end();
  return mr;
}
static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd) { return recorded_mr("alloc_null_mr", pd, 0, 0, 0, 0); }
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access) {
  begin("rereg_mr");
  HANDLE("mr", mr);
  number("flags", (unsigned)flags);
  HANDLE("pd", pd);
  number("has_addr", addr != NULL);
  wide("length", length);
  number("access", (unsigned)access);
  end();
  if (getenv("RECORD_FAILS") && !strcmp(getenv("RECORD_FAILS"), "rereg_mr")) {
    errno = EIO;
    return IBV_REREG_MR_ERR_CMD;
  }
  mr->lkey += 0x100;
  mr->rkey += 0x100;
  return 0;
}
int ibv_dereg_mr(struct ibv_mr *mr) {
  begin("dereg_mr");
  HANDLE("mr", mr);
  end();
  free(mr);
  return 0;
}
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle) {
  begin("import_mr");
  HANDLE("pd", pd);
  number("handle", handle);
  end();
  return new_mr(pd, NULL, 0);
}
void ibv_unimport_mr(struct ibv_mr *mr) {
  begin("unimport_mr");
  HANDLE("mr", mr);
  end();
  free(mr);
}
static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
                     uint32_t count) {
  begin("advise_mr");
  HANDLE("pd", pd);
  number("advice", advice);
  number("flags", flags);
  elements(list, (int)count);
  end();
  return 0;
}

static uint8_t device_bytes[4096];
static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length) {
  begin("memcpy_to_dm");
  HANDLE("dm", dm);
  wide("offset", offset);
  bytes("bytes", from, length);
  end();
  memcpy(device_bytes + offset, from, length);
  return 0;
}
static int memcpy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length) {
  begin("memcpy_from_dm");
  HANDLE("dm", dm);
  wide("offset", offset);
  wide("length", length);
  end();
  memcpy(to, device_bytes + offset, length);
  return 0;
}
static struct ibv_dm *new_dm(struct ibv_context *context) {
  struct ibv_dm *dm = NEW(struct ibv_dm);
  dm->context = context;
  dm->memcpy_to_dm = memcpy_to_dm;
  dm->memcpy_from_dm = memcpy_from_dm;
  dm->handle = next_handle++;
  return dm;
}
static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr) {
  begin("alloc_dm");
  wide("length", attr->length);
  number("log_align_req", attr->log_align_req);
  number("comp_mask", attr->comp_mask);
  end();
  return new_dm(context);
}
static int free_dm(struct ibv_dm *dm) {
  begin("free_dm");
  HANDLE("dm", dm);
  end();
  free(dm);
  return 0;
}
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle) {
  begin("import_dm");
  number("handle", handle);
  end();
  return new_dm(context);
}
void ibv_unimport_dm(struct ibv_dm *dm) {
  begin("unimport_dm");
  HANDLE("dm", dm);
  end();
  free(dm);
}
static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                                unsigned access) {
  begin("dm_of_mr");
  HANDLE("dm", dm);
  end();
  return recorded_mr("reg_dm_mr", pd, offset, length, 0, access);
}

/* Completion queues. */

struct cq {
  struct ibv_cq_ex base;
  int pending; /* completions that a poll will find */
  uint64_t wr_id;
};
static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc) {
  (void)cq, (void)most, (void)wc;
  return 0;
}
static int req_notify_cq(struct ibv_cq *cq, int solicited) {
  (void)cq, (void)solicited;
  return 0;
}
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
  struct ibv_comp_channel *channel = NEW(struct ibv_comp_channel);
  channel->context = context;
  channel->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return channel;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
  close(channel->fd);
  free(channel);
  return 0;
}
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context) {
  (void)channel, (void)cq, (void)context;
  errno = EAGAIN;
  return -1;
}
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) { (void)cq, (void)count; }
static struct cq *new_cq(struct ibv_context *context, struct ibv_comp_channel *channel, void *cq_context, int cqe) {
  struct cq *cq = NEW(struct cq);
  cq->base.context = context;
  cq->base.channel = channel;
  cq->base.cq_context = cq_context;
  cq->base.handle = next_handle++;
  cq->base.cqe = cqe;
  return cq;
}
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int vector) {
  (void)vector;
  return ibv_cq_ex_to_cq(&new_cq(context, channel, cq_context, cqe)->base);
}
int ibv_destroy_cq(struct ibv_cq *cq) {
  free(cq);
  return 0;
}
static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr) {
  begin("modify_cq");
  HANDLE("cq", cq);
  number("attr_mask", attr->attr_mask);
  number("cq_count", attr->moderate.cq_count);
  number("cq_period", attr->moderate.cq_period);
  end();
  return 0;
}

/* What an extended queue tells: of each field another number. */
static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr) {
  struct cq *own = (struct cq *)cq;
  if (attr->comp_mask != 0) return EINVAL;
  if (own->pending == 0) return ENOENT;
  --own->pending;
  cq->status = IBV_WC_SUCCESS;
  cq->wr_id = own->wr_id;
  begin("start_poll");
  end();
  return 0;
}
static int next_poll(struct ibv_cq_ex *cq) {
  (void)cq;
  begin("next_poll");
  end();
  return ENOENT;
}
static void end_poll(struct ibv_cq_ex *cq) {
  (void)cq;
  begin("end_poll");
  end();
}
#define READS(type, name, value)                   \
  static type read_##name(struct ibv_cq_ex *cq) {  \
    (void)cq;                                      \
    return value;                                  \
  }
READS(enum ibv_wc_opcode, opcode, IBV_WC_TM_RECV)
READS(uint32_t, vendor_err, 1)
READS(uint32_t, byte_len, 0x10203)
READS(__be32, imm_data, 0x04030201)
READS(uint32_t, qp_num, 0x111111)
READS(uint32_t, src_qp, 0x222222)
READS(unsigned, wc_flags, IBV_WC_WITH_IMM | IBV_WC_TM_MATCH)
READS(uint32_t, slid, 0x3333)
READS(uint8_t, sl, 4)
READS(uint8_t, dlid_path_bits, 5)
READS(uint64_t, completion_ts, 0x1122334455667788ull)
READS(uint64_t, completion_wallclock_ns, 0x99aabbccddeeffull)
READS(uint16_t, cvlan, 0x6007)
READS(uint32_t, flow_tag, 0x888888)
static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info) {
  (void)cq;
  info->tag = 0xfedcba9876543210ull;
  info->priv = 0x76543210;
}
static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr) {
  begin("create_cq_ex");
  number("cqe", attr->cqe);
  number("has_channel", attr->channel != NULL);
  number("comp_vector", attr->comp_vector);
  wide("wc_flags", attr->wc_flags);
  number("comp_mask", attr->comp_mask);
  number("flags", attr->flags);
  HANDLE("parent_domain", attr->parent_domain);
  end();
  struct ibv_cq_ex *cq = &new_cq(context, attr->channel, attr->cq_context, (int)attr->cqe)->base;
  cq->start_poll = start_poll;
  cq->next_poll = next_poll;
  cq->end_poll = end_poll;
  cq->read_opcode = read_opcode;
  cq->read_vendor_err = read_vendor_err;
  cq->read_wc_flags = read_wc_flags;
  /* What was not asked for is a null pointer, as providers have it. */
#define IF(flag, name) \
  if (attr->wc_flags & IBV_WC_EX_WITH_##flag) cq->read_##name = read_##name
  IF(BYTE_LEN, byte_len);
  IF(IMM, imm_data);
  IF(QP_NUM, qp_num);
  IF(SRC_QP, src_qp);
  IF(SLID, slid);
  IF(SL, sl);
  IF(DLID_PATH_BITS, dlid_path_bits);
  IF(COMPLETION_TIMESTAMP, completion_ts);
  IF(COMPLETION_TIMESTAMP_WALLCLOCK, completion_wallclock_ns);
  IF(CVLAN, cvlan);
  IF(FLOW_TAG, flow_tag);
  IF(TM_INFO, tm_info);
  return cq;
}

/* Queue pairs. */

struct qp {
  struct ibv_qp_ex base;
  void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level);
  int extended;
  struct ibv_qp_cap cap;
  int sq_sig_all;
  struct ibv_qp_attr attr;
};

static void wr(struct ibv_qp_ex *qp, const char *call) {
  begin(call);
  number("wr_flags", qp->wr_flags);
}
static void to(uint32_t rkey, uint64_t addr) {
  number("rkey", rkey);
  wide("remote_addr", addr);
}
static void wr_start(struct ibv_qp_ex *qp) { (void)qp, begin("wr_start"), end(); }
static int wr_complete(struct ibv_qp_ex *qp) {
  (void)qp, begin("wr_complete"), end();
  return 0;
}
static void wr_abort(struct ibv_qp_ex *qp) { (void)qp, begin("wr_abort"), end(); }
static void wr_send(struct ibv_qp_ex *qp) { wr(qp, "wr_send"), end(); }
static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm) { wr(qp, "wr_send_imm"), bytes("imm", &imm, 4), end(); }
static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey) { wr(qp, "wr_send_inv"), number("rkey", rkey), end(); }
static void wr_send_tso(struct ibv_qp_ex *qp, void *header, uint16_t length, uint16_t mss) {
  wr(qp, "wr_send_tso"), bytes("hdr", header, length), number("mss", mss), end();
}
static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) {
  wr(qp, "wr_rdma_write"), to(rkey, addr), end();
}
static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm) {
  wr(qp, "wr_rdma_write_imm"), to(rkey, addr), bytes("imm", &imm, 4), end();
}
static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) {
  wr(qp, "wr_rdma_read"), to(rkey, addr), end();
}
static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap) {
  wr(qp, "wr_atomic_cmp_swp"), to(rkey, addr), wide("compare", compare), wide("swap", swap), end();
}
static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add) {
  wr(qp, "wr_atomic_fetch_add"), to(rkey, addr), wide("add", add), end();
}
static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *data) {
  wr(qp, "wr_atomic_write"), to(rkey, addr), bytes("data", data, 8), end();
}
static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level) {
  wr(qp, "wr_flush"), to(rkey, addr), wide("length", length), number("type", type), number("level", level), end();
}
static void bind_info(const struct ibv_mw_bind_info *info) {
  HANDLE("mr", info->mr);
  wide("addr", info->addr);
  wide("length", info->length);
  number("access", info->mw_access_flags);
}
static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info) {
  wr(qp, "wr_bind_mw"), HANDLE("mw", mw), number("rkey", rkey), bind_info(info), end();
}
static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey) { wr(qp, "wr_local_inv"), number("rkey", rkey), end(); }
static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey) {
  (void)qp, begin("wr_set_ud_addr"), HANDLE("ah", ah), number("remote_qpn", qpn), number("remote_qkey", qkey), end();
}
static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t srqn) {
  (void)qp, begin("wr_set_xrc_srqn"), number("remote_srqn", srqn), end();
}
static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length) {
  struct ibv_sge sge = {addr, length, lkey};
  (void)qp, begin("wr_set_sge"), elements(&sge, 1), end();
}
static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *list) {
  (void)qp, begin("wr_set_sge_list"), elements(list, (int)count), end();
}
static void wr_set_inline_data(struct ibv_qp_ex *qp, void *data, size_t length) {
  (void)qp, begin("wr_set_inline_data"), bytes("data", data, length), end();
}
static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_data_buf *list) {
  (void)qp, (void)list, begin("wr_set_inline_data_list"), number("count", (unsigned)count), end();
}

static struct qp *new_qp(struct ibv_context *context, enum ibv_qp_type type, const struct ibv_qp_cap *cap) {
  struct qp *qp = NEW(struct qp);
  struct ibv_qp *base = &qp->base.qp_base;
  base->context = context;
  base->qp_type = type;
  base->handle = next_handle++;
  base->qp_num = 0x100 + base->handle;
  qp->cap = *cap;
  return qp;
}
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
  struct qp *qp = new_qp(pd->context, attr->qp_type, &attr->cap);
  begin("create_qp");
  number("qp_type", attr->qp_type);
  HANDLE("pd", pd);
  HANDLE("send_cq", attr->send_cq);
  HANDLE("recv_cq", attr->recv_cq);
  HANDLE("srq", attr->srq);
  number("max_send_wr", attr->cap.max_send_wr);
  number("max_recv_wr", attr->cap.max_recv_wr);
  number("sq_sig_all", (unsigned)attr->sq_sig_all);
  end();
  return &qp->base.qp_base;
}
static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr) {
  struct qp *qp = new_qp(context, attr->qp_type, &attr->cap);
  begin("create_qp_ex");
  number("qp_type", attr->qp_type);
  number("comp_mask", attr->comp_mask);
  HANDLE("send_cq", attr->send_cq);
  HANDLE("recv_cq", attr->recv_cq);
  HANDLE("srq", attr->srq);
  number("max_send_wr", attr->cap.max_send_wr);
  number("max_recv_wr", attr->cap.max_recv_wr);
  number("max_send_sge", attr->cap.max_send_sge);
  number("max_recv_sge", attr->cap.max_recv_sge);
  number("max_inline_data", attr->cap.max_inline_data);
  number("sq_sig_all", (unsigned)attr->sq_sig_all);
  HANDLE("pd", attr->pd);
  HANDLE("xrcd", (struct xrcd *)attr->xrcd);
  number("create_flags", attr->create_flags);
  number("max_tso_header", attr->max_tso_header);
  if (attr->rwq_ind_tbl) number("rwq_ind_tbl", (unsigned)attr->rwq_ind_tbl->ind_tbl_handle);
  number("rx_hash_function", attr->rx_hash_conf.rx_hash_function);
  bytes("rx_hash_key", attr->rx_hash_conf.rx_hash_key, attr->rx_hash_conf.rx_hash_key_len);
  wide("rx_hash_fields_mask", attr->rx_hash_conf.rx_hash_fields_mask);
  number("source_qpn", attr->source_qpn);
  wide("send_ops_flags", attr->send_ops_flags);
  end();
  qp->extended = attr->send_ops_flags != 0;
  struct ibv_qp_ex *ex = &qp->base;
#define OP(name) ex->name = name
  OP(wr_start), OP(wr_complete), OP(wr_abort), OP(wr_send), OP(wr_send_imm), OP(wr_send_inv), OP(wr_send_tso);
  OP(wr_rdma_write), OP(wr_rdma_write_imm), OP(wr_rdma_read), OP(wr_atomic_cmp_swp), OP(wr_atomic_fetch_add);
  OP(wr_atomic_write), OP(wr_bind_mw), OP(wr_local_inv), OP(wr_set_ud_addr), OP(wr_set_xrc_srqn), OP(wr_set_sge);
  OP(wr_set_sge_list), OP(wr_set_inline_data), OP(wr_set_inline_data_list);
  qp->wr_flush = wr_flush;
  return &ex->qp_base;
}
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
  struct qp *own = (struct qp *)qp;
  return own->extended ? &own->base : NULL;
}
static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr) {
  begin("open_qp");
  number("comp_mask", attr->comp_mask);
  number("qp_num", attr->qp_num);
  HANDLE("xrcd", (struct xrcd *)attr->xrcd);
  number("qp_type", attr->qp_type);
  end();
  struct ibv_qp_cap cap = {0};
  return &new_qp(context, attr->qp_type, &cap)->base.qp_base;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
  struct qp *own = (struct qp *)qp;
  if (mask & IBV_QP_STATE) qp->state = own->attr.qp_state = attr->qp_state;
  begin("modify_qp");
  HANDLE("qp", qp);
  number("mask", (unsigned)mask);
  number("qp_state", attr->qp_state);
  number("port_num", attr->port_num);
  end();
  return 0;
}
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init) {
  (void)mask;
  *attr = ((struct qp *)qp)->attr;
  memset(init, 0, sizeof *init);
  return 0;
}
int ibv_destroy_qp(struct ibv_qp *qp) {
  begin("destroy_qp");
  HANDLE("qp", qp);
  end();
  free(qp);
  return 0;
}
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad) {
  (void)bad;
  for (; request; request = request->next) {
    begin("post_send");
    HANDLE("qp", qp);
    number("opcode", request->opcode);
    number("send_flags", request->send_flags);
    bytes("imm", &request->imm_data, 4);
    elements(request->sg_list, request->num_sge);
    wide("remote_addr", request->wr.rdma.remote_addr);
    number("rkey", request->wr.rdma.rkey);
    number("remote_srqn", request->qp_type.xrc.remote_srqn);
    if (request->opcode == IBV_WR_BIND_MW) {
      HANDLE("mw", request->bind_mw.mw);
      number("mw_rkey", request->bind_mw.rkey);
      bind_info(&request->bind_mw.bind_info);
    }
    end();
  }
  return 0;
}
static struct cq *last_receiver; /* the queue in which what is received would complete */
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad) {
  (void)qp, (void)bad;
  for (; request; request = request->next) {
    begin("post_recv");
    elements(request->sg_list, request->num_sge);
    end();
    if (last_receiver) last_receiver->wr_id = request->wr_id, ++last_receiver->pending;
  }
  return 0;
}
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
  begin("attach_mcast"), HANDLE("qp", qp), bytes("gid", gid->raw, 16), number("lid", lid), end();
  return 0;
}
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
  begin("detach_mcast"), HANDLE("qp", qp), bytes("gid", gid->raw, 16), number("lid", lid), end();
  return 0;
}
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece) {
  begin("set_ece"), HANDLE("qp", qp), number("vendor_id", ece->vendor_id), number("options", ece->options),
      number("comp_mask", ece->comp_mask), end();
  return 0;
}
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece) {
  (void)qp;
  *ece = (struct ibv_ece){.vendor_id = 0x5678, .options = 0x9abcdef0};
  return 0;
}
static int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr) {
  begin("modify_qp_rate_limit");
  HANDLE("qp", qp);
  number("rate_limit", attr->rate_limit);
  number("max_burst_sz", attr->max_burst_sz);
  number("typical_pkt_sz", attr->typical_pkt_sz);
  number("comp_mask", attr->comp_mask);
  end();
  return 0;
}
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags) {
  begin("query_qp_data_in_order"), HANDLE("qp", qp), number("opcode", opcode), number("flags", flags), end();
  return 1;
}
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
  (void)attr;
  struct ibv_ah *ah = NEW(struct ibv_ah);
  ah->context = pd->context;
  ah->pd = pd;
  ah->handle = next_handle++;
  return ah;
}
int ibv_destroy_ah(struct ibv_ah *ah) {
  free(ah);
  return 0;
}
static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type) {
  struct ibv_mw *mw = NEW(struct ibv_mw);
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  mw->handle = next_handle++;
  mw->rkey = 0x4000ff;
  return mw;
}
static int dealloc_mw(struct ibv_mw *mw) {
  free(mw);
  return 0;
}
static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind) {
  begin("bind_mw");
  HANDLE("qp", qp);
  HANDLE("mw", mw);
  number("send_flags", bind->send_flags);
  bind_info(&bind->bind_info);
  end();
  mw->rkey = ibv_inc_rkey(mw->rkey);
  return 0;
}

/* Shared receive queues. */

static struct ibv_srq *new_srq(struct ibv_context *context) {
  struct ibv_srq *srq = NEW(struct ibv_srq);
  srq->context = context;
  srq->handle = next_handle++;
  return srq;
}
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr) {
  (void)attr;
  return new_srq(pd->context);
}
static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr) {
  begin("create_srq_ex");
  number("max_wr", attr->attr.max_wr);
  number("max_sge", attr->attr.max_sge);
  number("srq_limit", attr->attr.srq_limit);
  number("comp_mask", attr->comp_mask);
  number("srq_type", attr->srq_type);
  HANDLE("pd", attr->pd);
  HANDLE("xrcd", (struct xrcd *)attr->xrcd);
  HANDLE("cq", attr->cq);
  number("max_num_tags", attr->tm_cap.max_num_tags);
  number("max_ops", attr->tm_cap.max_ops);
  end();
  return new_srq(context);
}
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask) {
  (void)srq, (void)attr, (void)mask;
  return 0;
}
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr) {
  (void)srq;
  memset(attr, 0, sizeof *attr);
  return 0;
}
int ibv_destroy_srq(struct ibv_srq *srq) {
  free(srq);
  return 0;
}
static int get_srq_num(struct ibv_srq *srq, uint32_t *number_of) {
  (void)srq;
  *number_of = 0x654321;
  return 0;
}
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *request, struct ibv_recv_wr **bad) {
  (void)srq;
  return post_recv(NULL, request, bad);
}
static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad) {
  (void)bad;
  begin("post_srq_ops");
  HANDLE("srq", srq);
  number("opcode", op->opcode);
  number("flags", (unsigned)op->flags);
  number("unexpected_cnt", op->tm.unexpected_cnt);
  number("handle", op->tm.handle);
  elements(op->tm.add.sg_list, op->tm.add.num_sge);
  wide("tag", op->tm.add.tag);
  wide("mask", op->tm.add.mask);
  number("has_next", op->next != NULL);
  end();
  op->tm.handle = 77;
  return 0;
}

/* Work queues and RSS. */

static int post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *request, struct ibv_recv_wr **bad) {
  (void)wq;
  return post_recv(NULL, request, bad);
}
static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr) {
  begin("create_wq");
  number("wq_type", attr->wq_type);
  number("max_wr", attr->max_wr);
  number("max_sge", attr->max_sge);
  HANDLE("pd", attr->pd);
  HANDLE("cq", attr->cq);
  number("comp_mask", attr->comp_mask);
  number("create_flags", attr->create_flags);
  end();
  struct ibv_wq *wq = NEW(struct ibv_wq);
  wq->context = context;
  wq->handle = next_handle++;
  wq->wq_num = 0x300 + wq->handle;
  wq->post_recv = post_wq_recv;
  last_receiver = (struct cq *)attr->cq;
  return wq;
}
static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr) {
  begin("modify_wq");
  HANDLE("wq", wq);
  number("attr_mask", attr->attr_mask);
  number("wq_state", attr->wq_state);
  number("curr_wq_state", attr->curr_wq_state);
  number("flags", attr->flags);
  number("flags_mask", attr->flags_mask);
  end();
  if (attr->attr_mask & IBV_WQ_ATTR_STATE) wq->state = attr->wq_state;
  return 0;
}
static int destroy_wq(struct ibv_wq *wq) {
  begin("destroy_wq");
  HANDLE("wq", wq);
  end();
  free(wq);
  return 0;
}
static struct ibv_rwq_ind_table *create_rwq_ind_table(struct ibv_context *context,
                                                      struct ibv_rwq_ind_table_init_attr *attr) {
  struct ibv_rwq_ind_table *table = NEW(struct ibv_rwq_ind_table);
  table->context = context;
  table->ind_tbl_handle = (int)next_handle++;
  begin("create_rwq_ind_table");
  number("log_ind_tbl_size", attr->log_ind_tbl_size);
  number("comp_mask", attr->comp_mask);
  fprintf(out, ",\"ind_tbl\":[");
  for (int i = 0; i < 1 << attr->log_ind_tbl_size; ++i)
    fprintf(out, "%s%u", i ? "," : "", attr->ind_tbl[i]->handle);
  fprintf(out, "]");
  end();
  return table;
}
static int destroy_rwq_ind_table(struct ibv_rwq_ind_table *table) {
  begin("destroy_rwq_ind_table"), number("table", (unsigned)table->ind_tbl_handle), end();
  free(table);
  return 0;
}

/* Flow steering. */

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr) {
  begin("create_flow");
  HANDLE("qp", qp);
  number("comp_mask", attr->comp_mask);
  number("type", attr->type);
  number("size", attr->size);
  number("priority", attr->priority);
  number("num_of_specs", attr->num_of_specs);
  number("port", attr->port);
  number("flags", attr->flags);
  fprintf(out, ",\"specs\":[");
  const uint8_t *at = (const uint8_t *)(attr + 1);
  for (int i = 0; i < attr->num_of_specs; ++i) {
    const struct ibv_flow_spec *spec = (const struct ibv_flow_spec *)at;
    const unsigned type = spec->hdr.type & ~(unsigned)IBV_FLOW_SPEC_INNER;
    fprintf(out, "%s{\"type\":%u,\"size\":%u", i ? "," : "", spec->hdr.type, spec->hdr.size);
#define FIELD(struct_name, field) \
  bytes(#field, &spec->struct_name.val.field, sizeof spec->struct_name.val.field), \
      bytes("mask_" #field, &spec->struct_name.mask.field, sizeof spec->struct_name.mask.field)
    switch (type) {
      case IBV_FLOW_SPEC_ETH:
        FIELD(eth, dst_mac), FIELD(eth, src_mac), FIELD(eth, ether_type), FIELD(eth, vlan_tag);
        break;
      case IBV_FLOW_SPEC_IPV4:
        FIELD(ipv4, src_ip), FIELD(ipv4, dst_ip);
        break;
      case IBV_FLOW_SPEC_IPV4_EXT:
        FIELD(ipv4_ext, src_ip), FIELD(ipv4_ext, dst_ip), FIELD(ipv4_ext, proto), FIELD(ipv4_ext, tos);
        FIELD(ipv4_ext, ttl), FIELD(ipv4_ext, flags);
        break;
      case IBV_FLOW_SPEC_IPV6:
        FIELD(ipv6, src_ip), FIELD(ipv6, dst_ip), FIELD(ipv6, flow_label), FIELD(ipv6, next_hdr);
        FIELD(ipv6, traffic_class), FIELD(ipv6, hop_limit);
        break;
      case IBV_FLOW_SPEC_ESP:
        FIELD(esp, spi), FIELD(esp, seq);
        break;
      case IBV_FLOW_SPEC_TCP:
      case IBV_FLOW_SPEC_UDP:
        FIELD(tcp_udp, dst_port), FIELD(tcp_udp, src_port);
        break;
      case IBV_FLOW_SPEC_VXLAN_TUNNEL:
        FIELD(tunnel, tunnel_id);
        break;
      case IBV_FLOW_SPEC_GRE:
        FIELD(gre, c_ks_res0_ver), FIELD(gre, protocol), FIELD(gre, key);
        break;
      case IBV_FLOW_SPEC_MPLS:
        FIELD(mpls, label);
        break;
      case IBV_FLOW_SPEC_ACTION_TAG:
        number("tag_id", spec->flow_tag.tag_id);
        break;
      case IBV_FLOW_SPEC_ACTION_HANDLE:
        HANDLE("action", (const struct action *)spec->handle.action);
        break;
      case IBV_FLOW_SPEC_ACTION_COUNT:
        HANDLE("counters", (const struct counters *)spec->flow_count.counters);
        break;
    }
    fprintf(out, "}");
    at += spec->hdr.size;
  }
  fprintf(out, "]");
  number("rest", (unsigned)((const uint8_t *)attr + attr->size - at));
  end();
  struct ibv_flow *flow = NEW(struct ibv_flow);
  flow->context = qp->context;
  flow->handle = next_handle++;
  return flow;
}
static int destroy_flow(struct ibv_flow *flow) {
  begin("destroy_flow"), HANDLE("flow", flow), end();
  free(flow);
  return 0;
}
static void esp(const char *call, const struct ibv_flow_action_esp_attr *attr) {
  const struct ibv_flow_action_esp *e = attr->esp_attr;
  begin(call);
  number("spi", e->spi), number("seq", e->seq), number("tfc_pad", e->tfc_pad), number("flags", e->flags);
  wide("hard_limit_pkts", e->hard_limit_pkts);
  number("keymat_proto", attr->keymat_proto), number("keymat_len", attr->keymat_len);
  if (attr->keymat_ptr) {
    const struct ibv_flow_action_esp_keymat_aes_gcm *key = attr->keymat_ptr;
    wide("iv", key->iv), number("iv_algo", key->iv_algo), number("salt", key->salt), number("icv_len", key->icv_len);
    number("key_len", key->key_len), bytes("aes_key", key->aes_key, sizeof key->aes_key);
  }
  number("replay_proto", attr->replay_proto), number("replay_len", attr->replay_len);
  if (attr->replay_ptr)
    number("replay_size", ((const struct ibv_flow_action_esp_replay_bmp *)attr->replay_ptr)->size);
  number("has_encap", attr->esp_encap != NULL), number("comp_mask", attr->comp_mask), number("esn", attr->esn);
  end();
}
static struct ibv_flow_action *create_flow_action_esp(struct ibv_context *context,
                                                      struct ibv_flow_action_esp_attr *attr) {
  esp("create_flow_action_esp", attr);
  struct action *action = NEW(struct action);
  action->base.context = context;
  action->handle = next_handle++;
  return &action->base;
}
static int modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr) {
  (void)action;
  esp("modify_flow_action_esp", attr);
  return 0;
}
static int destroy_flow_action(struct ibv_flow_action *action) {
  begin("destroy_flow_action"), HANDLE("action", (struct action *)action), end();
  free(action);
  return 0;
}
static struct ibv_counters *create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr) {
  struct counters *counters = NEW(struct counters);
  counters->base.context = context;
  counters->handle = next_handle++;
  begin("create_counters"), number("comp_mask", attr->comp_mask), HANDLE("made", counters), end();
  return &counters->base;
}
static int destroy_counters(struct ibv_counters *counters) {
  begin("destroy_counters"), HANDLE("counters", (struct counters *)counters), end();
  free(counters);
  return 0;
}
static int attach_counters_point_flow(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
                                      struct ibv_flow *flow) {
  begin("attach_counters_point_flow");
  HANDLE("counters", (struct counters *)counters);
  number("counter_desc", attr->counter_desc);
  number("index", attr->index);
  number("comp_mask", attr->comp_mask);
  HANDLE("flow", flow);
  end();
  return 0;
}
static int read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags) {
  (void)counters;
  begin("read_counters"), number("ncounters", count), number("flags", flags), end();
  for (uint32_t i = 0; i < count; ++i) values[i] = 0x100000000ull * (i + 1) + i;
  return 0;
}

/* The context, with all of it. */

static struct ibv_context *new_context(int cmd_fd) {
  struct verbs_context *v = NEW(struct verbs_context);
#define HAS(name) v->name = name
  HAS(query_port), HAS(advise_mr), HAS(alloc_null_mr), HAS(read_counters), HAS(attach_counters_point_flow);
  HAS(create_counters), HAS(destroy_counters), HAS(reg_dm_mr), HAS(alloc_dm), HAS(free_dm), HAS(modify_flow_action_esp);
  HAS(destroy_flow_action), HAS(create_flow_action_esp), HAS(modify_qp_rate_limit), HAS(alloc_parent_domain);
  HAS(dealloc_td), HAS(alloc_td), HAS(modify_cq), HAS(post_srq_ops), HAS(destroy_rwq_ind_table);
  HAS(create_rwq_ind_table), HAS(destroy_wq), HAS(modify_wq), HAS(create_wq), HAS(query_rt_values), HAS(create_cq_ex);
  HAS(query_device_ex), HAS(open_qp), HAS(create_qp_ex), HAS(get_srq_num), HAS(create_srq_ex), HAS(open_xrcd);
  HAS(close_xrcd);
  v->ibv_create_flow = create_flow;
  v->ibv_destroy_flow = destroy_flow;
  v->sz = sizeof *v;
  struct ibv_context *context = &v->context;
  context->device = &device;
  context->abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->ops.alloc_mw = alloc_mw;
  context->ops.bind_mw = bind_mw;
  context->ops.dealloc_mw = dealloc_mw;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  context->ops.post_srq_recv = post_srq_recv;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->cmd_fd = cmd_fd;
  context->async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  context->num_comp_vectors = 4;
  return context;
}
struct ibv_context *ibv_open_device(struct ibv_device *d) {
  (void)d;
  return new_context(eventfd(0, EFD_CLOEXEC));
}
struct ibv_context *ibv_import_device(int cmd_fd) {
  begin("import_device"), number("fd", (unsigned)cmd_fd), end();
  return new_context(cmd_fd);
}
int ibv_close_device(struct ibv_context *context) {
  close(context->async_fd);
  close(context->cmd_fd);
  free((char *)context - offsetof(struct verbs_context, context));
  return 0;
}

/* Newer than the headers of rdma-core 44. */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm) {
  begin("dm_export_dmabuf_fd"), HANDLE("dm", dm), end();
  return 1234;
}
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed) {
  (void)context;
  begin("query_port_speed"), number("port", port), end();
  *speed = 4000;
  return 0;
}
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode) {
  begin("wr_opcode_str"), number("opcode", opcode), end();
  return "an opcode";
}

/* Nothing of these is recorded; the addon is linked against them. */
const char *ibv_wc_status_str(enum ibv_wc_status status) { return status ? "failure" : "success"; }
const char *ibv_node_type_str(enum ibv_node_type type) { return type ? "type" : "none"; }
const char *ibv_port_state_str(enum ibv_port_state state) { return state ? "state" : "none"; }
const char *ibv_event_type_str(enum ibv_event_type type) { return type ? "event" : "none"; }
int ibv_rate_to_mult(enum ibv_rate rate) { return (int)rate; }
enum ibv_rate mult_to_ibv_rate(int multiple) { return (enum ibv_rate)multiple; }
int ibv_rate_to_mbps(enum ibv_rate rate) { return (int)rate; }
enum ibv_rate mbps_to_ibv_rate(int mbps) { return (enum ibv_rate)mbps; }
int ibv_fork_init(void) { return 0; }
enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

/* What the addon and librdmacm are bound to when they are loaded, and no program here calls. */
#define NEVER(name) \
  void name(void) { abort(); }
NEVER(ibv_copy_ah_attr_from_kern)
NEVER(ibv_copy_path_rec_from_kern)
NEVER(ibv_copy_qp_attr_from_kern)
NEVER(ibv_get_sysfs_path)
NEVER(ibv_read_sysfs_file)
int ibv_resize_cq(struct ibv_cq *cq, int cqe) { return (void)cq, (void)cqe, ENOSYS; }
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *attr) {
  return (void)context, (void)port, (void)wc, (void)grh, (void)attr, -1;
}
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vlan) {
  return (void)context, (void)attr, (void)mac, (void)vlan, -1;
}
