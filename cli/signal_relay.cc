#include "cli/signal_relay.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <system_error>

#include "base/check.h"
#include "cli/interrupt.h"
#include "cli/job_handler.h"

#include <sys/eventfd.h>
#include <sys/signalfd.h>

namespace delayd::cli {

SignalRelay::SignalRelay(Worker* worker) : done_fd_(eventfd(0, EFD_CLOEXEC)) {
  DELAYD_CHECK(done_fd_ >= 0);
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  // A terminal that closes must not leave handlers behind.
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!IsIgnored(signal)) {
      sigaddset(&wanted, signal);
    }
  }
  // Before any thread is started, so that all threads inherit the mask.
  pthread_sigmask(SIG_BLOCK, &wanted, &old_mask_);
  signal_fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  DELAYD_CHECK(signal_fd_ >= 0);
  try {
    thread_ = std::thread([this, worker] { Relay(worker); });
  } catch (const std::system_error& error) {
    started_ = ResourceExhausted("no thread can be started to wait for signals: " +
                                 error.code().message() + "; " + std::string(kCureForProcesses));
  }
}

SignalRelay::~SignalRelay() {
  const uint64_t one = 1;
  const ssize_t written = write(done_fd_, &one, sizeof one);
  static_cast<void>(written);
  if (thread_.joinable()) {
    thread_.join();
  }
  close(signal_fd_);
  close(done_fd_);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void SignalRelay::Relay(Worker* worker) const {
  std::array<pollfd, 2> entries{{{signal_fd_, POLLIN, 0}, {done_fd_, POLLIN, 0}}};
  while (entries[1].revents == 0) {
    if (poll(entries.data(), entries.size(), -1) < 0) {
      entries[1].revents = 0;
      continue;
    }
    signalfd_siginfo info{};
    if (entries[0].revents != 0 && read(signal_fd_, &info, sizeof info) == sizeof info) {
      worker->Stop();
    }
  }
}

}  // namespace delayd::cli
