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
  napi_get_uv_event_loop(env, &loop_);
  async_context_.emplace(env, "node_rdma.event");
  Napi::Value prototype = env.Global().Get("ArrayBuffer").As<Napi::Object>().Get("prototype");
  Napi::Value moves = prototype.As<Napi::Object>().Get("transfer");
  if (moves.IsFunction()) transfer = Napi::Persistent(moves.As<Napi::Function>());
  // An asynchronous one: it makes the loop come round until the handles on it are closed.
  napi_add_async_cleanup_hook(
      env,
      [](napi_async_cleanup_hook_handle, void* data) {
        auto* self = static_cast<AddonData*>(data);
        ++self->loop_handles_;
        self->CloseAll();
        self->LoopHandleClosed();
      },
      this, &cleanup_);
}

AddonData& AddonData::Of(napi_env env) { return *Napi::Env(env).GetInstanceData<AddonData>(); }

bool AddonData::Detach(Napi::ArrayBuffer buffer) {
  if (transfer.IsEmpty()) {
    buffer.Detach();
  } else {
    transfer.Call(buffer, {Napi::Number::New(env_, 0)});
    if (env_.IsExceptionPending()) env_.GetAndClearPendingException();
  }
  return buffer.IsDetached();
}

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
  if (!resource->borrowed()) on_leak.Call({Napi::String::New(env, kind)});
  if (env.IsExceptionPending()) env.GetAndClearPendingException();
  resource->OnClosing();
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
      if (resource->drives_dma() != dma || resource->closed()) continue;
      resource->OnClosing();
      if (resource->Close() == 0) resource->OnClosed();
    }
  }
  async_context_.reset();
  // What could not be destroyed is left to the end of the process: its destructor would run without an
  // environment.
  for (auto& resource : resources) {
    if (!resource->closed()) new std::shared_ptr<Resource>(std::move(resource));
  }
}

void AddonData::LoopHandleClosed() {
  if (--loop_handles_ == 0 && ended_) napi_remove_async_cleanup_hook(cleanup_);
}

void AddonData::TellCompletionEvents(const std::set<uint64_t>& serials, int error) {
  if (ended_) return;
  Napi::HandleScope scope(env_);
  Napi::Array list = Napi::Array::New(env_, serials.size());
  uint32_t i = 0;
  for (uint64_t serial : serials) {
    napi_set_element(env_, list, i++, Napi::Number::New(env_, static_cast<double>(serial)));
  }
  Call(on_completion_events, {list, Napi::Number::New(env_, error)});
}

void AddonData::TellAsyncEvents(uint64_t context, const std::vector<AsyncEvent>& events) {
  if (ended_) return;
  Napi::HandleScope scope(env_);
  Napi::Array list = Napi::Array::New(env_, events.size() * 2);
  uint32_t i = 0;
  for (const AsyncEvent& event : events) {
    napi_set_element(env_, list, i++, Napi::Number::New(env_, event.type));
    napi_set_element(env_, list, i++, Napi::Number::New(env_, event.subject));
  }
  Call(on_async_events, {Napi::Number::New(env_, static_cast<double>(context)), list});
}

void AddonData::TellCmEvents(uint64_t channel, Napi::Array events, int error) {
  if (ended_) return;
  Call(on_cm_events,
       {Napi::Number::New(env_, static_cast<double>(channel)), events, Napi::Number::New(env_, error)});
}

void AddonData::Call(const Napi::FunctionReference& function, std::initializer_list<napi_value> arguments) {
  Napi::CallbackScope scope(env_, *async_context_);
  // Fails where JavaScript may not run any more, as in a worker that is being terminated.
  napi_status status =
      napi_call_function(env_, env_.Global(), function.Value(), arguments.size(), arguments.begin(), nullptr);
  if (status != napi_pending_exception) return;
  napi_value exception;
  if (napi_get_and_clear_last_exception(env_, &exception) == napi_ok) napi_fatal_exception(env_, exception);
}

}  // namespace node_rdma
