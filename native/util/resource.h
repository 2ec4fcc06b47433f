#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace node_rdma {

class Resource;

// What an environment has open, in order of creation, so that its end can close all of it, children first.
class Registry {
 public:
  uint64_t Add(Resource* resource);
  void Remove(uint64_t id);
  std::vector<std::shared_ptr<Resource>> NewestFirst();

 private:
  std::mutex mutex_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Resource*> resources_;
};

// One verbs object. It holds its parents (a memory region its protection domain, that its context), so no
// order of garbage collection can free a parent first, and it knows how many children it has, so that it is
// never destroyed under them.
//
// Close() may run on any thread. What belongs to JavaScript (references, slots in tables) is let go in
// OnClosed(), on the JavaScript thread, after the verbs object is gone.
class Resource : public std::enable_shared_from_this<Resource> {
 public:
  Resource(std::shared_ptr<Registry> registry, std::vector<std::shared_ptr<Resource>> parents);
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  virtual ~Resource();

  bool closed() const { return closed_.load(std::memory_order_acquire); }

  // Destroys the verbs object. Returns 0 (also when it is closed already), EBUSY while there are children or
  // operations under way, or the errno of the verbs function, which leaves the object open.
  int Close();

  virtual void OnClosed() {}

  // Before Close(), on the JavaScript thread: what reads the object's descriptor stops, for that will be
  // closed. OnCloseFailed() goes on with it, where the object could not be destroyed.
  virtual void OnClosing() {}
  virtual void OnCloseFailed() {}

  // True while outstanding work requests name it; it must not be closed then. On the JavaScript thread.
  virtual bool in_use() const { return false; }

  // How many calls on other threads are destroying it: meanwhile it takes no new work. On the JavaScript
  // thread.
  int closing = 0;
  bool usable() const { return closing == 0 && !closed(); }

  // True for what the library keeps anyway, so that forgetting to close it leaks nothing.
  virtual bool borrowed() const { return false; }

  // True for what makes the device touch memory: at the end of an environment these go first.
  virtual bool drives_dma() const { return false; }

  // Counts an operation on another thread as a child, for as long as it lives.
  class Hold {
   public:
    explicit Hold(std::shared_ptr<Resource> resource) : resource_(std::move(resource)) {
      ++resource_->children_;
    }
    Hold(Hold&&) = default;
    Hold(const Hold&) = delete;
    ~Hold() {
      if (resource_) --resource_->children_;
    }

   private:
    std::shared_ptr<Resource> resource_;
  };

 protected:
  // Calls the verbs function that destroys the object; returns 0 or a positive errno.
  virtual int Destroy() = 0;

  // The object hangs on `to` from now on, where it hung on `from`. On the JavaScript thread.
  void ReplaceParent(const std::shared_ptr<Resource>& from, std::shared_ptr<Resource> to);

 private:
  std::shared_ptr<Registry> registry_;
  std::vector<std::shared_ptr<Resource>> parents_;
  std::mutex close_mutex_;
  std::atomic<int> children_{0};
  std::atomic<bool> closed_{false};
  uint64_t id_;
};

}  // namespace node_rdma
