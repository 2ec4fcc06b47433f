// The numbers of the protocol that lib/rxe/agent/protocol.ts describes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace protocol {

enum Type : uint8_t {
  kSetup = 1,
  kSpawn = 2,
  kSignal = 3,
  kSync = 4,
  kData = 16,
  kCredit = 17,
  kClose = 18,
  kHello = 32,
  kReady = 33,
  kFailed = 34,
  kStarted = 35,
  kNotStarted = 36,
  kExited = 37,
  kSynced = 38,
  kAcknowledge = 39,
};

enum SpawnFlag : uint8_t { kInput = 1, kRefresh = 2 };
enum NotStarted : uint8_t { kDirectory = 1, kExecute = 2, kFork = 3 };

constexpr size_t kHeaderLength = 12;
constexpr uint32_t kInitialCredit = 256 * 1024;
constexpr uint32_t kMaxPayload = 8 * 1024 * 1024;
constexpr uint32_t kMaxData = 32 * 1024;

struct Frame {
  Type type;
  uint32_t command;
  uint8_t stream;
  const char* payload;
  uint32_t length;
};

}  // namespace protocol
