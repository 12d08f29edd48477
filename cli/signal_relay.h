// cli/signal_relay.h — blocks SIGINT, SIGTERM and SIGHUP in all threads and turns each into a Stop
// of the worker. SIGINT and SIGHUP stay ignored where they are.
//
// Errors:  kResourceExhausted when no thread can be started to wait for them.
// Threads: one owner; create it before the threads that must not be interrupted.
#pragma once

#include <signal.h>

#include <thread>

#include "base/status.h"
#include "cli/worker.h"

namespace delayd::cli {

class SignalRelay {
 public:
  explicit SignalRelay(Worker* worker);
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Not OK: why no signal reaches the worker.
  const Status& started() const { return started_; }

 private:
  void Relay(Worker* worker) const;

  int done_fd_;
  int signal_fd_ = -1;
  sigset_t old_mask_{};
  Status started_;
  std::thread thread_;
};

}  // namespace delayd::cli
