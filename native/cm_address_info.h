#pragma once

#include <napi.h>

namespace node_rdma {

// getAddressInfo(node, service, flags, family, portSpace, qpType, source or undefined), a function of the
// addon: rdma_getaddrinfo on another thread, since it may ask a name server.
Napi::Value GetAddressInfo(const Napi::CallbackInfo& info);

}  // namespace node_rdma
