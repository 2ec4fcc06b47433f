#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace node_rdma {

// struct ibv_qp_attr as 32-bit words, one a field, the way JavaScript passes it; lib/verbs/layout.ts names
// the places.
inline constexpr size_t kAddressWords = 14;
inline constexpr size_t kQpAttributeWords = 28 + 2 * kAddressWords;

// The kAddressWords words of one address vector.
void UnpackAddress(const uint32_t* words, ibv_ah_attr* address);
void PackAddress(const ibv_ah_attr& address, uint32_t* words);

void UnpackQpAttributes(const uint32_t* words, ibv_qp_attr* attributes);
void PackQpAttributes(const ibv_qp_attr& attributes, uint32_t* words);

}  // namespace node_rdma
