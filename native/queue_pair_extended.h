#pragma once

#include <napi.h>

#include <memory>
#include <optional>

#include "queue_pair.h"

namespace node_rdma {

// Reads what makes a queue pair an extended one: argument `index` is undefined or words (creation flags,
// source number, bytes of a TSO header, two halves of the send operations, whether it is to be opened, its
// number), the next undefined or an XRC domain. False with an exception pending.
bool ReadExtension(const Napi::CallbackInfo& info, size_t index,
                   std::optional<QueuePair::Extension>* extension, std::shared_ptr<XrcDomain>* xrc_domain);

// sendTso(), see there.
void DefineExtendedPosting(Napi::Env env, Napi::Object exports);

}  // namespace node_rdma
