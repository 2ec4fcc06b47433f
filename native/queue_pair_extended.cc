// Queue pairs of ibv_create_qp_ex, and posting by ibv_wr_*.
#include "queue_pair_extended.h"

#include <infiniband/verbs.h>

#include <bit>
#include <cstddef>
#include <vector>

#include "address_handle.h"
#include "domains.h"
#include "memory_region.h"
#include "util/arguments.h"
#include "util/plain_resource.h"

namespace node_rdma {

namespace {

// Newer than the headers of rdma-core 44.
constexpr uint64_t kWithFlush = 1ull << 11;
constexpr uint8_t kOpcodeFlush = 14;
constexpr uint8_t kOpcodeAtomicWrite = 15;

// What the queue pair must have been created with to send an opcode; 0 for none that there is.
uint64_t OperationOf(uint8_t opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return IBV_QP_EX_WITH_RDMA_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    case IBV_WR_SEND:
      return IBV_QP_EX_WITH_SEND;
    case IBV_WR_SEND_WITH_IMM:
      return IBV_QP_EX_WITH_SEND_WITH_IMM;
    case IBV_WR_RDMA_READ:
      return IBV_QP_EX_WITH_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    case IBV_WR_SEND_WITH_INV:
      return IBV_QP_EX_WITH_SEND_WITH_INV;
    case kOpcodeFlush:
      return kWithFlush;
    case kOpcodeAtomicWrite:
      return IBV_QP_EX_WITH_ATOMIC_WRITE;
    default:
      return 0;
  }
}

// ibv_wr_flush is the member behind the last that the oldest headers have. A provider that has accepted the
// operation is of a library that has it.
struct QueuePairWithFlush {
  ibv_qp_ex base;
  void (*wr_flush)(ibv_qp_ex* queue_pair, uint32_t rkey, uint64_t remote_address, size_t length, uint8_t type,
                   uint8_t level);
};

void Flush(ibv_qp_ex* queue_pair, const SendDescriptor& d) {
  const auto type = static_cast<uint8_t>(d.swap);
  const auto level = static_cast<uint8_t>(d.swap >> 8);
  // Only instantiated, and so looked up, where the header has it.
  const auto flush = [&](auto* qp) {
    if constexpr (requires { qp->wr_flush; }) {
      qp->wr_flush(qp, d.rkey, d.remote_address, d.compare_add, type, level);
    } else {
      reinterpret_cast<QueuePairWithFlush*>(qp)->wr_flush(qp, d.rkey, d.remote_address, d.compare_add, type,
                                                          level);
    }
  };
  flush(queue_pair);
}

// The provider of rdma-core 44 takes the length of the first element for the others' too.
bool SameLengths(const ibv_send_wr& request) {
  for (int i = 1; i < request.num_sge; ++i) {
    if (request.sg_list[i].length != request.sg_list[0].length) return false;
  }
  return true;
}

}  // namespace

ibv_qp* QueuePair::CreateExtended(const Parts& parts, ibv_qp_init_attr* init, const Extension& extension) {
  ibv_context* context = parts.domain->verbs()->context;
  if (extension.open_number) {
    ibv_qp_open_attr attributes = {};
    attributes.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attributes.qp_num = *extension.open_number;
    attributes.xrcd = parts.xrc_domain->verbs();
    attributes.qp_type = init->qp_type;
    init->cap = {};
    return ibv_open_qp(context, &attributes);
  }
  ibv_qp_init_attr_ex all = {};
  all.send_cq = init->send_cq;
  all.recv_cq = init->recv_cq;
  all.srq = init->srq;
  all.cap = init->cap;
  all.qp_type = init->qp_type;
  all.sq_sig_all = init->sq_sig_all;
  if (init->qp_type == IBV_QPT_XRC_RECV) {
    // It has no queues of its own: its messages go to the shared receive queues of the domain.
    all.send_cq = all.recv_cq = nullptr;
    all.cap = init->cap = {};
    all.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    all.xrcd = parts.xrc_domain->verbs();
  } else {
    all.comp_mask = IBV_QP_INIT_ATTR_PD;
    all.pd = parts.domain->verbs();
    if (init->qp_type == IBV_QPT_XRC_SEND) {
      all.recv_cq = nullptr;
      all.cap.max_recv_wr = all.cap.max_recv_sge = 0;
    }
  }
  if (extension.create_flags) {
    all.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    all.create_flags = extension.create_flags;
    all.source_qpn = extension.source_qpn;
  }
  if (extension.max_tso_header) {
    all.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    all.max_tso_header = extension.max_tso_header;
  }
  if (extension.send_operations) {
    all.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    all.send_ops_flags = extension.send_operations;
  }
  ibv_qp* verbs = ibv_create_qp_ex(context, &all);
  if (verbs) init->cap = all.cap;
  return verbs;
}

bool QueuePair::TranslateExtended(const SendDescriptor& d, std::string* problem) const {
  if (type() != IBV_QPT_RC && type() != IBV_QPT_XRC_SEND) {
    *problem = "only reliable queue pairs write atomically and flush";
    return false;
  }
  if (d.sge_count > 0 || d.flags & IBV_SEND_INLINE) {
    *problem = "an atomic write carries its 8 bytes itself, and a flush carries none";
    return false;
  }
  if (d.opcode == kOpcodeAtomicWrite && d.remote_address % 8 != 0) {
    *problem = "the remote address of an atomic write must be a multiple of 8";
    return false;
  }
  return true;
}

void QueuePair::PostOne(ibv_qp_ex* extended, const SendDescriptor& d, const ibv_send_wr& request) const {
  extended->wr_id = request.wr_id;
  // The provider of rxe in rdma-core 44 wants IBV_SEND_INLINE among them, which others ignore.
  extended->wr_flags = request.send_flags;
  switch (d.opcode) {
    case IBV_WR_SEND:
      ibv_wr_send(extended);
      break;
    case IBV_WR_SEND_WITH_IMM:
      ibv_wr_send_imm(extended, request.imm_data);
      break;
    case IBV_WR_SEND_WITH_INV:
      ibv_wr_send_inv(extended, request.invalidate_rkey);
      break;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(extended, d.rkey, d.remote_address);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(extended, d.rkey, d.remote_address, request.imm_data);
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(extended, d.rkey, d.remote_address);
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      ibv_wr_atomic_cmp_swp(extended, d.rkey, d.remote_address, d.compare_add, d.swap);
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      ibv_wr_atomic_fetch_add(extended, d.rkey, d.remote_address, d.compare_add);
      break;
    case kOpcodeAtomicWrite:
      ibv_wr_atomic_write(extended, d.rkey, d.remote_address, &d.compare_add);
      return;
    case kOpcodeFlush:
      Flush(extended, d);
      return;
    default:
      return;
  }
  if (type() == IBV_QPT_UD)
    ibv_wr_set_ud_addr(extended, request.wr.ud.ah, request.wr.ud.remote_qpn, request.wr.ud.remote_qkey);
  if (type() == IBV_QPT_XRC_SEND) ibv_wr_set_xrc_srqn(extended, d.remote_srqn);
  if (request.send_flags & IBV_SEND_INLINE) {
    // The provider of rdma-core 44 loses the bytes of lists, so there are none: they are put together first.
    std::vector<std::byte> together;
    for (int i = 0; i < request.num_sge; ++i) {
      const auto* part = std::bit_cast<const std::byte*>(request.sg_list[i].addr);
      together.insert(together.end(), part, part + request.sg_list[i].length);
    }
    ibv_wr_set_inline_data(extended, together.data(), together.size());
  } else if (request.num_sge == 1) {
    ibv_wr_set_sge(extended, request.sg_list->lkey, request.sg_list->addr, request.sg_list->length);
  } else {
    ibv_wr_set_sge_list(extended, static_cast<size_t>(request.num_sge), request.sg_list);
  }
}

PostResult QueuePair::PostExtended() {
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(verbs_);
  if (!extended || send_operations_ == 0) {
    return PostResult::Refused(addon_, kBadState, "this queue pair was created without sendOps");
  }
  const ibv_qp_state state = posting_state_;
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_SQE && state != IBV_QPS_ERR) {
    return PostResult::Refused(addon_, kBadState, "this queue pair cannot send yet: it must be RTS");
  }
  PostResult result;
  const uint32_t count = send_->Fitting();
  if (count == 0) return result;
  const size_t most = send_->shape().max_sge;
  std::vector<SendDescriptor> descriptors(count);
  std::vector<ibv_send_wr> requests(count);
  std::vector<ibv_sge> elements(count * most);
  std::string& problem = addon_.problem;
  problem.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = send_->Place(i);
    auto& d = descriptors[i] = send_->ReadSend(place);
    ibv_send_wr& request = requests[i] = {};
    request.sg_list = &elements[i * most];
    auto& noted =
        send_->requests()->Prepare(i, static_cast<uint64_t>(d.id_high) << 32 | d.id, &request.wr_id);
    request.send_flags = d.flags;
    const bool only_extended = d.opcode == kOpcodeFlush || d.opcode == kOpcodeAtomicWrite;
    const uint64_t operation = OperationOf(d.opcode);
    if (operation == 0 || (send_operations_ & operation) == 0) {
      problem = "opcode " + std::to_string(d.opcode) + " is not among the sendOps of the queue pair";
    } else if (only_extended) {
      TranslateExtended(d, &problem);
    } else {
      TranslateAny(d, place, noted, &request, &problem);
    }
    if (problem.empty() && parts_.send_cq->context()->soft_roce() &&
        !(request.send_flags & IBV_SEND_INLINE) && !SameLengths(request)) {
      problem =
          "the provider of rxe sends wrong bytes for elements of different lengths by ibv_wr_*: use "
          "postSend()";
    }
    if (!problem.empty()) {
      return send_->Refuse(i + 1);
    }
  }
  ibv_wr_start(extended);
  for (uint32_t i = 0; i < count; ++i) PostOne(extended, descriptors[i], requests[i]);
  result.error = ErrorOfResult(ibv_wr_complete(extended));
  // All or none.
  result.posted = result.error == 0 ? count : 0;
  send_->requests()->Commit(result.posted, count);
  return result;
}

namespace {

// One request with a header that the device repeats in front of each segment of at most `mss` bytes.
// sendTso(qp, header, mss, address handle, remote queue pair, its Q_Key, wrId, flags, count, ...[mr, offset,
// length]); the handle is undefined but for datagrams.
Napi::Value SendTso(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  Napi::Object view;
  void* header;
  size_t header_length;
  uint32_t mss, remote_qpn, remote_qkey, flags, count;
  uint64_t id;
  std::shared_ptr<AddressHandle> handle;
  auto queue_pair = QueuePairWrap::From(info, 0, "qp");
  if (!queue_pair || !arguments.View(1, "header", &view, &header, &header_length) ||
      !arguments.Uint32(2, "mss", &mss) ||
      (!info[3].IsUndefined() && !(handle = AddressHandleWrap::From(info, 3, "ah"))) ||
      !arguments.Uint32(4, "remoteQpn", &remote_qpn) || !arguments.Uint32(5, "remoteQkey", &remote_qkey) ||
      !arguments.Uint64(6, "wrId", &id) || !arguments.Uint32(7, "flags", &flags) ||
      !arguments.Uint32(8, "count", &count)) {
    return {};
  }
  ibv_qp_ex* extended = queue_pair->ForOperation(IBV_QP_EX_WITH_TSO);
  SharedQueue& sends = queue_pair->sends();
  if (!extended || queue_pair->state() != IBV_QPS_RTS ||
      (queue_pair->type() == IBV_QPT_UD) != (handle != nullptr)) {
    addon.ThrowCode(
        env, kBadState,
        "segments are sent by a queue pair that was created with the sendOp 'tso', in RTS; by one for "
        "datagrams to an address handle");
    return {};
  }
  if (handle && handle->domain() != queue_pair->domain()->root()) {
    addon.ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                    "the address handle belongs to another protection domain");
    return {};
  }
  if (count > sends.shape().max_sge || header_length > UINT16_MAX || mss == 0 || mss > UINT16_MAX) {
    return Undefined(env, "ibv_wr_send_tso", EINVAL);
  }
  if (sends.requests()->free() == 0) {
    addon.ThrowCode(env, "ERR_RDMA_QUEUE_FULL", "the send queue, or its completion queue, has no room");
    return {};
  }
  std::vector<ibv_sge> elements;
  std::vector<std::shared_ptr<MemoryRegion>> regions;
  for (size_t i = 0; i < count; ++i) {
    uint64_t offset;
    uint32_t length;
    auto region = MemoryRegionWrap::From(info, 9 + 3 * i, "mr");
    if (!region || !arguments.Uint64(10 + 3 * i, "offset", &offset) ||
        !arguments.Uint32(11 + 3 * i, "length", &length)) {
      return {};
    }
    if (region->domain() != queue_pair->domain()->root() || offset > region->length() ||
        length > region->length() - offset) {
      return Undefined(env, "ibv_wr_send_tso", EINVAL);
    }
    elements.push_back({region->iova() + offset, length, region->lkey()});
    regions.push_back(std::move(region));
  }
  WorkQueue& requests = *sends.requests();
  uint64_t wr_id;
  auto& noted = requests.Prepare(0, id, &wr_id);
  for (auto& region : regions) requests.Name(noted, *region);
  if (handle) requests.NameAddress(noted, *handle);
  ibv_wr_start(extended);
  extended->wr_id = wr_id;
  extended->wr_flags = flags;
  ibv_wr_send_tso(extended, header, static_cast<uint16_t>(header_length), static_cast<uint16_t>(mss));
  if (handle) ibv_wr_set_ud_addr(extended, handle->verbs(), remote_qpn, remote_qkey);
  ibv_wr_set_sge_list(extended, elements.size(), elements.data());
  const int error = ErrorOfResult(ibv_wr_complete(extended));
  requests.Commit(error == 0 ? 1 : 0, 1);
  return Undefined(env, "ibv_wr_complete", error);
}

}  // namespace

void DefineExtendedPosting(Napi::Env env, Napi::Object exports) {
  exports.Set("sendTso", Napi::Function::New<SendTso>(env, "sendTso"));
}

bool ReadExtension(const Napi::CallbackInfo& info, size_t index,
                   std::optional<QueuePair::Extension>* extension, std::shared_ptr<XrcDomain>* xrc_domain) {
  if (info[index].IsUndefined()) return true;
  constexpr size_t kWords = 7;
  uint32_t* words;
  if (!Arguments(info).Uint32Array(index, "extension", kWords, &words)) return false;
  if (!info[index + 1].IsUndefined() && !(*xrc_domain = XrcDomainWrap::From(info, index + 1, "xrcd"))) {
    return false;
  }
  auto& read = extension->emplace();
  read.create_flags = words[0];
  read.source_qpn = words[1];
  read.max_tso_header = static_cast<uint16_t>(words[2]);
  read.send_operations = static_cast<uint64_t>(words[4]) << 32 | words[3];
  if (words[5]) read.open_number = words[6];
  return true;
}

}  // namespace node_rdma
