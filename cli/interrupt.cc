#include "cli/interrupt.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <sys/eventfd.h>

namespace delayd::cli {
namespace {

// An eventfd, because the signal may arrive in a sending thread while another one waits. Only
// atomics without a lock may be used in a signal handler.
std::atomic<int> event_fd = -1;
std::atomic<bool> was_raised = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void Note(int /*signal*/) {
  const int error = errno;
  was_raised = true;
  const uint64_t one = 1;
  const ssize_t written = write(event_fd, &one, sizeof one);
  static_cast<void>(written);
  errno = error;
}

}  // namespace

bool IsIgnored(int signal) {
  struct sigaction action {};

  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

InterruptGuard::InterruptGuard() {
  // It may fail where no file descriptor is free. poll leaves out -1, and a signal ends it all the
  // same; only one that comes just before it is noticed late.
  event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  was_raised = false;

  struct sigaction action {};

  action.sa_handler = Note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, IsIgnored(SIGINT) ? nullptr : &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  close(event_fd);
  was_raised = false;  // the next guard must not see this one's signal
}

bool InterruptGuard::interrupted() {
  return was_raised;
}

Status InterruptGuard::Check() {
  return interrupted() ? Unavailable("interrupted", "interrupted") : OkStatus();
}

int InterruptGuard::fd() {
  return event_fd;
}

Status InterruptGuard::Nap(Millis time) {
  pollfd entry{.fd = event_fd, .events = POLLIN, .revents = 0};
  poll(&entry, 1, static_cast<int>(time.count()));
  return Check();
}

bool InterruptGuard::IsSilent(int fd, Millis time) {
  pollfd entries[] = {{.fd = fd, .events = POLLIN, .revents = 0},
                      {.fd = event_fd, .events = POLLIN, .revents = 0}};
  return poll(entries, 2, static_cast<int>(time.count())) == 0;
}

StatusOr<size_t> InterruptGuard::Read(int fd, char* to, size_t bytes_max) {
  for (;;) {
    pollfd entries[] = {{.fd = fd, .events = POLLIN, .revents = 0},
                        {.fd = event_fd, .events = POLLIN, .revents = 0}};
    poll(entries, 2, -1);
    DELAYD_RETURN_IF_ERROR(Check());
    const ssize_t got = entries[0].revents != 0 ? read(fd, to, bytes_max) : 0;
    if (got >= 0 && entries[0].revents != 0) {
      return static_cast<size_t>(got);
    }
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
      return InvalidArgument("the input cannot be read; check the file or pipe");
    }
  }
}

}  // namespace delayd::cli
