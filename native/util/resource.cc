#include "util/resource.h"

#include <cerrno>
#include <utility>

namespace node_rdma {

uint64_t Registry::Add(Resource* resource) {
  std::lock_guard lock(mutex_);
  resources_.emplace(next_id_, resource);
  return next_id_++;
}

void Registry::Remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  resources_.erase(id);
}

std::vector<std::shared_ptr<Resource>> Registry::NewestFirst() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Resource>> list;
  for (auto it = resources_.rbegin(); it != resources_.rend(); ++it) {
    // An object that is being destroyed on another thread right now is no longer ours to close.
    if (auto resource = it->second->weak_from_this().lock()) list.push_back(std::move(resource));
  }
  return list;
}

Resource::Resource(std::shared_ptr<Registry> registry, std::vector<std::shared_ptr<Resource>> parents)
    : registry_(std::move(registry)), parents_(std::move(parents)) {
  for (auto& parent : parents_) ++parent->children_;
  id_ = registry_->Add(this);
}

// Every final class closes itself in its own destructor, where Destroy() can still be reached; here only what
// that failed to destroy is left, and its parents must go on believing that it lives.
Resource::~Resource() { registry_->Remove(id_); }

void Resource::ReplaceParent(const std::shared_ptr<Resource>& from, std::shared_ptr<Resource> to) {
  std::lock_guard lock(close_mutex_);
  for (auto& parent : parents_) {
    if (parent != from) continue;
    ++to->children_;
    --from->children_;
    parent = std::move(to);
    return;
  }
}

int Resource::Close() {
  std::lock_guard lock(close_mutex_);
  if (closed()) return 0;
  if (children_.load() > 0) return EBUSY;
  if (int error = Destroy()) return error;
  closed_.store(true, std::memory_order_release);
  registry_->Remove(id_);
  for (auto& parent : parents_) --parent->children_;
  parents_.clear();
  return 0;
}

}  // namespace node_rdma
