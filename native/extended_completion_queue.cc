// Completion queues of ibv_create_cq_ex, and what else is set on a completion queue.
#include <infiniband/verbs.h>

#include <bit>

#include "completion_channel.h"
#include "completion_queue.h"
#include "protection_domain.h"
#include "util/arguments.h"
#include "util/plain_resource.h"

namespace node_rdma {

ibv_cq_ex* CompletionQueue::CreateExtended(ibv_context* context, ibv_comp_channel* channel, uint32_t entries,
                                           uint64_t serial, uint32_t vector, const Extension& extension) {
  ibv_cq_init_attr_ex attributes = {};
  attributes.cqe = entries;
  attributes.cq_context = std::bit_cast<void*>(serial);
  attributes.channel = channel;
  attributes.comp_vector = vector;
  attributes.wc_flags = extension.wc_flags;
  if (extension.flags) {
    attributes.comp_mask |= IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attributes.flags = extension.flags;
  }
  if (extension.parent_domain) {
    attributes.comp_mask |= IBV_CQ_INIT_ATTR_MASK_PD;
    attributes.parent_domain = extension.parent_domain->verbs();
  }
  return ibv_create_cq_ex(context, &attributes);
}

// One completion between start and end: the provider of rdma-core 44 loses completions where ibv_next_poll
// finds no more, and unlocks twice where ibv_end_poll follows a start that failed. Only what the queue was
// created for may be read: the rest are null pointers.
int CompletionQueue::ReadExtended(ibv_wc* completion, Fields* fields) {
  ibv_poll_cq_attr attributes = {};
  const int error = ErrorOfResult(ibv_start_poll(extended_, &attributes));
  if (error == ENOENT) return 0;
  if (error) return -error;
  const auto has = [this](uint64_t flag) { return (wc_flags_ & flag) != 0; };
  *completion = {};
  *fields = {};
  completion->wr_id = extended_->wr_id;
  completion->status = extended_->status;
  if (has(IBV_WC_EX_WITH_QP_NUM)) completion->qp_num = ibv_wc_read_qp_num(extended_);
  if (completion->status != IBV_WC_SUCCESS) {
    completion->vendor_err = ibv_wc_read_vendor_err(extended_);
  } else {
    completion->opcode = ibv_wc_read_opcode(extended_);
    completion->wc_flags = ibv_wc_read_wc_flags(extended_);
    MendFlags(completion);
    if (has(IBV_WC_EX_WITH_BYTE_LEN)) completion->byte_len = ibv_wc_read_byte_len(extended_);
    if (!has(IBV_WC_EX_WITH_IMM)) {
      completion->wc_flags &= ~static_cast<unsigned>(IBV_WC_WITH_IMM | IBV_WC_WITH_INV);
    } else if (completion->wc_flags & IBV_WC_WITH_INV) {
      completion->invalidated_rkey = ibv_wc_read_invalidated_rkey(extended_);
    } else {
      completion->imm_data = ibv_wc_read_imm_data(extended_);
    }
    if (has(IBV_WC_EX_WITH_SRC_QP)) completion->src_qp = ibv_wc_read_src_qp(extended_);
    if (has(IBV_WC_EX_WITH_SLID)) completion->slid = static_cast<uint16_t>(ibv_wc_read_slid(extended_));
    if (has(IBV_WC_EX_WITH_SL)) completion->sl = ibv_wc_read_sl(extended_);
    if (has(IBV_WC_EX_WITH_DLID_PATH_BITS))
      completion->dlid_path_bits = ibv_wc_read_dlid_path_bits(extended_);
    if (has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)) fields->timestamp = ibv_wc_read_completion_ts(extended_);
    if (has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
      fields->wallclock_ns = ibv_wc_read_completion_wallclock_ns(extended_);
    if (has(IBV_WC_EX_WITH_CVLAN)) fields->cvlan = ibv_wc_read_cvlan(extended_);
    if (has(IBV_WC_EX_WITH_FLOW_TAG)) fields->flow_tag = ibv_wc_read_flow_tag(extended_);
    if (has(IBV_WC_EX_WITH_TM_INFO)) {
      ibv_wc_tm_info tag = {};
      ibv_wc_read_tm_info(extended_, &tag);
      fields->tag = tag.tag;
      fields->tag_private = tag.priv;
    }
  }
  ibv_end_poll(extended_);
  return 1;
}

int CompletionQueue::TakeExtended(ibv_wc* completions, uint32_t most) {
  uint32_t count = 0;
  while (count < most) {
    Fields fields;
    if (taken_) {
      completions[count] = *taken_;
      fields = taken_fields_;
      taken_.reset();
    } else {
      const int found = ReadExtended(&completions[count], &fields);
      if (found < 0 && count == 0) return found;
      if (found <= 0) break;
    }
    if (!addon_.queues.Find(static_cast<uint32_t>(completions[count].wr_id >> 32))) {
      ReleaseAbandoned(1);
      continue;
    }
    if (collect_) collect_->push_back(fields);
    ++count;
  }
  return static_cast<int>(count);
}

int CompletionQueue::PollExtended(uint32_t limit, std::vector<Fields>* fields) {
  collect_ = fields;
  counters_->limit = limit;
  const int error = Poll();
  collect_ = nullptr;
  return error;
}

namespace {

// timestamp, wall clock, tag, private data of the tag, flow tag, VLAN
constexpr size_t kFieldWords = 6;

Napi::Value CreateCqEx(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  AddonData& addon = AddonData::Of(env);
  Arguments arguments(info);
  uint32_t entries, vector;
  CompletionQueue::Extension extension = {};
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint32(1, "cqe", &entries) || !arguments.Uint32(2, "compVector", &vector) ||
      !arguments.Uint64(4, "wcFlags", &extension.wc_flags) ||
      !arguments.Uint32(5, "flags", &extension.flags)) {
    return {};
  }
  if (!info[6].IsUndefined() && !(extension.parent_domain = ProtectionDomainWrap::From(info, 6, "pd"))) {
    return {};
  }
  int error = 0;
  std::shared_ptr<CompletionChannel> channel;
  if (!CompletionChannelWrap::Read(info, 3, context, &channel)) return {};
  auto queue = CompletionQueue::Create(addon, context, channel, entries, vector, &extension, &error);
  if (!queue) return Undefined(env, "ibv_create_cq_ex", error);
  return CompletionQueueWrap::New(env, queue);
}

Napi::Value ExtendedPoll(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t limit;
  auto queue = CompletionQueueWrap::From(info, 0, "cq");
  if (!queue || !Arguments(info).Uint32(1, "limit", &limit)) return {};
  if (!queue->extended()) return Undefined(env, "ibv_start_poll", EOPNOTSUPP);
  std::vector<CompletionQueue::Fields> fields;
  if (int error = queue->PollExtended(limit, &fields)) return Undefined(env, "ibv_start_poll", error);
  auto words = Napi::BigUint64Array::New(env, fields.size() * kFieldWords);
  uint64_t* word = words.Data();
  for (const auto& of : fields) {
    for (uint64_t value : {of.timestamp, of.wallclock_ns, of.tag, uint64_t{of.tag_private},
                           uint64_t{of.flow_tag}, uint64_t{of.cvlan}}) {
      *word++ = value;
    }
  }
  return words;
}

Napi::Value ModifyCq(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t count, period;
  auto queue = CompletionQueueWrap::From(info, 0, "cq");
  if (!queue || !arguments.Uint32(1, "count", &count) || !arguments.Uint32(2, "period", &period)) return {};
  ibv_modify_cq_attr attributes = {};
  attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
  attributes.moderate = {static_cast<uint16_t>(count), static_cast<uint16_t>(period)};
  errno = 0;
  return Undefined(info.Env(), "ibv_modify_cq", ErrorOfResult(ibv_modify_cq(queue->verbs(), &attributes)));
}

}  // namespace

void DefineExtendedCompletionQueues(Napi::Env env, Napi::Object exports) {
  exports.Set("createCqEx", Napi::Function::New<CreateCqEx>(env, "createCqEx"));
  exports.Set("extendedPoll", Napi::Function::New<ExtendedPoll>(env, "extendedPoll"));
  exports.Set("modifyCq", Napi::Function::New<ModifyCq>(env, "modifyCq"));
}

}  // namespace node_rdma
