#pragma once

#include <napi.h>

namespace node_rdma {

// udpSourcePort(flowLabel): the UDP source port of RoCE v2 packets that carry a flow label.
Napi::Value UdpSourcePort(const Napi::CallbackInfo& info);

}  // namespace node_rdma
