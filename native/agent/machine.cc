#include "machine.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "agent.h"
#include "root.h"

using namespace protocol;

namespace {

[[noreturn]] void PowerOff() {
  kill(-1, SIGKILL);
  SyncSharedFolders();
  for (;;) {
    reboot(RB_POWER_OFF);
    pause();
  }
}

// Before the channel is there, the console is the only way to say what is wrong.
[[noreturn]] void GiveUp(const std::string& why) {
  if (FILE* console = fopen("/dev/console", "w")) {
    fprintf(console, "node-rdma rxe: %s\n", why.c_str());
    fclose(console);
  }
  PowerOff();
}

Settings ParseSettings(const Frame& frame) {
  Settings settings;
  const char* end = frame.payload + frame.length;
  for (const char* at = frame.payload; at < end; at += strlen(at) + 1) {
    if (const char* equals = strchr(at, '=')) settings[std::string(at, equals)] = equals + 1;
  }
  return settings;
}

Settings AwaitSettings(Channel* channel) {
  channel->Send(kHello);
  while (!channel->closed()) {
    channel->Flush();
    pollfd fd = {channel->fd(), static_cast<short>(channel->wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
    if (poll(&fd, 1, -1) < 0) continue;
    if ((fd.revents & ~POLLOUT) != 0) channel->Fill();
    Frame frame;
    if (channel->Next(&frame) && frame.type == kSetup) return ParseSettings(frame);
  }
  PowerOff();
}

}  // namespace

void RunMachine() {
  MountEarly();
  std::string error;
  if (!LoadModules(&error)) GiveUp(error);
  const char* device = getenv("NODE_RDMA_RXE_CHANNEL");
  const int fd = Channel::Open(device != nullptr ? device : "");
  if (fd < 0) GiveUp(std::string("no channel to the host: ") + strerror(errno));
  Channel channel(fd);
  const Settings settings = AwaitSettings(&channel);
  if (EnterRoot(settings, &error)) {
    channel.Send(kReady);
  } else {
    channel.Send(kFailed, 0, 0, error.data(), static_cast<uint32_t>(error.size()));
  }
  ServeCommands(&channel);
  PowerOff();
}
