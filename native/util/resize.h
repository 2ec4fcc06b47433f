#pragma once

#include <napi.h>

#include <memory>
#include <utility>
#include <vector>

#include "addon_data.h"
#include "util/arguments.h"
#include "util/promise_worker.h"
#include "util/resource.h"

namespace node_rdma {

// Changes how many entries a queue has, the first argument, at once or with a promise. On the JavaScript
// thread BeginResize(), which returns a positive errno where it cannot be, then Resize() on any thread, then
// EndResize().
template <class Queue>
Napi::Value ResizeQueue(const Napi::CallbackInfo& info, const std::shared_ptr<Queue>& queue,
                        const char* syscall, bool sync) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t entries;
  if (!queue || !arguments.Uint32(0, "entries", &entries)) return {};
  int error = queue->BeginResize(entries);
  if (error == 0 && !sync) {
    std::vector<Resource::Hold> holds;
    holds.emplace_back(queue);
    return PromiseWorker::Run(
        env, syscall, std::move(holds), [queue, entries] { return queue->Resize(entries); },
        [queue](Napi::Env done_env) {
          queue->EndResize(true);
          return done_env.Undefined();
        },
        [queue] { queue->EndResize(false); });
  }
  if (error == 0) {
    error = queue->Resize(entries);
    queue->EndResize(error == 0);
  }
  if (error) AddonData::Of(env).ThrowErrno(env, syscall, error);
  return env.Undefined();
}

}  // namespace node_rdma
