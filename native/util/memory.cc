#include "util/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <new>

namespace node_rdma {

std::shared_ptr<Memory> Memory::Allocate(size_t length, size_t page_size, int* error) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (page_size == 0) {
    page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  } else {
    flags |= MAP_HUGETLB | (std::countr_zero(page_size) << MAP_HUGE_SHIFT);
  }
  if (length == 0 || length > SIZE_MAX - page_size) {
    *error = EINVAL;
    return nullptr;
  }
  size_t mapped = (length + page_size - 1) / page_size * page_size;
  void* address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (address == MAP_FAILED) {
    *error = errno;
    return nullptr;
  }
  return std::shared_ptr<Memory>(new Memory(static_cast<std::byte*>(address), length, mapped));
}

Memory::~Memory() { Unmap(); }

void Memory::Unmap() {
  if (data_) munmap(data_, mapped_);
  data_ = nullptr;
  length_ = 0;
}

Napi::ArrayBuffer Memory::ToArrayBuffer(Napi::Env env, const std::shared_ptr<Memory>& memory) {
  auto* held = new std::shared_ptr<Memory>(memory);
  napi_value value;
  napi_status status = napi_create_external_arraybuffer(
      env, memory->data(), memory->length(),
      [](napi_env, void*, void* hint) { delete static_cast<std::shared_ptr<Memory>*>(hint); }, held, &value);
  if (status != napi_ok) {
    delete held;
    Napi::Error::New(
        env,
        "this JavaScript runtime allows no ArrayBuffer over native memory; register a Buffer of your own")
        .ThrowAsJavaScriptException();
    return {};
  }
  return {env, value};
}

}  // namespace node_rdma
