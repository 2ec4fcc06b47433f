#include "flow_label.h"

#include <infiniband/verbs.h>

#include "util/arguments.h"

namespace node_rdma {

Napi::Value UdpSourcePort(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t flow_label = 0;
  if (!arguments.Uint32(0, "flowLabel", &flow_label)) return {};
  return Napi::Number::New(info.Env(), ibv_flow_label_to_udp_sport(flow_label));
}

}  // namespace node_rdma
