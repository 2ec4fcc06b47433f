#include "util/descriptor_watcher.h"

#include <uv.h>

#include "addon_data.h"

namespace node_rdma {

struct DescriptorWatcher::Handle {
  uv_poll_t poll;
  AddonData* addon;
  Reader* reader;  // null once the watcher is stopped

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

int DescriptorWatcher::Start(int descriptor) {
  auto* handle = new Handle{{}, &addon_, &reader_};
  handle->poll.data = handle;
  if (int error = -uv_poll_init(addon_.loop(), &handle->poll, descriptor)) {
    delete handle;
    return error;
  }
  addon_.LoopHandleOpened();
  handle_ = handle;
  descriptor_ = descriptor;
  if (waiting_ == 0) uv_unref(reinterpret_cast<uv_handle_t*>(&handle->poll));
  // Once, and for good: it is level-triggered, and starting it anew each time would cost a system call.
  const int error = -uv_poll_start(&handle->poll, UV_READABLE, &Handle::OnPoll);
  if (error) Stop();
  return error;
}

void DescriptorWatcher::Stop() {
  if (!handle_) return;
  handle_->reader = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->poll), &Handle::OnClose);
  handle_ = nullptr;
}

void DescriptorWatcher::Resume() {
  if (!handle_ && descriptor_ >= 0) Start(descriptor_);
}

void DescriptorWatcher::Fail() {
  Stop();
  descriptor_ = -1;
}

void DescriptorWatcher::Ref() {
  if (waiting_++ == 0 && handle_) uv_ref(reinterpret_cast<uv_handle_t*>(&handle_->poll));
}

void DescriptorWatcher::Unref() {
  if (--waiting_ == 0 && handle_) uv_unref(reinterpret_cast<uv_handle_t*>(&handle_->poll));
}

}  // namespace node_rdma
