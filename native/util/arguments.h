#pragma once

#include <napi.h>

#include <cstdint>
#include <string>

namespace node_rdma {

// Reads the arguments of a call one by one. Each reader returns false with a TypeError or RangeError pending
// when the argument does not fit; the caller then returns at once. TypeScript has checked what users pass;
// this is what keeps any other value from becoming a wrong number in C.
class Arguments {
 public:
  explicit Arguments(const Napi::CallbackInfo& info) : info_(info) {}

  bool Uint32(size_t index, const char* name, uint32_t* out);
  bool Uint64(size_t index, const char* name, uint64_t* out);  // a safe integer or a BigInt
  bool Boolean(size_t index, const char* name, bool* out);
  bool String(size_t index, const char* name, std::string* out);
  bool Function(size_t index, const char* name, Napi::Function* out);
  bool Uint32Array(size_t index, const char* name, size_t length, uint32_t** out);

  // A Uint8Array or any other view of an ArrayBuffer or SharedArrayBuffer that is not detached.
  bool View(size_t index, const char* name, Napi::Object* object, void** data, size_t* length);

 private:
  bool Fail(const char* name, const char* expected, bool range = false);

  const Napi::CallbackInfo& info_;
};

}  // namespace node_rdma
