#include "library.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "addon_data.h"
#include "util/arguments.h"
#include "util/newer_function.h"
#include "util/plain_resource.h"

namespace node_rdma {

namespace {

// kFunction(number) as a function of JavaScript: a name for the number.
template <auto kFunction>
Napi::Value NameOf(const Napi::CallbackInfo& info) {
  uint32_t number;
  if (!Arguments(info).Uint32(0, "number", &number)) return {};
  return Napi::String::New(info.Env(), kFunction(static_cast<int>(number)));
}

// The same, with a number for the number.
template <auto kFunction>
Napi::Value NumberOf(const Napi::CallbackInfo& info) {
  uint32_t number;
  if (!Arguments(info).Uint32(0, "number", &number)) return {};
  return Napi::Number::New(info.Env(), kFunction(static_cast<int>(number)));
}

const char* NameWcStatus(int number) { return ibv_wc_status_str(static_cast<ibv_wc_status>(number)); }
const char* NameNodeType(int number) { return ibv_node_type_str(static_cast<ibv_node_type>(number)); }
const char* NamePortState(int number) { return ibv_port_state_str(static_cast<ibv_port_state>(number)); }
const char* NameEventType(int number) { return ibv_event_type_str(static_cast<ibv_event_type>(number)); }
const char* NameCmEvent(int number) { return rdma_event_str(static_cast<rdma_cm_event_type>(number)); }
int RateToMult(int number) { return ibv_rate_to_mult(static_cast<ibv_rate>(number)); }
int MultToRate(int number) { return mult_to_ibv_rate(number); }
int RateToMbps(int number) { return ibv_rate_to_mbps(static_cast<ibv_rate>(number)); }
int MbpsToRate(int number) { return mbps_to_ibv_rate(number); }

Napi::Value WrOpcodeString(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  uint32_t opcode;
  if (!Arguments(info).Uint32(0, "opcode", &opcode)) return {};
  static const auto name = NewerFunction<const char*(int)>("ibv_wr_opcode_str");
  if (!name) return Undefined(env, "ibv_wr_opcode_str", ENOSYS);
  return Napi::String::New(env, name(static_cast<int>(opcode)));
}

Napi::Value ForkStatus(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), ibv_is_fork_initialized());
}

Napi::Value ForkInit(const Napi::CallbackInfo& info) {
  return Undefined(info.Env(), "ibv_fork_init", ErrorOfResult(ibv_fork_init()));
}

}  // namespace

void DefineLibrary(Napi::Env env, Napi::Object exports) {
  exports.Set("wcStatusString", Napi::Function::New<NameOf<NameWcStatus>>(env, "wcStatusString"));
  exports.Set("nodeTypeString", Napi::Function::New<NameOf<NameNodeType>>(env, "nodeTypeString"));
  exports.Set("portStateString", Napi::Function::New<NameOf<NamePortState>>(env, "portStateString"));
  exports.Set("eventTypeString", Napi::Function::New<NameOf<NameEventType>>(env, "eventTypeString"));
  exports.Set("cmEventString", Napi::Function::New<NameOf<NameCmEvent>>(env, "cmEventString"));
  exports.Set("wrOpcodeString", Napi::Function::New<WrOpcodeString>(env, "wrOpcodeString"));
  exports.Set("rateToMult", Napi::Function::New<NumberOf<RateToMult>>(env, "rateToMult"));
  exports.Set("multToRate", Napi::Function::New<NumberOf<MultToRate>>(env, "multToRate"));
  exports.Set("rateToMbps", Napi::Function::New<NumberOf<RateToMbps>>(env, "rateToMbps"));
  exports.Set("mbpsToRate", Napi::Function::New<NumberOf<MbpsToRate>>(env, "mbpsToRate"));
  exports.Set("forkStatus", Napi::Function::New<ForkStatus>(env, "forkStatus"));
  exports.Set("forkInit", Napi::Function::New<ForkInit>(env, "forkInit"));
}

}  // namespace node_rdma
