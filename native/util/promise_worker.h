#pragma once

#include <napi.h>

#include <functional>
#include <utility>
#include <vector>

#include "addon_data.h"
#include "util/resource.h"

namespace node_rdma {

// Runs a verbs function that may block on a thread of libuv's pool, and settles a promise with what it says.
// `work` returns 0 or a positive errno and must not touch JavaScript. `done` makes the value, on the
// JavaScript thread, where `failed` runs before the promise is rejected. The objects that the work uses are
// held, so closing one meanwhile is refused as busy.
class PromiseWorker : public Napi::AsyncWorker {
 public:
  using Work = std::function<int()>;
  using Done = std::function<Napi::Value(Napi::Env)>;

  using Failed = std::function<void()>;

  static Napi::Promise Run(Napi::Env env, const char* syscall, std::vector<Resource::Hold> holds, Work work,
                           Done done, Failed failed = {}) {
    auto* worker = new PromiseWorker(env, syscall, std::move(holds), std::move(work), std::move(done),
                                     std::move(failed));
    Napi::Promise promise = worker->deferred_.Promise();
    worker->Queue();
    return promise;
  }

  void Execute() override { error_ = work_(); }

  void OnOK() override {
    Napi::Env env = Env();
    holds_.clear();
    if (error_ != 0) {
      if (failed_) failed_();
      deferred_.Reject(AddonData::Of(env).ErrorFromErrno(env, syscall_, error_));
      return;
    }
    Napi::Value value = done_(env);
    if (env.IsExceptionPending()) {
      deferred_.Reject(env.GetAndClearPendingException().Value());
    } else {
      deferred_.Resolve(value);
    }
  }

 private:
  PromiseWorker(Napi::Env env, const char* syscall, std::vector<Resource::Hold> holds, Work work, Done done,
                Failed failed)
      : Napi::AsyncWorker(env, syscall),
        deferred_(env),
        syscall_(syscall),
        holds_(std::move(holds)),
        work_(std::move(work)),
        done_(std::move(done)),
        failed_(std::move(failed)) {}

  Napi::Promise::Deferred deferred_;
  const char* syscall_;
  std::vector<Resource::Hold> holds_;
  Work work_;
  Done done_;
  Failed failed_;
  int error_ = 0;
};

}  // namespace node_rdma
