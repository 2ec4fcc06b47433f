#pragma once

#include <napi.h>

#include <memory>
#include <utility>
#include <vector>

#include "addon_data.h"
#include "util/resource.h"
#include "util/verbs_error.h"

namespace node_rdma {

// A verbs object of which nothing is wanted but that it lives no longer than its parents. The final class has
// Destroy(), and a destructor that closes it.
template <class Verbs>
class PlainResource : public Resource {
 public:
  PlainResource(std::shared_ptr<Registry> registry, std::vector<std::shared_ptr<Resource>> parents,
                Verbs* verbs)
      : Resource(std::move(registry), std::move(parents)), verbs_(verbs) {}

  Verbs* verbs() const { return verbs_; }

 private:
  Verbs* verbs_;
};

// The JavaScript side of what `syscall` has just made; empty, with the failure pending, where it made
// nothing. `Wrapped` is the class in JavaScript.
template <class Wrapped, class Native, class Verbs>
Napi::Object NewPlain(Napi::Env env, const char* syscall, std::vector<std::shared_ptr<Resource>> parents,
                      Verbs* verbs) {
  AddonData& addon = AddonData::Of(env);
  if (int error = ErrorOfPointer(verbs)) {
    addon.ThrowErrno(env, syscall, error);
    return {};
  }
  return Wrapped::New(env, std::make_shared<Native>(addon.registry, std::move(parents), verbs));
}

// Throws the failure of a function that answers with an errno; otherwise undefined.
inline Napi::Value Undefined(Napi::Env env, const char* syscall, int error) {
  if (error) AddonData::Of(env).ThrowErrno(env, syscall, error);
  return env.Undefined();
}

}  // namespace node_rdma
