#include "util/arguments.h"

#include <cmath>

namespace node_rdma {

namespace {
constexpr double kMaxSafeInteger = 9007199254740991.0;
}

bool Arguments::Fail(const char* name, const char* expected, bool range) {
  Napi::Env env = info_.Env();
  std::string message = std::string("\"") + name + "\" must be " + expected;
  Napi::Error error =
      range ? Napi::Error(Napi::RangeError::New(env, message)) : Napi::TypeError::New(env, message);
  error.Set("code", Napi::String::New(env, range ? "ERR_OUT_OF_RANGE" : "ERR_INVALID_ARG_TYPE"));
  error.ThrowAsJavaScriptException();
  return false;
}

bool Arguments::Uint32(size_t index, const char* name, uint32_t* out) {
  Napi::Value value = info_[index];
  if (!value.IsNumber()) return Fail(name, "a number");
  double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= 0 && number <= UINT32_MAX) || number != std::floor(number)) {
    return Fail(name, "an integer from 0 to 2^32-1", true);
  }
  *out = static_cast<uint32_t>(number);
  return true;
}

bool Arguments::Uint64(size_t index, const char* name, uint64_t* out) {
  Napi::Value value = info_[index];
  if (value.IsBigInt()) {
    bool lossless = false;
    *out = value.As<Napi::BigInt>().Uint64Value(&lossless);
    return lossless || Fail(name, "an integer from 0 to 2^64-1", true);
  }
  if (!value.IsNumber()) return Fail(name, "a number or a BigInt");
  double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= 0 && number <= kMaxSafeInteger) || number != std::floor(number)) {
    return Fail(name, "an integer from 0 to 2^53-1, or a BigInt", true);
  }
  *out = static_cast<uint64_t>(number);
  return true;
}

bool Arguments::Boolean(size_t index, const char* name, bool* out) {
  Napi::Value value = info_[index];
  if (!value.IsBoolean()) return Fail(name, "true or false");
  *out = value.As<Napi::Boolean>().Value();
  return true;
}

bool Arguments::String(size_t index, const char* name, std::string* out) {
  Napi::Value value = info_[index];
  if (!value.IsString()) return Fail(name, "a string");
  *out = value.As<Napi::String>().Utf8Value();
  return true;
}

bool Arguments::Function(size_t index, const char* name, Napi::Function* out) {
  Napi::Value value = info_[index];
  if (!value.IsFunction()) return Fail(name, "a function");
  *out = value.As<Napi::Function>();
  return true;
}

bool Arguments::Uint32Array(size_t index, const char* name, size_t length, uint32_t** out) {
  Napi::Value value = info_[index];
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint32_array) {
    return Fail(name, "a Uint32Array");
  }
  auto array = value.As<Napi::Uint32Array>();
  if (array.ElementLength() < length) return Fail(name, "a longer Uint32Array", true);
  *out = array.Data();
  return true;
}

bool Arguments::View(size_t index, const char* name, Napi::Object* object, void** data, size_t* length) {
  Napi::Value value = info_[index];
  napi_env env = info_.Env();
  if (!value.IsTypedArray() && !value.IsDataView()) return Fail(name, "a Buffer, TypedArray or DataView");
  napi_status status;
  if (value.IsDataView()) {
    status = napi_get_dataview_info(env, value, length, data, nullptr, nullptr);
  } else {
    napi_typedarray_type type;
    size_t elements;
    status = napi_get_typedarray_info(env, value, &type, &elements, data, nullptr, nullptr);
    *length = value.As<Napi::TypedArray>().ByteLength();
  }
  if (status != napi_ok) return Fail(name, "a readable view of memory");
  if (*length == 0 || *data == nullptr)
    return Fail(name, "a view of at least one byte (is its buffer detached?)", true);
  *object = value.As<Napi::Object>();
  return true;
}

}  // namespace node_rdma
