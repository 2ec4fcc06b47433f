#include "agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "command.h"
#include "root.h"

using namespace protocol;

namespace {

using Commands = std::vector<std::unique_ptr<Command>>;

Command* Find(const Commands& commands, uint32_t id) {
  for (const auto& command : commands) {
    if (command->id() == id && !command->done()) return command.get();
  }
  return nullptr;
}

uint32_t NumberOf(const Frame& frame) {
  uint32_t number = 0;
  if (frame.length >= sizeof number) memcpy(&number, frame.payload, sizeof number);
  return number;
}

void Handle(const Frame& frame, Channel* channel, Commands* commands) {
  if (frame.type == kSpawn) {
    commands->push_back(std::make_unique<Command>(frame.command, channel));
    commands->back()->Spawn(frame.payload, frame.length);
    return;
  }
  if (frame.type == kSync) {
    SyncSharedFolders();
    channel->Send(kSynced);
    return;
  }
  // A frame for a command that has just ended is no error: the host could not know.
  Command* command = Find(*commands, frame.command);
  if (command == nullptr) return;
  if (frame.type == kData) command->Write(frame.payload, frame.length);
  if (frame.type == kCredit) command->AddCredit(frame.stream, NumberOf(frame));
  if (frame.type == kClose) command->CloseStream(frame.stream);
  if (frame.type == kSignal) command->Signal(static_cast<int>(NumberOf(frame)));
}

// Reaps every process that has ended: the commands' own, and the orphans that fall to process 1.
void Reap(const Commands& commands) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (const auto& command : commands) {
      if (command->pid() == pid) command->Exited(status);
    }
  }
}

int WatchChildren() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

}  // namespace

void ServeCommands(Channel* channel) {
  signal(SIGPIPE, SIG_IGN);
  const int children = WatchChildren();
  Commands commands;
  std::vector<pollfd> fds;
  while (!channel->closed()) {
    const bool hold_output = channel->congested();
    fds.clear();
    fds.push_back(
        {channel->fd(), static_cast<short>(channel->wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
    fds.push_back({children, POLLIN, 0});
    for (const auto& command : commands) command->Watch(&fds, hold_output);
    if (poll(fds.data(), fds.size(), -1) < 0) continue;

    if ((fds[0].revents & ~POLLOUT) != 0) channel->Fill();
    for (Frame frame; channel->Next(&frame);) Handle(frame, channel, &commands);
    if (fds[1].revents != 0) {
      signalfd_siginfo info;
      while (read(children, &info, sizeof info) > 0) {
      }
      Reap(commands);
    }
    for (const auto& command : commands) command->Pump(channel->congested());
    std::erase_if(commands, [](const auto& command) { return command->done(); });
    channel->Flush();
  }
}
