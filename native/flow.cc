#include "flow.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "queue_pair.h"
#include "receive_work_queue.h"
#include "util/arguments.h"

namespace node_rdma {

namespace {

// Bytes of the struct of a kind of spec; 0 for one that there is not.
size_t SizeOfSpec(uint32_t type) {
  switch (type & ~static_cast<uint32_t>(IBV_FLOW_SPEC_INNER)) {
    case IBV_FLOW_SPEC_ETH:
      return sizeof(ibv_flow_spec_eth);
    case IBV_FLOW_SPEC_IPV4:
      return sizeof(ibv_flow_spec_ipv4);
    case IBV_FLOW_SPEC_IPV6:
      return sizeof(ibv_flow_spec_ipv6);
    case IBV_FLOW_SPEC_IPV4_EXT:
      return sizeof(ibv_flow_spec_ipv4_ext);
    case IBV_FLOW_SPEC_ESP:
      return sizeof(ibv_flow_spec_esp);
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP:
      return sizeof(ibv_flow_spec_tcp_udp);
    case IBV_FLOW_SPEC_VXLAN_TUNNEL:
      return sizeof(ibv_flow_spec_tunnel);
    case IBV_FLOW_SPEC_GRE:
      return sizeof(ibv_flow_spec_gre);
    case IBV_FLOW_SPEC_MPLS:
      return sizeof(ibv_flow_spec_mpls);
    case IBV_FLOW_SPEC_ACTION_TAG:
      return sizeof(ibv_flow_spec_action_tag);
    case IBV_FLOW_SPEC_ACTION_DROP:
      return sizeof(ibv_flow_spec_action_drop);
    case IBV_FLOW_SPEC_ACTION_HANDLE:
      return sizeof(ibv_flow_spec_action_handle);
    case IBV_FLOW_SPEC_ACTION_COUNT:
      return sizeof(ibv_flow_spec_counter_action);
    default:
      return 0;
  }
}

struct SpecHeader {
  uint32_t type;
  uint16_t size;
};

// A provider believes the sizes and the pointers that it finds in the specs: each must be of its kind's size,
// and those with a pointer, at `pointers`, are all that have one.
bool SpecsFit(const std::vector<std::byte>& bytes, size_t first, uint32_t count,
              const std::vector<size_t>& pointers) {
  size_t at = first, pointer = 0;
  for (uint32_t i = 0; i < count; ++i) {
    SpecHeader header;
    if (bytes.size() - at < sizeof header) return false;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    const size_t size = SizeOfSpec(header.type);
    if (size == 0 || header.size != size || bytes.size() - at < size) return false;
    const bool action = header.type == IBV_FLOW_SPEC_ACTION_HANDLE;
    if (action || header.type == IBV_FLOW_SPEC_ACTION_COUNT) {
      const size_t place = at + (action ? offsetof(ibv_flow_spec_action_handle, action)
                                        : offsetof(ibv_flow_spec_counter_action, counters));
      if (pointer >= pointers.size() || pointers[pointer++] != place) return false;
    }
    at += size;
  }
  return at == bytes.size() && pointer == pointers.size();
}

// The queue pair in an argument, of either class, and what it is on.
ibv_qp* SteeredTo(const Napi::CallbackInfo& info, std::vector<std::shared_ptr<Resource>>* parents) {
  bool rss = false;
  if (info[0].IsObject()) napi_check_object_type_tag(info.Env(), info[0], &RssQueuePairWrap::kTag, &rss);
  if (rss) {
    auto queue_pair = RssQueuePairWrap::From(info, 0, "qp");
    if (!queue_pair) return nullptr;
    parents->push_back(queue_pair);
    return queue_pair->verbs();
  }
  auto queue_pair = QueuePairWrap::From(info, 0, "qp");
  if (!queue_pair) return nullptr;
  parents->push_back(queue_pair);
  return queue_pair->verbs();
}

Napi::Value CreateFlow(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  std::vector<std::shared_ptr<Resource>> parents;
  uint32_t* words;
  ibv_qp* queue_pair = SteeredTo(info, &parents);
  if (!queue_pair || !arguments.Uint32Array(1, "words", 5, &words)) return {};
  std::vector<std::byte> bytes(sizeof(ibv_flow_attr));
  if (words[2] > 0) {
    Napi::Object view;
    void* specs;
    size_t length;
    if (!arguments.View(2, "specs", &view, &specs, &length)) return {};
    bytes.resize(sizeof(ibv_flow_attr) + length);
    std::memcpy(bytes.data() + sizeof(ibv_flow_attr), specs, length);
  }
  std::vector<size_t> pointers;
  for (size_t i = 3; i + 1 < info.Length(); i += 2) {
    uint32_t place;
    if (!arguments.Uint32(i, "place", &place)) return {};
    bool counts = false;
    if (info[i + 1].IsObject()) {
      napi_check_object_type_tag(env, info[i + 1], &CountersWrap::kTag, &counts);
    }
    void* pointer;
    const ibv_context* context;
    if (counts) {
      auto counters = CountersWrap::From(info, i + 1, "counters");
      if (!counters) return {};
      pointer = counters->verbs();
      context = counters->verbs()->context;
      parents.push_back(counters);
    } else {
      auto action = FlowActionWrap::From(info, i + 1, "action");
      if (!action) return {};
      pointer = action->verbs();
      context = action->verbs()->context;
      parents.push_back(action);
    }
    if (context != queue_pair->context) {
      AddonData::Of(env).ThrowCode(env, "ERR_RDMA_FOREIGN_OBJECT",
                                   "the action or counters belong to another context than the queue pair");
      return {};
    }
    pointers.push_back(sizeof(ibv_flow_attr) + place);
    if (bytes.size() < sizeof pointer || pointers.back() > bytes.size() - sizeof pointer) {
      return Undefined(env, "ibv_create_flow", EINVAL);
    }
    std::memcpy(bytes.data() + pointers.back(), &pointer, sizeof pointer);
  }
  if (bytes.size() > UINT16_MAX || !SpecsFit(bytes, sizeof(ibv_flow_attr), words[2], pointers)) {
    return Undefined(env, "ibv_create_flow", EINVAL);
  }
  ibv_flow_attr attributes = {};
  attributes.type = static_cast<ibv_flow_attr_type>(words[0]);
  attributes.size = static_cast<uint16_t>(bytes.size());
  attributes.priority = static_cast<uint16_t>(words[1]);
  attributes.num_of_specs = static_cast<uint8_t>(words[2]);
  attributes.port = static_cast<uint8_t>(words[3]);
  attributes.flags = words[4];
  std::memcpy(bytes.data(), &attributes, sizeof attributes);
  errno = 0;
  ibv_flow* verbs = ibv_create_flow(queue_pair, reinterpret_cast<ibv_flow_attr*>(bytes.data()));
  return NewPlain<FlowWrap, Flow>(env, "ibv_create_flow", std::move(parents), verbs);
}

// struct ibv_flow_action_esp_attr with what it points to, from words in this order.
class EspAttributes {
 public:
  static constexpr size_t kWords = 25;

  explicit EspAttributes(const uint32_t* words) {
    const auto next = [&words] { return *words++; };
    const auto next64 = [&next] {
      const uint64_t low = next();
      return static_cast<uint64_t>(next()) << 32 | low;
    };
    esp_.spi = next();
    esp_.seq = next();
    esp_.tfc_pad = next();
    esp_.flags = next();
    esp_.hard_limit_pkts = next64();
    attributes_.esp_attr = &esp_;
    const bool keyed = next() != 0;
    key_.iv = next64();
    key_.iv_algo = next();
    key_.salt = next();
    key_.icv_len = next();
    key_.key_len = next();
    for (auto& word : key_.aes_key) word = next();
    if (keyed) {
      attributes_.keymat_proto = IB_UVERBS_FLOW_ACTION_ESP_KEYMAT_AES_GCM;
      attributes_.keymat_len = sizeof key_;
      attributes_.keymat_ptr = &key_;
    }
    const bool replayed = next() != 0;
    window_.size = next();
    attributes_.replay_proto = replayed ? IBV_FLOW_ACTION_ESP_REPLAY_BMP : IBV_FLOW_ACTION_ESP_REPLAY_NONE;
    if (replayed) {
      attributes_.replay_len = sizeof window_;
      attributes_.replay_ptr = &window_;
    }
    if (next() != 0) attributes_.comp_mask = IBV_FLOW_ACTION_ESP_MASK_ESN;
    attributes_.esn = next();
  }
  EspAttributes(const EspAttributes&) = delete;
  EspAttributes& operator=(const EspAttributes&) = delete;

  ibv_flow_action_esp_attr* get() { return &attributes_; }

 private:
  ibv_flow_action_esp esp_ = {};
  ibv_flow_action_esp_keymat_aes_gcm key_ = {};
  ibv_flow_action_esp_replay_bmp window_ = {};
  ibv_flow_action_esp_attr attributes_ = {};
};

Napi::Value CreateFlowActionEsp(const Napi::CallbackInfo& info) {
  uint32_t* words;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !Arguments(info).Uint32Array(1, "words", EspAttributes::kWords, &words)) return {};
  EspAttributes attributes(words);
  errno = 0;
  ibv_flow_action* verbs = ibv_create_flow_action_esp(context->verbs(), attributes.get());
  return NewPlain<FlowActionWrap, FlowAction>(info.Env(), "ibv_create_flow_action_esp", {context}, verbs);
}

Napi::Value CreateCounters(const Napi::CallbackInfo& info) {
  auto context = ContextWrap::From(info, 0, "context");
  if (!context) return {};
  ibv_counters_init_attr attributes = {};
  errno = 0;
  ibv_counters* verbs = ibv_create_counters(context->verbs(), &attributes);
  return NewPlain<CountersWrap, Counters>(info.Env(), "ibv_create_counters", {context}, verbs);
}

// Far above what any device counts.
constexpr uint32_t kMostCounters = 1 << 16;

}  // namespace

void FlowWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {});
  exports.Set("createFlow", Napi::Function::New<CreateFlow>(env, "createFlow"));
}

void FlowActionWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {InstanceMethod("modify", &FlowActionWrap::Modify)});
  exports.Set("createFlowActionEsp", Napi::Function::New<CreateFlowActionEsp>(env, "createFlowActionEsp"));
}

Napi::Value FlowActionWrap::Modify(const Napi::CallbackInfo& info) {
  uint32_t* words;
  auto action = Open(info.Env());
  if (!action || !Arguments(info).Uint32Array(0, "words", EspAttributes::kWords, &words)) return {};
  EspAttributes attributes(words);
  errno = 0;
  return Undefined(info.Env(), "ibv_modify_flow_action_esp",
                   ErrorOfResult(ibv_modify_flow_action_esp(action->verbs(), attributes.get())));
}

void CountersWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(
      env, {InstanceMethod("attach", &CountersWrap::Attach), InstanceMethod("read", &CountersWrap::Read)});
  exports.Set("createCounters", Napi::Function::New<CreateCounters>(env, "createCounters"));
}

Napi::Value CountersWrap::Attach(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t description, index;
  ibv_flow* flow = nullptr;
  auto counters = Open(info.Env());
  if (!counters || !arguments.Uint32(0, "description", &description) ||
      !arguments.Uint32(1, "index", &index)) {
    return {};
  }
  if (!info[2].IsUndefined()) {
    auto wrapped = FlowWrap::From(info, 2, "flow");
    if (!wrapped) return {};
    flow = wrapped->verbs();
  }
  ibv_counter_attach_attr attributes = {static_cast<ibv_counter_description>(description), index, 0};
  errno = 0;
  return Undefined(info.Env(), "ibv_attach_counters_point_flow",
                   ErrorOfResult(ibv_attach_counters_point_flow(counters->verbs(), &attributes, flow)));
}

Napi::Value CountersWrap::Read(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t count, flags;
  auto counters = Open(env);
  if (!counters || !arguments.Uint32(0, "count", &count) || !arguments.Uint32(1, "flags", &flags)) return {};
  if (count == 0 || count > kMostCounters) return Undefined(env, "ibv_read_counters", EINVAL);
  auto values = Napi::BigUint64Array::New(env, count);
  errno = 0;
  if (int error = ErrorOfResult(ibv_read_counters(counters->verbs(), values.Data(), count, flags))) {
    return Undefined(env, "ibv_read_counters", error);
  }
  return values;
}

}  // namespace node_rdma
