#include "device_memory.h"

#include <utility>

#include "util/arguments.h"
#include "util/newer_function.h"
#include "util/plain_resource.h"
#include "util/verbs_error.h"

namespace node_rdma {

int DeviceMemory::Destroy() {
  if (!imported_) return ErrorOfResult(ibv_free_dm(verbs_));
  ibv_unimport_dm(verbs_);
  return 0;
}

namespace {

Napi::Value PresentDeviceMemory(Napi::Env env, const char* syscall, std::shared_ptr<Context> context,
                                ibv_dm* verbs, uint64_t length, bool imported) {
  AddonData& addon = AddonData::Of(env);
  if (int error = ErrorOfPointer(verbs)) {
    addon.ThrowErrno(env, syscall, error);
    return {};
  }
  Napi::Object object = DeviceMemoryWrap::New(
      env, std::make_shared<DeviceMemory>(addon.registry, std::move(context), verbs, length, imported));
  if (env.IsExceptionPending()) return {};
  object.Set("handle", verbs->handle);
  return object;
}

Napi::Value AllocDm(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  ibv_alloc_dm_attr attributes = {};
  uint64_t length;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint64(1, "length", &length) ||
      !arguments.Uint32(2, "logAlignment", &attributes.log_align_req)) {
    return {};
  }
  attributes.length = length;
  errno = 0;
  ibv_dm* verbs = ibv_alloc_dm(context->verbs(), &attributes);
  return PresentDeviceMemory(info.Env(), "ibv_alloc_dm", context, verbs, length, /*imported=*/false);
}

Napi::Value ImportDm(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  uint32_t handle;
  uint64_t length;
  auto context = ContextWrap::From(info, 0, "context");
  if (!context || !arguments.Uint32(1, "handle", &handle) || !arguments.Uint64(2, "length", &length)) {
    return {};
  }
  errno = 0;
  ibv_dm* verbs = ibv_import_dm(context->verbs(), handle);
  return PresentDeviceMemory(info.Env(), "ibv_import_dm", context, verbs, length, /*imported=*/true);
}

}  // namespace

void DeviceMemoryWrap::Define(Napi::Env env, Napi::Object exports) {
  Wrap::Define(env, {InstanceMethod("copy", &DeviceMemoryWrap::Copy),
                     InstanceMethod("exportDmabufFd", &DeviceMemoryWrap::ExportDmabufFd)});
  exports.Set("allocDm", Napi::Function::New<AllocDm>(env, "allocDm"));
  exports.Set("importDm", Napi::Function::New<ImportDm>(env, "importDm"));
}

// Since rdma-core 60.
Napi::Value DeviceMemoryWrap::ExportDmabufFd(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto memory = Open(env);
  if (!memory) return {};
  static const auto export_fd = NewerFunction<int(ibv_dm*)>("ibv_dm_export_dmabuf_fd");
  errno = 0;
  const int fd = export_fd ? export_fd(memory->verbs()) : -1;
  if (fd >= 0) return Napi::Number::New(env, fd);
  return Undefined(env, "ibv_dm_export_dmabuf_fd", export_fd ? (errno ? errno : EIO) : ENOSYS);
}

Napi::Value DeviceMemoryWrap::Copy(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  bool to_device;
  uint64_t offset;
  Napi::Object view;
  void* data;
  size_t length;
  if (!arguments.Boolean(0, "toDevice", &to_device) || !arguments.Uint64(1, "offset", &offset) ||
      !arguments.View(2, "bytes", &view, &data, &length)) {
    return {};
  }
  auto memory = Open(env);
  if (!memory) return {};
  const char* syscall = to_device ? "ibv_memcpy_to_dm" : "ibv_memcpy_from_dm";
  if (offset > memory->length() || length > memory->length() - offset) {
    return Undefined(env, syscall, EINVAL);
  }
  const int result = to_device ? ibv_memcpy_to_dm(memory->verbs(), offset, data, length)
                               : ibv_memcpy_from_dm(data, memory->verbs(), offset, length);
  return Undefined(env, syscall, ErrorOfResult(result));
}

}  // namespace node_rdma
