// Signals from a service manager or an operator: stop, drain, reload.
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/check.h"
#include "daemon/log.h"
#include "daemon/server_loop.h"

namespace delayd {

void Server::Loop::Stop() {
  stop_wanted_ = true;
}

void Server::Loop::WaitForSignal() {
  boost::system::error_code error;
  signals_.add(SIGTERM, error);  // NOLINT(bugprone-unused-return-value)
  DELAYD_CHECK(!error);
  signals_.add(SIGINT, error);  // NOLINT(bugprone-unused-return-value)
  DELAYD_CHECK(!error);
  signals_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (!cancelled) {
      Stop();
      EndAtNextSignal();
    }
  });
}

// Does not need this thread to run: it may be waiting for a disk, or have finished its turns while
// other threads are still at work or the store is being closed.
void Server::Loop::EndAtNextSignal() {
  // This loses nothing that was acknowledged: the next start reads what is durable. The second
  // signal may have come already, while this thread waited for the disk; the wait here catches it.
  signals_.async_wait([](const boost::system::error_code& none, int) {
    if (!none) {
      ::_exit(EXIT_FAILURE);
    }
  });
  boost::system::error_code error;
  signals_.clear(error);   // NOLINT(bugprone-unused-return-value)
  signals_.cancel(error);  // NOLINT(bugprone-unused-return-value)
  for (const int signal : {SIGTERM, SIGINT}) {
    std::signal(signal, [](int) { ::_exit(EXIT_FAILURE); });
  }
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
