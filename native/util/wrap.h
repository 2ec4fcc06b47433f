#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addon_data.h"
#include "util/promise_worker.h"

namespace node_rdma {

// The JavaScript side of one verbs object: shared parts of all classes that native/ gives to lib/verbs.
// `Self` has kKind, kName, kDestroy (the verbs function behind close()) and kTag, a type tag of its own,
// which makes passing an object of another class an error instead of a wild pointer.
template <class Self, class Native>
class Wrap : public Napi::ObjectWrap<Self> {
 public:
  explicit Wrap(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Self>(info) {
    if (info.Length() != 1 || !info[0].IsExternal()) {
      Napi::TypeError::New(info.Env(), std::string(Self::kName) + " has no public constructor")
          .ThrowAsJavaScriptException();
      return;
    }
    native_ = std::move(*info[0].As<Napi::External<std::shared_ptr<Native>>>().Data());
    napi_type_tag_object(info.Env(), info.This(), &Self::kTag);
  }

  // Runs when the garbage collector has found the object, and when the environment ends.
  ~Wrap() override {
    Napi::Env env = this->Env();
    if (native_) AddonData::Of(env).Reap(env, std::move(native_), Self::kName);
  }

  static Napi::Object New(Napi::Env env, std::shared_ptr<Native> native) {
    auto external = Napi::External<std::shared_ptr<Native>>::New(env, &native);
    return AddonData::Of(env).constructors[static_cast<size_t>(Self::kKind)].New({external});
  }

  // The object in an argument, when it is one of this class and open; otherwise null, with an exception
  // pending.
  static std::shared_ptr<Native> From(const Napi::CallbackInfo& info, size_t index, const char* name) {
    Napi::Env env = info.Env();
    Napi::Value value = info[index];
    bool ours = false;
    if (value.IsObject()) napi_check_object_type_tag(env, value, &Self::kTag, &ours);
    if (!ours) {
      Napi::TypeError error =
          Napi::TypeError::New(env, std::string("\"") + name + "\" must be a " + Self::kName);
      error.Set("code", Napi::String::New(env, "ERR_INVALID_ARG_TYPE"));
      error.ThrowAsJavaScriptException();
      return nullptr;
    }
    return Self::Unwrap(value.As<Napi::Object>())->Open(env);
  }

 protected:
  static void Define(Napi::Env env, std::vector<Napi::ClassPropertyDescriptor<Self>> properties) {
    using Base = Napi::ObjectWrap<Self>;
    properties.push_back(Base::InstanceMethod("close", &Wrap::Close));
    properties.push_back(Base::InstanceMethod("closeAsync", &Wrap::CloseAsync));
    properties.push_back(Base::InstanceAccessor("closed", &Wrap::Closed, nullptr));
    Napi::Function constructor = Self::DefineClass(env, Self::kName, properties);
    AddonData::Of(env).constructors[static_cast<size_t>(Self::kKind)] = Napi::Persistent(constructor);
  }

  // The native object while it is open; null, with ERR_RDMA_CLOSED pending, once it is closed.
  std::shared_ptr<Native> Open(Napi::Env env) {
    if (native_ && native_->usable()) return native_;
    AddonData::Of(env).ThrowCode(env, "ERR_RDMA_CLOSED", std::string(Self::kName) + " is closed");
    return nullptr;
  }

  const std::shared_ptr<Native>& native() const { return native_; }

 private:
  Napi::Value Close(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    if (native_->closed()) return env.Undefined();
    native_->OnClosing();
    if (int error = native_->in_use() ? EBUSY : native_->Close()) {
      if (!native_->closing) native_->OnCloseFailed();
      AddonData::Of(env).ThrowErrno(env, Self::kDestroy, error);
    } else {
      native_->OnClosed();
    }
    return env.Undefined();
  }

  Napi::Value CloseAsync(const Napi::CallbackInfo& info) {
    auto native = native_;
    bool in_use = native->in_use();
    // What is in use will be refused, and works on.
    const int closing = in_use ? 0 : 1;
    native->closing += closing;
    if (!in_use) native->OnClosing();
    return PromiseWorker::Run(
        info.Env(), Self::kDestroy, {}, [native, in_use] { return in_use ? EBUSY : native->Close(); },
        [native, closing](Napi::Env env) {
          native->closing -= closing;
          native->OnClosed();
          return env.Undefined();
        },
        [native, closing] {
          native->closing -= closing;
          if (!native->closing) native->OnCloseFailed();
        });
  }

  Napi::Value Closed(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), native_->closed());
  }

  std::shared_ptr<Native> native_;
};

// A function bound to a native object, for calls that must cost as little as Node-API allows: no `this` to
// unwrap. The function keeps the object's memory, though not the verbs object, for as long as it can be
// called.
template <class Native>
Napi::Function BindHot(Napi::Env env, const char* name, const std::shared_ptr<Native>& native,
                       napi_callback callback) {
  auto* held = new std::shared_ptr<Native>(native);
  napi_value function;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, held, &function);
  napi_add_finalizer(
      env, function, held,
      [](napi_env finalizer_env, void* data, void*) {
        auto* resource = static_cast<std::shared_ptr<Native>*>(data);
        // The last holder of an object that was never closed: destroying it may block, so not here.
        if (resource->use_count() == 1 && !(*resource)->closed()) {
          AddonData::Of(finalizer_env)
              .Reap(Napi::Env(finalizer_env), std::move(*resource), Native::kKindName);
        }
        delete resource;
      },
      nullptr, nullptr);
  return {env, function};
}

// The open object that the function is bound to; null, with ERR_RDMA_CLOSED pending, when it is closed.
template <class Native>
Native* Hot(napi_env env, napi_callback_info info, size_t argc = 0, napi_value* arguments = nullptr) {
  void* data;
  napi_get_cb_info(env, info, argc > 0 ? &argc : nullptr, arguments, nullptr, &data);
  auto* native = static_cast<std::shared_ptr<Native>*>(data)->get();
  if (native->usable()) return native;
  AddonData::Of(env).ThrowCode(env, "ERR_RDMA_CLOSED", std::string(Native::kKindName) + " is closed");
  return nullptr;
}

}  // namespace node_rdma
