#pragma once

#include <concepts>
#include <string>

namespace node_rdma {

inline void Append(std::string* text, const char* part) { *text += part; }
inline void Append(std::string* text, std::unsigned_integral auto part) { *text += std::to_string(part); }

// Says why something is refused, and returns false. Never inlined: what passes shall not pay for the texts.
template <class... Parts>
[[gnu::cold, gnu::noinline]] bool Deny(std::string* problem, Parts... parts) {
  (Append(problem, parts), ...);
  return false;
}

}  // namespace node_rdma
