// Signals from a service manager or an operator: stop, drain, reload.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

#include <sys/eventfd.h>

namespace delayd {
namespace {

// One request to stop may come as several signals, from a terminal and from a wrapper such as
// timeout(1): within this time they count as one.
constexpr std::chrono::nanoseconds kSameRequest{std::chrono::seconds(1)};
constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
constexpr int64_t kLongAgo = kNone / 2;

// The moment of the first signal to stop since the loop was made, and what it makes readable. That
// is never closed: a handler may run on any thread at any time.
std::atomic<int64_t> first_stop_signal{kNone};
std::atomic<int> stop_event{-1};

// A second request does not need the core thread: that may be waiting for a disk, or have finished
// its turns while other threads are still at work or the store is being closed. This loses nothing
// that was acknowledged: the next start reads what is durable.
void OnStopSignal(int /*signal*/) {
  const int error = errno;
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  int64_t first = kNone;
  if (!first_stop_signal.compare_exchange_strong(first, now)) {
    if (now - first >= kSameRequest.count()) {
      ::_exit(EXIT_FAILURE);
    }
    errno = error;
    return;
  }
  const uint64_t one = 1;
  const ssize_t written = ::write(stop_event, &one, sizeof one);
  static_cast<void>(written);
  errno = error;
}

}  // namespace

void Server::Loop::Stop() {
  stop_wanted_ = true;
}

// Handles both signals to stop, in place of Asio's signal_set: that one would have to be replaced
// after the first signal, and meanwhile the second would kill the process by its default action.
void Server::Loop::WaitForSignal() {
  if (stop_event < 0) {
    stop_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  }
  uint64_t earlier = 0;  // those of an earlier loop of this process
  const ssize_t bytes = ::read(stop_event, &earlier, sizeof earlier);
  static_cast<void>(bytes);
  first_stop_signal = kNone;
  const int copy = ::fcntl(stop_event, F_DUPFD_CLOEXEC, 0);
  DELAYD_CHECK(copy >= 0);
  stop_event_.assign(copy);

  struct sigaction action {};

  action.sa_handler = OnStopSignal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT}) {
    DELAYD_CHECK(::sigaction(signal, &action, nullptr) == 0);
  }
  stop_event_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& cancelled) {
                           if (!cancelled) {
                             Stop();
                           }
                         });
}

void Server::Loop::EndAtNextSignal() {
  int64_t first = kNone;
  first_stop_signal.compare_exchange_strong(first, kLongAgo);
}

void Server::Loop::WaitForDrainSignal() {
  boost::system::error_code error;
  drain_signal_.add(SIGUSR1, error);  // NOLINT(bugprone-unused-return-value)
  DELAYD_CHECK(!error);
  drain_signal_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled) {
      return;
    }
    engine_->Execute(next_request_++, engine::Drain{.on = true}, clock_->Sample());
    WaitForDrainSignal();
  });
}

// Logs the beginning and end of a drain, whether it was requested by signal or over the API.
void Server::Loop::LogDrain() {
  if (engine_->draining() == drain_logged_) {
    return;
  }
  drain_logged_ = engine_->draining();
  log::Info(drain_logged_ ? "draining: no new jobs are taken; what is there is worked off"
                          : "the drain has ended; new jobs are taken again");
  if (options_.drain_changed) {
    options_.drain_changed();
  }
}

void Server::Loop::WaitForHangup() {
  hangups_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled) {
      return;
    }
    reload_wanted_ = options_.reload != nullptr;
    WaitForHangup();
  });
}

void Server::Loop::BeginStop(const Now& now) {
  stopping_ = true;
  stop_deadline_ = now.boot + options_.stop_grace;
  log::Info("stopping: answering what is under way", {{"connections", connections_.size()}});
  if (options_.stopping) {
    options_.stopping();
  }
  doors_.clear();
  stop_admin_.store(true);
  for (const auto& [key, connection] : connections_) {
    connection->session().Stop();  // first, so that the last answer announces the close
    GiveUpLeases(connection.get(), now);
    Touch(connection);
  }
}

// True if everything is durable and answered, and every answer was read or given up on.
bool Server::Loop::stop_complete(const Now& now) const {
  if (in_flight_) {
    return false;
  }
  return now.boot >= stop_deadline_ ||
         (given_back_.empty() && connections_.empty() && engine_->uncommitted_bytes() == 0);
}

}  // namespace delayd
