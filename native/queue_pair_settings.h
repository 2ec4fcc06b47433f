#pragma once

#include <napi.h>

namespace node_rdma {

// What is set on a queue pair or asked of it, one call each: attachMcast(qp, gid, lid), detachMcast(qp, gid,
// lid), setEce(qp, vendorId, options), queryEce(qp), modifyQpRateLimit(qp, limit, burst, packet),
// queryQpDataInOrder(qp, opcode, flags).
void DefineQueuePairSettings(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
