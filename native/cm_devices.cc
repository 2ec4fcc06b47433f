#include "cm_devices.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "util/verbs_error.h"

namespace node_rdma {

namespace {

struct LatestCmDevices {
  std::mutex mutex;
  std::shared_ptr<CmDevices> list;

  // Never destroyed: at the end of the process librdmacm may have gone before.
  static LatestCmDevices& Of() {
    static auto* latest = new LatestCmDevices;
    return *latest;
  }

  // Returns the list before.
  std::shared_ptr<CmDevices> Renew(int* error) {
    errno = 0;
    int count = 0;
    ibv_context** devices = rdma_get_devices(&count);
    if ((*error = ErrorOfPointer(devices))) return list;
    return std::exchange(list, std::make_shared<CmDevices>(devices));
  }
};

}  // namespace

std::shared_ptr<CmDevices> CmDevices::Take(int* error) {
  auto& latest = LatestCmDevices::Of();
  std::lock_guard lock(latest.mutex);
  latest.Renew(error);
  return *error == 0 ? latest.list : nullptr;
}

void CmDevices::Prepare() {
  auto& latest = LatestCmDevices::Of();
  std::lock_guard lock(latest.mutex);
  int error = 0;
  if (!latest.list) latest.Renew(&error);
}

std::shared_ptr<CmDevices> CmDevices::With(ibv_context* verbs, int* error) {
  auto& latest = LatestCmDevices::Of();
  std::lock_guard lock(latest.mutex);
  if (latest.list && latest.list->Has(verbs)) return latest.list;
  auto before = latest.Renew(error);
  if (*error != 0) return nullptr;
  if (latest.list->Has(verbs)) return latest.list;
  if (before && before->Has(verbs)) return before;
  *error = ENODEV;
  return nullptr;
}

bool CmDevices::Has(const ibv_context* verbs) const { return std::find(begin(), end(), verbs) != end(); }

ibv_context* const* CmDevices::end() const {
  ibv_context* const* last = list_;
  while (*last) ++last;
  return last;
}

}  // namespace node_rdma
