#include "socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>

namespace node_rdma {

bool SocketAddress::Parse(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  storage = {};
  std::memcpy(&storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  if (storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  }
  return true;
}

bool SocketAddress::Read(const Napi::CallbackInfo& info, Arguments& arguments, size_t index,
                         const char* name) {
  std::string host;
  uint32_t port;
  if (!arguments.String(index, name, &host) || !arguments.Uint32(index + 1, "port", &port)) return false;
  if (port <= UINT16_MAX && Parse(host, static_cast<uint16_t>(port))) return true;
  Napi::Error error = Napi::RangeError::New(
      info.Env(), std::string("\"") + name + "\" must be an IPv4 or IPv6 address with a port of 16 bits");
  error.Set("code", Napi::String::New(info.Env(), "ERR_OUT_OF_RANGE"));
  error.ThrowAsJavaScriptException();
  return false;
}

Napi::Value SocketAddressToJs(Napi::Env env, const sockaddr* address) {
  const bool ipv4 = address && address->sa_family == AF_INET;
  if (!ipv4 && !(address && address->sa_family == AF_INET6)) return env.Undefined();
  char host[NI_MAXHOST] = "";
  const socklen_t length = ipv4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return env.Undefined();
  const in_port_t port = ipv4 ? reinterpret_cast<const sockaddr_in*>(address)->sin_port
                              : reinterpret_cast<const sockaddr_in6*>(address)->sin6_port;
  Napi::Object object = Napi::Object::New(env);
  object.Set("family", ipv4 ? "IPv4" : "IPv6");
  object.Set("address", host);
  object.Set("port", ntohs(port));
  return object;
}

}  // namespace node_rdma
