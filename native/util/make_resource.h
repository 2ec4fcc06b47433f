#pragma once

#include <napi.h>

#include <memory>
#include <utility>
#include <vector>

#include "addon_data.h"
#include "util/promise_worker.h"
#include "util/resource.h"

namespace node_rdma {

// Makes a verbs object by a function that may block: on this thread (`sync`), or on another with a promise.
// `make(&error)` returns it, or null with a positive errno, and must not touch JavaScript; `present(env,
// object)` makes its JavaScript side.
template <class Native, class Make, class Present>
Napi::Value MakeResource(Napi::Env env, const char* syscall, bool sync,
                         const std::shared_ptr<Resource>& parent, Make make, Present present) {
  if (sync) {
    int error = 0;
    std::shared_ptr<Native> native = make(&error);
    if (!native) {
      AddonData::Of(env).ThrowErrno(env, syscall, error);
      return {};
    }
    return present(env, native);
  }
  auto native = std::make_shared<std::shared_ptr<Native>>();
  std::vector<Resource::Hold> holds;
  holds.emplace_back(parent);
  return PromiseWorker::Run(
      env, syscall, std::move(holds),
      [native, make] {
        int error = 0;
        *native = make(&error);
        return error;
      },
      [native, present](Napi::Env done_env) { return present(done_env, *native); });
}

}  // namespace node_rdma
