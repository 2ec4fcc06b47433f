#include "addon_data.h"

#include <algorithm>
#include <utility>

namespace node_rdma {

namespace {

// Closes an object on another thread, then lets go of what it has in JavaScript on its own.
class ReapWorker : public Napi::AsyncWorker {
 public:
  ReapWorker(Napi::Env env, std::shared_ptr<Resource> resource)
      : Napi::AsyncWorker(env, "node_rdma.reap"), resource_(std::move(resource)) {}

  void Execute() override { error_ = resource_->Close(); }

  // With children alive, Close() has declined: they hold it, and it goes with the last of them.
  void OnOK() override {
    if (error_ == 0) resource_->OnClosed();
    resource_.reset();
  }

 private:
  std::shared_ptr<Resource> resource_;
  int error_ = 0;
};

}  // namespace

AddonData::AddonData(Napi::Env env) : env_(env) {
  env.AddCleanupHook([](AddonData* self) { self->CloseAll(); }, this);
}

AddonData& AddonData::Of(napi_env env) { return *Napi::Env(env).GetInstanceData<AddonData>(); }

Napi::Value AddonData::ErrorFromErrno(Napi::Env env, const char* syscall, int error) {
  return error_from_errno.Call({Napi::String::New(env, syscall), Napi::Number::New(env, error)});
}

void AddonData::ThrowErrno(Napi::Env env, const char* syscall, int error) {
  Napi::Value value = ErrorFromErrno(env, syscall, error);
  if (!env.IsExceptionPending()) napi_throw(env, value);
}

void AddonData::ThrowCode(Napi::Env env, const char* code, const std::string& message) {
  Napi::Value value = error_from_code.Call({Napi::String::New(env, code), Napi::String::New(env, message)});
  if (!env.IsExceptionPending()) napi_throw(env, value);
}

void AddonData::Reap(Napi::Env env, std::shared_ptr<Resource> resource, const char* kind) {
  if (ended_ || resource->closed()) return;
  Napi::HandleScope scope(env);
  on_leak.Call({Napi::String::New(env, kind)});
  if (env.IsExceptionPending()) env.GetAndClearPendingException();
  if (resource->in_use()) {
    abandoned_.push_back(std::move(resource));
  } else {
    (new ReapWorker(env, std::move(resource)))->Queue();
  }
}

void AddonData::ReapUnused() {
  auto in_use = std::partition(abandoned_.begin(), abandoned_.end(), [](auto& r) { return !r->in_use(); });
  for (auto it = abandoned_.begin(); it != in_use; ++it) (new ReapWorker(env_, std::move(*it)))->Queue();
  abandoned_.erase(abandoned_.begin(), in_use);
}

void AddonData::CloseAll() {
  ended_ = true;
  Napi::HandleScope scope(env_);
  auto resources = registry->NewestFirst();
  for (bool dma : {true, false}) {
    for (auto& resource : resources) {
      if (resource->drives_dma() == dma && resource->Close() == 0) resource->OnClosed();
    }
  }
  // What could not be destroyed is left to the end of the process: its destructor would run without an
  // environment.
  for (auto& resource : resources) {
    if (!resource->closed()) new std::shared_ptr<Resource>(std::move(resource));
  }
}

}  // namespace node_rdma
