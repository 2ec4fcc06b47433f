#pragma once

#include <napi.h>

namespace node_rdma {

// What a context tells, one call each: queryGid(context, port, index), queryGidEntry(context, port, index),
// queryPkey(context, port, index), pkeyIndex(context, port, pkey), queryRtValues(context),
// resolveEthL2(context, words of an address vector), queryPortSpeed(context, port), importDevice(fd),
// commandFd(context).
void DefineContextQueries(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
