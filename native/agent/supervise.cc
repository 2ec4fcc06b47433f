#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

namespace {

constexpr int kLifeline = 0;

[[noreturn]] void Execute(char** argv) {
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, kLifeline);
  if (null != kLifeline) close(null);
  execvp(argv[0], argv);
  fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

// Waits for the end of the process. False when the time is over before.
bool AwaitEnd(int pidfd, int milliseconds) {
  pollfd fd = {pidfd, POLLIN, 0};
  return poll(&fd, 1, milliseconds) == 1;
}

}  // namespace

int Supervise(int argc, char** argv) {
  if (argc < 2) {
    fputs("usage: supervise GRACE-MS PROGRAM [ARGUMENT...]\n", stderr);
    return 125;
  }
  const int grace = static_cast<int>(strtol(argv[0], nullptr, 10));
  // A terminal's Ctrl-C, or its end, is for the owner to act on.
  setsid();
  for (int ignored : {SIGINT, SIGHUP, SIGQUIT, SIGTERM, SIGPIPE}) signal(ignored, SIG_IGN);

  const pid_t child = fork();
  if (child == 0) {
    for (int restored : {SIGINT, SIGHUP, SIGQUIT, SIGTERM, SIGPIPE}) signal(restored, SIG_DFL);
    Execute(argv + 1);
  }
  if (child < 0) {
    perror("fork");
    return 125;
  }
  setpgid(child, child);
  // The channel belongs to the machine alone: it must close when the machine ends.
  for (int fd = 3; fd < 16; ++fd) close(fd);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));

  pollfd fds[2] = {{kLifeline, POLLIN, 0}, {pidfd, POLLIN, 0}};
  while (poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
  if (fds[1].revents == 0) {
    char order;
    const bool owner_is_gone = read(kLifeline, &order, 1) <= 0;
    if (owner_is_gone) AwaitEnd(pidfd, grace);
  }
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
