#pragma once

#include <napi.h>

#include <cstddef>
#include <memory>

namespace node_rdma {

// Page-aligned, zero-filled memory outside the JavaScript heap. It is counted by everything that uses it (the
// memory region, the ArrayBuffer), so neither detaching nor collecting the ArrayBuffer takes it away from the
// device.
class Memory {
 public:
  // `page_size` 0 is the system's own page; 2 MiB and 1 GiB take huge pages. Returns null and sets `error`.
  static std::shared_ptr<Memory> Allocate(size_t length, size_t page_size, int* error);

  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // Gives the pages back at once, when nothing can reach them any more although objects still count them.
  void Unmap();

  std::byte* data() const { return data_; }
  size_t length() const { return length_; }

  // An ArrayBuffer over the memory, which it keeps until it is detached or collected. Empty, with a
  // JavaScript exception pending, where the runtime allows no external memory (Electron).
  static Napi::ArrayBuffer ToArrayBuffer(Napi::Env env, const std::shared_ptr<Memory>& memory);

 private:
  Memory(std::byte* data, size_t length, size_t mapped) : data_(data), length_(length), mapped_(mapped) {}

  std::byte* data_;
  size_t length_;
  size_t mapped_;
};

}  // namespace node_rdma
