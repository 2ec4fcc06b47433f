#pragma once

#include <infiniband/verbs.h>

#include <cerrno>

namespace node_rdma {

// The list of RDMA devices as it is now; freed with the holder. It is read anew each time, so that a device
// that came or went is seen.
class DeviceListHolder {
 public:
  DeviceListHolder() {
    errno = 0;
    devices_ = ibv_get_device_list(&count_);
    // A kernel without RDMA has no list at all; for us that is an empty one.
    if (!devices_ && errno != ENOSYS) error_ = errno ? errno : EIO;
  }
  DeviceListHolder(const DeviceListHolder&) = delete;
  DeviceListHolder& operator=(const DeviceListHolder&) = delete;
  ~DeviceListHolder() {
    if (devices_) ibv_free_device_list(devices_);
  }

  int error() const { return error_; }
  ibv_device** begin() const { return devices_; }
  ibv_device** end() const { return devices_ ? devices_ + count_ : devices_; }

 private:
  ibv_device** devices_ = nullptr;
  int count_ = 0;
  int error_ = 0;
};

}  // namespace node_rdma
