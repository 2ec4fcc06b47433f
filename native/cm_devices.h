#pragma once

#include <rdma/rdma_cma.h>

#include <memory>

namespace node_rdma {

// The devices as the connection manager has opened them (rdma_get_devices). While a list lives, none of its
// devices is closed.
//
// librdmacm looks for devices anew each time it is asked for the list. One that seems to be another than
// before (libibverbs goes by times of the kernel's files, which change when the kernel drops them from its
// caches) it opens again, and closes the old one with the last identifier on it, whoever else uses it. So
// the latest list is kept, and an identifier's device is looked for there as well.
class CmDevices {
 public:
  // The devices as they are now; null with `error`, a positive errno, set. Any thread.
  static std::shared_ptr<CmDevices> Take(int* error);
  // Makes sure that there is a list, if one can be had, before an identifier is bound to a device.
  static void Prepare();
  // A list that holds a device of an identifier that lives.
  static std::shared_ptr<CmDevices> With(ibv_context* verbs, int* error);

  explicit CmDevices(ibv_context** list) : list_(list) {}
  CmDevices(const CmDevices&) = delete;
  CmDevices& operator=(const CmDevices&) = delete;
  ~CmDevices() { rdma_free_devices(list_); }

  bool Has(const ibv_context* verbs) const;
  ibv_context* const* begin() const { return list_; }
  ibv_context* const* end() const;

 private:
  ibv_context** list_;  // ends with null
};

}  // namespace node_rdma
