#pragma once

#include <infiniband/verbs.h>
#include <napi.h>
#include <uv.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async_events.h"
#include "util/resource.h"
#include "util/slot_table.h"

namespace node_rdma {

class AddressHandle;
class MemoryRegion;
class MemoryWindow;
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
  kCompletionChannel,
  kCmEventChannel,
  kCmId,
  kMemoryWindow,
  kDeviceMemory,
  kThreadDomain,
  kXrcDomain,
  kReceiveWorkQueue,
  kIndirectionTable,
  kRssQueuePair,
  kFlow,
  kFlowAction,
  kCounters,
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

  bool ended() const { return ended_; }

  uv_loop_t* loop() const { return loop_; }
  Napi::Env env() const { return env_; }

  // Takes the memory away from an ArrayBuffer. False where Node forbids it: it is marked as untransferable,
  // which from Node 24 on would end the process in napi_detach_arraybuffer.
  bool Detach(Napi::ArrayBuffer buffer);

  // The environment ends only after the last handle on its loop has been closed.
  void LoopHandleOpened() { ++loop_handles_; }
  void LoopHandleClosed();

  // Call JavaScript from the loop, unless the environment ends.
  void TellCompletionEvents(const std::set<uint64_t>& serials, int error);
  void TellAsyncEvents(uint64_t context, const std::vector<AsyncEvent>& events);
  void TellCmEvents(uint64_t channel, Napi::Array events, int error);

  // Never given twice, so that what is late names nothing else.
  uint64_t NextSerial() { return next_serial_++; }

  const std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  std::array<Napi::FunctionReference, static_cast<size_t>(Kind::kCount)> constructors;
  Napi::FunctionReference error_from_errno;      // (syscall, errno) => Error
  Napi::FunctionReference error_from_code;       // (code, message) => Error
  Napi::FunctionReference transfer;              // ArrayBuffer.prototype.transfer, from Node 22 on
  Napi::FunctionReference on_leak;               // (kind) => void
  Napi::FunctionReference on_completion_events;  // (serials of completion queues, errno) => void
  Napi::FunctionReference on_async_events;       // (serial of the context, [type, subject, ...]) => void
  Napi::FunctionReference on_cm_events;          // (serial of the channel, events, errno) => void

  // Contexts that the connection manager has opened, and their JavaScript sides.
  std::map<ibv_context*, Napi::ObjectReference> cm_contexts;
  // Held where an identifier of the connection manager may look at its queue pair, or loses it.
  std::mutex cm_mutex;

  SlotTable<MemoryRegion, 24> regions;
  SlotTable<AddressHandle, 24> address_handles;
  SlotTable<WorkQueue, 20> queues;

  // Windows of type 2 that are bound, by the device and their key.
  std::map<std::pair<ibv_context*, uint32_t>, std::weak_ptr<MemoryWindow>> bound_windows;

  // Room for one chain of work requests, shared by all queues of the environment.
  std::vector<ibv_send_wr> send_requests;
  std::vector<ibv_recv_wr> receive_requests;
  std::vector<ibv_sge> elements;
  // Why the last request was refused.
  std::string problem;

 private:
  void ReapUnused();

  // The end of the environment: closes everything that it made, children first.
  void CloseAll();
  void Call(const Napi::FunctionReference& function, std::initializer_list<napi_value> arguments);

  Napi::Env env_;
  uv_loop_t* loop_ = nullptr;
  int loop_handles_ = 0;
  napi_async_cleanup_hook_handle cleanup_ = nullptr;
  std::optional<Napi::AsyncContext> async_context_;
  uint64_t next_serial_ = 1;
  std::vector<std::shared_ptr<Resource>> abandoned_;
  bool ended_ = false;
};

}  // namespace node_rdma
