#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

using protocol::Frame;
using protocol::kHeaderLength;
using protocol::Type;

namespace {

void SleepMilliseconds(long milliseconds) {
  timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1000000};
  nanosleep(&time, nullptr);
}

}  // namespace

int Channel::Open(const char* device) {
  int fd = -1;
  // A virtio-serial port appears a moment after its driver is loaded.
  for (int i = 0; i < 1000; ++i) {
    fd = open(device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 || (errno != ENOENT && errno != ENODEV && errno != ENXIO)) break;
    SleepMilliseconds(10);
  }
  if (fd < 0) return -1;
  termios line;
  if (tcgetattr(fd, &line) == 0) {
    cfmakeraw(&line);
    line.c_cflag |= CLOCAL | CREAD;
    line.c_cc[VMIN] = 1;
    line.c_cc[VTIME] = 0;
    tcsetattr(fd, TCSANOW, &line);
  }
  return fd;
}

void Channel::Send(Type type, uint32_t command, uint8_t stream, const void* payload, uint32_t length) {
  char header[kHeaderLength] = {};
  memcpy(header, &length, 4);
  memcpy(header + 4, &command, 4);
  header[8] = static_cast<char>(type);
  header[9] = static_cast<char>(stream);
  output_.append(header, kHeaderLength);
  if (length > 0) output_.append(static_cast<const char*>(payload), length);
}

void Channel::SendNumbers(Type type, uint32_t command, uint8_t stream, uint32_t first, uint32_t second) {
  const uint32_t numbers[] = {first, second};
  Send(type, command, stream, numbers, sizeof numbers);
}

void Channel::SendCredit(uint32_t command, uint8_t stream, uint32_t bytes) {
  Send(protocol::kCredit, command, stream, &bytes, sizeof bytes);
}

void Channel::Flush() {
  while (wants_to_write()) {
    ssize_t n = write(fd_, output_.data() + sent_, output_.size() - sent_);
    if (n > 0) {
      sent_ += static_cast<size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      if (n < 0 && errno != EAGAIN) closed_ = true;
      break;
    }
  }
  if (!wants_to_write()) {
    output_.clear();
    sent_ = 0;
  } else if (sent_ > 1024 * 1024) {
    output_.erase(0, sent_);
    sent_ = 0;
  }
}

void Channel::Fill() {
  if (consumed_ > 0) {
    input_.erase(0, consumed_);
    consumed_ = 0;
  }
  char buffer[64 * 1024];
  ssize_t n = read(fd_, buffer, sizeof buffer);
  if (n > 0) {
    heard_ = true;
    input_.append(buffer, static_cast<size_t>(n));
    const uint32_t taken = static_cast<uint32_t>(n);
    Send(protocol::kAcknowledge, 0, 0, &taken, sizeof taken);
  } else if (n == 0 && !heard_) {
    // A virtio-serial port reads as ended until the device has told the driver that the host is there.
    SleepMilliseconds(5);
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    closed_ = true;
  }
}

bool Channel::Next(Frame* frame) {
  if (input_.size() - consumed_ < kHeaderLength) return false;
  const char* at = input_.data() + consumed_;
  uint32_t length;
  memcpy(&length, at, 4);
  if (length > protocol::kMaxPayload) {
    closed_ = true;
    return false;
  }
  if (input_.size() - consumed_ < kHeaderLength + length) return false;
  memcpy(&frame->command, at + 4, 4);
  frame->type = static_cast<Type>(at[8]);
  frame->stream = static_cast<uint8_t>(at[9]);
  frame->payload = at + kHeaderLength;
  frame->length = length;
  consumed_ += kHeaderLength + length;
  return true;
}
