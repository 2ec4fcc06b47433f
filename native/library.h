#pragma once

#include <napi.h>

namespace node_rdma {

// What the libraries do without a device: names of numbers, rates, what fork() means. Each takes and returns
// numbers, or returns a string: wcStatusString(status), nodeTypeString(type), portStateString(state),
// eventTypeString(type), cmEventString(type), wrOpcodeString(opcode), rateToMult(rate), multToRate(mult),
// rateToMbps(rate), mbpsToRate(mbps), forkStatus(), forkInit().
void DefineLibrary(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
