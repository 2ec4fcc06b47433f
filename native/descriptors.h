#pragma once

#include <cstddef>
#include <cstdint>

// The records that JavaScript and C++ share: work requests going down, completions coming up. All fields are
// in host order. lib/verbs/layout.ts has the same offsets; test/unit/layout.test.ts holds the two against
// each other.
namespace node_rdma {

// Identifies a memory region in a descriptor: low 24 bits are the index in the table, high 8 bits the
// generation, so that a descriptor that outlives its region names no other one. 0 names nothing.
using MrSlot = uint32_t;

// In `SendDescriptor::mr`: the bytes are in the queue's inline area, at this descriptor's place.
inline constexpr MrSlot kInlineArea = 0xffffffff;

struct ScatterGatherElement {
  MrSlot mr;
  uint32_t length;
  uint64_t offset;  // from the start of the region
};
static_assert(sizeof(ScatterGatherElement) == 16);

// With one element it lies here; with more they lie in the queue's element area, at this descriptor's place.
struct SendDescriptor {
  uint8_t opcode;  // IBV_WR_*
  uint8_t flags;   // IBV_SEND_*
  uint8_t sge_count;
  uint8_t reserved0;
  uint32_t id;  // with id_high, comes back in the completion
  ScatterGatherElement sge;
  uint32_t imm_data;        // or the rkey to invalidate
  uint32_t rkey;            // in a datagram, the address handle
  uint64_t remote_address;  // in a datagram, the queue pair in the low half and its Q_Key in the high half
  uint64_t compare_add;
  uint64_t swap;
  uint32_t id_high;
  uint32_t remote_srqn;  // of XRC
};
static_assert(sizeof(SendDescriptor) == 64);

struct ReceiveDescriptor {
  uint8_t reserved0[2];
  uint8_t sge_count;
  uint8_t reserved1;
  uint32_t id;
  ScatterGatherElement sge;
  uint32_t id_high;
  uint32_t reserved2;
};
static_assert(sizeof(ReceiveDescriptor) == 32);

struct CompletionRecord {
  uint64_t id;
  uint8_t status;  // IBV_WC_*; unless it is 0 only id, status, qp_num and vendor_error are valid
  uint8_t opcode;  // IBV_WC_*, receive opcodes have the high bit set
  uint8_t flags;   // IBV_WC_GRH, IBV_WC_WITH_IMM, IBV_WC_WITH_INV; in a failed completion of a send 1 where
                   // nothing was ever sent before it
  uint8_t dlid_path_bits;
  uint32_t byte_length;  // vendor_error in a failed completion
  uint32_t imm_data;     // or the rkey that was invalidated
  uint32_t qp_num;
  uint32_t source_qp : 24;
  uint32_t service_level : 8;
  uint16_t pkey_index;
  uint16_t source_lid;
};
static_assert(sizeof(CompletionRecord) == 32);

// In front of each queue's descriptors: how many requests were posted and how many of these have ended, both
// modulo 2^32, and how many may be under way at a time. JavaScript reads them to know how much room there is,
// without a call; the next descriptor to be posted is the one at the place `posted`. `wanted` it writes: how
// many the next call is to post. Passing numbers to and fro in the call would cost more than the rest of it.
struct QueueCounters {
  uint32_t posted;
  uint32_t ended;
  uint32_t capacity;
  uint32_t wanted;
  uint32_t reserved[12];
};
static_assert(sizeof(QueueCounters) == 64);

// In front of a completion queue's records: how many requests of its queues have been posted and have not
// ended, each of which may yet take an entry, and how many entries there are. `limit` JavaScript writes: how
// many records the next poll may fill; `filled` is how many it has.
struct CompletionCounters {
  uint32_t outstanding;
  uint32_t entries;
  uint32_t limit;
  uint32_t filled;
  uint32_t reserved[12];
};
static_assert(sizeof(CompletionCounters) == 64);

}  // namespace node_rdma
