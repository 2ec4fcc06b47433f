// Frames over the one byte channel to the host. Nothing here blocks: what cannot be written yet is kept.
#pragma once

#include <string>

#include "protocol.h"

class Channel {
 public:
  // Opens the device (a serial line is made raw) and waits until it is there.
  static int Open(const char* device);

  explicit Channel(int fd) : fd_(fd) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const { return fd_; }
  bool closed() const { return closed_; }
  bool wants_to_write() const { return sent_ < output_.size(); }
  // True while so much waits to be written that no more output should be read from commands.
  bool congested() const { return output_.size() - sent_ >= 4 * protocol::kMaxData; }

  void Send(protocol::Type type, uint32_t command = 0, uint8_t stream = 0, const void* payload = nullptr,
            uint32_t length = 0);
  // The numbers are sent little-endian, which is this machine's order: the agent runs on x86-64 and arm64.
  void SendNumbers(protocol::Type type, uint32_t command, uint8_t stream, uint32_t first, uint32_t second);
  void SendCredit(uint32_t command, uint8_t stream, uint32_t bytes);

  void Flush();
  // Reads what has arrived. Next() then gives frame after frame until it returns false.
  void Fill();
  bool Next(protocol::Frame* frame);

 private:
  int fd_;
  bool closed_ = false;
  bool heard_ = false;
  std::string input_;
  size_t consumed_ = 0;
  std::string output_;
  size_t sent_ = 0;
};
