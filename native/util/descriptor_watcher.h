#pragma once

#include <cstdint>

namespace node_rdma {

class AddonData;

// Tells, on the loop of its environment, when a descriptor has something to read. Part of the object that
// owns the descriptor, and used on the JavaScript thread alone; once stopped, the descriptor may be closed.
class DescriptorWatcher {
 public:
  class Reader {
   public:
    // Reads all that there is. `error`: 0, or the errno for which the descriptor cannot be watched any more.
    // The watcher may be stopped in it.
    virtual void OnReadable(int error) = 0;

   protected:
    ~Reader() = default;
  };

  DescriptorWatcher(AddonData& addon, Reader& reader) : addon_(addon), reader_(reader) {}
  DescriptorWatcher(const DescriptorWatcher&) = delete;
  DescriptorWatcher& operator=(const DescriptorWatcher&) = delete;
  ~DescriptorWatcher() { Stop(); }

  // Makes the descriptor non-blocking. Returns 0 or a positive errno.
  int Start(int descriptor);
  void Stop();
  // Goes on after Stop() with the same descriptor, where there was one.
  void Resume();
  // Stops for good: there is no more to read.
  void Fail();

  // While somebody waits, the loop must not end. Counted, also while it is stopped.
  void Ref();
  void Unref();

 private:
  // What libuv keeps until its loop has come round once more, although the watcher is stopped.
  struct Handle;

  AddonData& addon_;
  Reader& reader_;
  Handle* handle_ = nullptr;  // null while it is stopped
  int descriptor_ = -1;       // negative where there is none to resume
  uint32_t waiting_ = 0;
};

}  // namespace node_rdma
