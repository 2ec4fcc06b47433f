#pragma once

#include <infiniband/verbs.h>
#include <napi.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "util/resource.h"
#include "util/slot_table.h"

namespace node_rdma {

class AddressHandle;
class MemoryRegion;
class WorkQueue;

// The classes that JavaScript sees, by their place in AddonData::constructors.
enum class Kind : size_t {
  kContext,
  kProtectionDomain,
  kMemoryRegion,
  kCompletionQueue,
  kQueuePair,
  kSharedReceiveQueue,
  kAddressHandle,
  kCount
};

// What belongs to one environment (the main thread, or a worker). No JavaScript state lives anywhere else.
class AddonData {
 public:
  explicit AddonData(Napi::Env env);

  static AddonData& Of(napi_env env);

  // Makes the one error class that users see; `lib/verbs/errors.ts` has the constructors.
  Napi::Value ErrorFromErrno(Napi::Env env, const char* syscall, int error);
  void ThrowErrno(Napi::Env env, const char* syscall, int error);
  void ThrowCode(Napi::Env env, const char* code, const std::string& message);

  // Takes what was collected without close(): warns, and destroys it on another thread, since that may block.
  void Reap(Napi::Env env, std::shared_ptr<Resource> resource, const char* kind);

  // Reaps what was collected while work requests named it, now that none does.
  void ReapAbandoned() {
    if (!abandoned_.empty()) ReapUnused();
  }

  // The end of the environment: closes everything that it made, children first.
  void CloseAll();
  bool ended() const { return ended_; }

  const std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  std::array<Napi::FunctionReference, static_cast<size_t>(Kind::kCount)> constructors;
  Napi::FunctionReference error_from_errno;  // (syscall, errno) => Error
  Napi::FunctionReference error_from_code;   // (code, message) => Error
  Napi::FunctionReference on_leak;           // (kind) => void

  SlotTable<MemoryRegion, 24> regions;
  SlotTable<AddressHandle, 24> address_handles;
  SlotTable<WorkQueue, 20> queues;

  // Room for one chain of work requests, shared by all queues of the environment.
  std::vector<ibv_send_wr> send_requests;
  std::vector<ibv_recv_wr> receive_requests;
  std::vector<ibv_sge> elements;

 private:
  void ReapUnused();

  Napi::Env env_;
  std::vector<std::shared_ptr<Resource>> abandoned_;
  bool ended_ = false;
};

}  // namespace node_rdma
