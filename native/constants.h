#pragma once

#include <napi.h>

namespace node_rdma {

// What the installed headers say of the numbers and sizes that lib/verbs knows by heart, for the test that
// compares them.
Napi::Value HeaderConstants(const Napi::CallbackInfo& info);

}  // namespace node_rdma
