#pragma once

#include <napi.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "util/arguments.h"

namespace node_rdma {

// An IPv4 or IPv6 address with a port, as the connection manager takes it.
struct SocketAddress {
  sockaddr_storage storage = {};

  // Numbers only, so that nothing is looked up; an IPv6 address may name its interface (fe80::1%eth0).
  bool Parse(const std::string& host, uint16_t port);
  // A host and a port of a call. False with an exception pending.
  bool Read(const Napi::CallbackInfo& info, Arguments& arguments, size_t index, const char* name);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// {family, address, port}; undefined where it is no address of IP, or none yet.
Napi::Value SocketAddressToJs(Napi::Env env, const sockaddr* address);

}  // namespace node_rdma
