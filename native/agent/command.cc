#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace protocol;

namespace {

struct StartError {
  int error;
  protocol::NotStarted what;
};

struct Request {
  bool input;
  bool refresh;
  const char* directory;
  std::vector<char*> arguments;
  std::vector<char*> environment;
};

// The strings stay where they are in the payload.
bool Parse(const char* payload, uint32_t length, Request* request) {
  if (length < 2 || payload[length - 1] != '\0') return false;
  request->input = (payload[0] & kInput) != 0;
  request->refresh = (payload[0] & kRefresh) != 0;
  std::vector<char*> strings;
  for (const char* at = payload + 1; at < payload + length; at += strlen(at) + 1) {
    strings.push_back(const_cast<char*>(at));
  }
  if (strings.size() < 3) return false;
  request->directory = strings[0];
  const size_t count = strtoul(strings[1], nullptr, 10);
  if (count == 0 || count > strings.size() - 2) return false;
  const auto arguments_end = strings.begin() + 2 + static_cast<ptrdiff_t>(count);
  request->arguments.assign(strings.begin() + 2, arguments_end);
  request->environment.assign(arguments_end, strings.end());
  request->arguments.push_back(nullptr);
  request->environment.push_back(nullptr);
  return true;
}

void ForgetCachedFiles() {
  int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, "3", 1);
  close(fd);
}

[[noreturn]] void Execute(const Request& request, const int ends[3], int start_fd) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  for (int stream = 0; stream < 3; ++stream) dup2(ends[stream], stream);
  if (request.refresh) ForgetCachedFiles();
  StartError report = {0, kDirectory};
  if (chdir(request.directory) == 0) {
    environ = const_cast<char**>(request.environment.data());
    execvp(request.arguments[0], request.arguments.data());
    report.what = kExecute;
  }
  report.error = errno;
  (void)!write(start_fd, &report, sizeof report);
  _exit(127);
}

void Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void SetNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

Command::~Command() {
  Close(&start_fd_);
  Close(&input_fd_);
  for (Output& output : outputs_) Close(&output.fd);
}

void Command::Spawn(const char* payload, uint32_t length) {
  Request request;
  if (!Parse(payload, length, &request)) return NotStarted(EINVAL, kExecute);

  int start[2] = {-1, -1}, in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  bool ready = pipe2(start, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0;
  if (request.input) {
    ready = ready && pipe2(in, O_CLOEXEC) == 0;
  } else {
    in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  if (ready) pid_ = fork();
  const int error = errno;
  if (ready && pid_ == 0) {
    const int ends[3] = {in[0], out[1], err[1]};
    Execute(request, ends, start[1]);
  }
  for (int* end : {&start[1], &in[0], &out[1], &err[1]}) Close(end);
  start_fd_ = start[0];
  input_fd_ = in[1];
  outputs_[1].fd = out[0];
  outputs_[2].fd = err[0];
  if (pid_ < 0) return NotStarted(error, kFork);
  if (input_fd_ >= 0) SetNonBlocking(input_fd_);
  for (int fd : {start_fd_, out[0], err[0]}) SetNonBlocking(fd);
}

void Command::NotStarted(int error, protocol::NotStarted what) {
  channel_->SendNumbers(kNotStarted, id_, 0, static_cast<uint32_t>(error), what);
  done_ = true;
}

void Command::Write(const char* bytes, uint32_t length) {
  if (input_fd_ < 0) return;
  if (length == 0) {
    input_ended_ = true;
  } else {
    input_.append(bytes, length);
  }
  PumpInput();
}

void Command::AddCredit(uint8_t stream, uint32_t bytes) {
  if (stream == 1 || stream == 2) outputs_[stream].credit += bytes;
}

void Command::CloseStream(uint8_t stream) {
  if (stream == 1 || stream == 2) Close(&outputs_[stream].fd);
}

void Command::Signal(int signal) const {
  if (pid_ > 0 && !exited_ && kill(-pid_, signal) != 0) kill(pid_, signal);
}

void Command::Exited(int status) {
  exited_ = true;
  status_ = status;
  Close(&input_fd_);
  for (Output& output : outputs_) {
    if (output.fd >= 0 && ioctl(output.fd, FIONREAD, &output.left) != 0) output.left = 0;
  }
}

void Command::Watch(std::vector<pollfd>* fds, bool hold_output) const {
  if (start_fd_ >= 0) fds->push_back({start_fd_, POLLIN, 0});
  if (input_fd_ >= 0 && !input_.empty()) fds->push_back({input_fd_, POLLOUT, 0});
  // With nothing to write the pipe is watched for its reader's end all the same.
  if (input_fd_ >= 0 && input_.empty()) fds->push_back({input_fd_, 0, 0});
  if (hold_output) return;
  for (const Output& output : outputs_) {
    if (output.fd >= 0 && output.credit > 0) fds->push_back({output.fd, POLLIN, 0});
  }
}

void Command::Pump(bool hold_output) {
  if (done_) return;
  PumpStart();
  if (done_) return;
  PumpInput();
  PumpOutput(1, hold_output);
  PumpOutput(2, hold_output);
  if (exited_ && start_fd_ < 0 && outputs_[1].fd < 0 && outputs_[2].fd < 0) {
    const bool signalled = WIFSIGNALED(status_);
    channel_->SendNumbers(kExited, id_, 0, signalled ? 0 : static_cast<uint32_t>(WEXITSTATUS(status_)),
                          signalled ? static_cast<uint32_t>(WTERMSIG(status_)) : 0);
    done_ = true;
  }
}

void Command::PumpStart() {
  if (start_fd_ < 0) return;
  StartError report;
  const ssize_t n = read(start_fd_, &report, sizeof report);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  Close(&start_fd_);
  if (n == sizeof report) return NotStarted(report.error, report.what);
  const uint32_t pid = static_cast<uint32_t>(pid_);
  channel_->Send(kStarted, id_, 0, &pid, sizeof pid);
}

void Command::PumpInput() {
  if (input_fd_ < 0) return;
  uint32_t written = 0;
  while (written < input_.size()) {
    const ssize_t n = write(input_fd_, input_.data() + written, input_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) {
      Close(&input_fd_);
      input_.clear();
      channel_->Send(kClose, id_, 0);
      return;
    }
    if (n <= 0) break;
    written += static_cast<uint32_t>(n);
  }
  if (written > 0) {
    input_.erase(0, written);
    channel_->SendCredit(id_, 0, written);
  }
  if (input_.empty()) {
    pollfd reader = {input_fd_, 0, 0};
    const bool reader_gone = poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
    if (reader_gone) channel_->Send(kClose, id_, 0);
    if (input_ended_ || reader_gone) Close(&input_fd_);
  }
}

void Command::PumpOutput(uint8_t stream, bool hold_output) {
  Output& output = outputs_[stream];
  if (output.fd < 0) return;
  if (output.left == 0) return EndOutput(stream);
  if (hold_output || output.credit == 0) return;
  char buffer[kMaxData];
  size_t size = sizeof buffer < output.credit ? sizeof buffer : output.credit;
  if (output.left > 0 && size > static_cast<size_t>(output.left)) size = static_cast<size_t>(output.left);
  const ssize_t n = read(output.fd, buffer, size);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return EndOutput(stream);
  output.credit -= static_cast<uint32_t>(n);
  if (output.left > 0) output.left -= static_cast<int>(n);
  channel_->Send(kData, id_, stream, buffer, static_cast<uint32_t>(n));
  if (output.left == 0) EndOutput(stream);
}

void Command::EndOutput(uint8_t stream) {
  Close(&outputs_[stream].fd);
  channel_->Send(kData, id_, stream);
}
