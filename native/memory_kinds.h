#pragma once

#include <napi.h>

namespace node_rdma {

// Memory regions besides those of plain memory, and what is done with regions:
// allocNullMr(pd), regImplicitMr(pd, access), regDmabufMr(pd, fd, offset, length, iova, access, sync),
// regDmMr(pd, dm, offset, length, access), importMr(pd, handle, iova, length, access),
// reregMr(mr, flags, pd, source, access, sync), adviseMr(pd, advice, flags, sync, count, ...[mr, offset,
// length]).
void DefineMemoryKinds(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
