#include "util/descriptor_watcher.h"

#include <uv.h>

#include "addon_data.h"

namespace node_rdma {

struct DescriptorWatcher::Handle {
  uv_poll_t poll;
  AddonData* addon;
  Reader* reader;  // null once the watcher is gone

  static void OnPoll(uv_poll_t* poll, int status, int) {
    auto* handle = static_cast<Handle*>(poll->data);
    if (handle->reader) handle->reader->OnReadable(status < 0 ? -status : 0);
  }

  static void OnClose(uv_handle_t* closed) {
    auto* handle = static_cast<Handle*>(closed->data);
    handle->addon->LoopHandleClosed();
    delete handle;
  }
};

std::unique_ptr<DescriptorWatcher> DescriptorWatcher::Start(AddonData& addon, int descriptor, Reader& reader,
                                                            int* error) {
  auto* handle = new Handle{{}, &addon, &reader};
  handle->poll.data = handle;
  if ((*error = -uv_poll_init(addon.loop(), &handle->poll, descriptor))) {
    delete handle;
    return nullptr;
  }
  addon.LoopHandleOpened();
  std::unique_ptr<DescriptorWatcher> watcher(new DescriptorWatcher(handle));
  watcher->Unref();
  // Once, and for good: it is level-triggered, and starting it anew each time would cost a system call.
  if ((*error = -uv_poll_start(&handle->poll, UV_READABLE, &Handle::OnPoll))) return nullptr;
  return watcher;
}

DescriptorWatcher::~DescriptorWatcher() {
  handle_->reader = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->poll), &Handle::OnClose);
}

void DescriptorWatcher::Ref() { uv_ref(reinterpret_cast<uv_handle_t*>(&handle_->poll)); }

void DescriptorWatcher::Unref() { uv_unref(reinterpret_cast<uv_handle_t*>(&handle_->poll)); }

}  // namespace node_rdma
