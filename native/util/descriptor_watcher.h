#pragma once

#include <memory>

namespace node_rdma {

class AddonData;

// Tells, on the loop of its environment, when a descriptor has something to read. Made and destroyed on the
// JavaScript thread; the descriptor may be closed as soon as the watcher is destroyed. It does not keep the
// loop running unless Ref() says so.
class DescriptorWatcher {
 public:
  class Reader {
   public:
    // Reads all that there is. `error`: 0, or the errno for which the descriptor cannot be watched any more.
    // The watcher may be destroyed in it.
    virtual void OnReadable(int error) = 0;

   protected:
    ~Reader() = default;
  };

  // Makes the descriptor non-blocking. Returns null and sets `error`, a positive errno.
  static std::unique_ptr<DescriptorWatcher> Start(AddonData& addon, int descriptor, Reader& reader,
                                                  int* error);
  DescriptorWatcher(const DescriptorWatcher&) = delete;
  DescriptorWatcher& operator=(const DescriptorWatcher&) = delete;
  ~DescriptorWatcher();

  void Ref();
  void Unref();

 private:
  // What libuv keeps until its loop has come round once more, although the watcher is gone.
  struct Handle;

  explicit DescriptorWatcher(Handle* handle) : handle_(handle) {}

  Handle* handle_;
};

}  // namespace node_rdma
