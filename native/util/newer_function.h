#pragma once

#include <dlfcn.h>

namespace node_rdma {

// A function of the loaded libibverbs that the oldest supported one (rdma-core 44) lacks; null where it does.
// `Type` is its type, such as int(ibv_context*).
template <class Type>
Type* NewerFunction(const char* name) {
  return reinterpret_cast<Type*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace node_rdma
