#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include "util/plain_resource.h"
#include "util/wrap.h"

namespace node_rdma {

// struct ibv_flow: a rule that steers packets to a queue pair.
class Flow final : public PlainResource<ibv_flow> {
 public:
  using PlainResource::PlainResource;
  ~Flow() override { Close(); }
  // At the end of an environment it goes with the queue pairs, of which it must go before its own.
  bool drives_dma() const override { return true; }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_destroy_flow(verbs())); }
};

class FlowWrap final : public Wrap<FlowWrap, Flow> {
 public:
  static constexpr Kind kKind = Kind::kFlow;
  static constexpr const char* kName = "Flow";
  static constexpr const char* kDestroy = "ibv_destroy_flow";
  static constexpr napi_type_tag kTag = {0x897ea8c198c56337, 0x124e191051b0fb7e};

  // createFlow(qp, words, specs, ...[place, action or counters]): `words` are type, priority, number of
  // specs, port and flags, `specs` the bytes of their structs, in which the pointer at `place` is that of the
  // object.
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;
};

// struct ibv_flow_action: what a rule does with a packet (IPsec).
class FlowAction final : public PlainResource<ibv_flow_action> {
 public:
  using PlainResource::PlainResource;
  ~FlowAction() override { Close(); }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_destroy_flow_action(verbs())); }
};

class FlowActionWrap final : public Wrap<FlowActionWrap, FlowAction> {
 public:
  static constexpr Kind kKind = Kind::kFlowAction;
  static constexpr const char* kName = "FlowAction";
  static constexpr const char* kDestroy = "ibv_destroy_flow_action";
  static constexpr napi_type_tag kTag = {0xaeddf11b43a5f952, 0x2617a25a31ec057d};

  // createFlowActionEsp(context, words), see EspAttributes
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;

 private:
  Napi::Value Modify(const Napi::CallbackInfo& info);
};

// struct ibv_counters.
class Counters final : public PlainResource<ibv_counters> {
 public:
  using PlainResource::PlainResource;
  ~Counters() override { Close(); }

 protected:
  int Destroy() override { return ErrorOfResult(ibv_destroy_counters(verbs())); }
};

class CountersWrap final : public Wrap<CountersWrap, Counters> {
 public:
  static constexpr Kind kKind = Kind::kCounters;
  static constexpr const char* kName = "Counters";
  static constexpr const char* kDestroy = "ibv_destroy_counters";
  static constexpr napi_type_tag kTag = {0x1ddf4b8839431a8f, 0xd6f758d94dc0552b};

  // createCounters(context)
  static void Define(Napi::Env env, Napi::Object exports);
  using Wrap::Wrap;

 private:
  // attach(description, index, flow), where the flow may be undefined; read(count, flags)
  Napi::Value Attach(const Napi::CallbackInfo& info);
  Napi::Value Read(const Napi::CallbackInfo& info);
};

}  // namespace node_rdma
