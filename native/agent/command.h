// One command that runs in the machine: its process, and its three streams with their credits.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "channel.h"

class Command {
 public:
  Command(uint32_t id, Channel* channel) : id_(id), channel_(channel) {}
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Starts the process that a SPAWN payload asks for; what goes wrong is sent as NOT_STARTED.
  void Spawn(const char* payload, uint32_t length);

  void Write(const char* bytes, uint32_t length);
  void AddCredit(uint8_t stream, uint32_t bytes);
  void CloseStream(uint8_t stream);
  void Signal(int signal) const;
  // The process has ended with this status of waitpid().
  void Exited(int status);

  // Adds the descriptors to wait for; with `hold_output` none of those that would lead to more output.
  void Watch(std::vector<pollfd>* fds, bool hold_output) const;
  // Moves what can be moved. Call it for every command after each wait.
  void Pump(bool hold_output);

  uint32_t id() const { return id_; }
  pid_t pid() const { return pid_; }
  // Everything was sent: the command can be forgotten.
  bool done() const { return done_; }

 private:
  struct Output {
    int fd = -1;
    uint32_t credit = protocol::kInitialCredit;
    // After the process has ended: what it left in the pipe. Others may hold the pipe open and write on.
    int left = -1;
  };

  void PumpInput();
  void PumpOutput(uint8_t stream, bool hold_output);
  void PumpStart();
  void EndOutput(uint8_t stream);
  void NotStarted(int error, protocol::NotStarted what);

  uint32_t id_;
  Channel* channel_;
  pid_t pid_ = -1;
  // Closes when the program is executed; tells the error when it is not.
  int start_fd_ = -1;
  int input_fd_ = -1;
  std::string input_;
  bool input_ended_ = false;
  Output outputs_[3];
  bool exited_ = false;
  int status_ = 0;
  bool done_ = false;
};
