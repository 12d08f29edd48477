// cli/outage.h — a daemon that goes while somebody watches: told once, and waited for.
//
// Errors:  what does not pass by itself is the watcher's end.
// Threads: one owner.
#pragma once

#include "base/status.h"
#include "cli/console.h"
#include "protocol/problem.h"

namespace delayd::cli {

class Outage {
 public:
  explicit Outage(Console* console) : console_(console) {}

  // Whether an answer that may come later, after a restart say, is worth asking again for.
  bool MayWaitOut(const Status& status) {
    if (!protocol::MayPass(status)) {
      return false;
    }
    if (status_.ok()) {
      console_->Warn(status.Followed("; waiting for delayd"));
    }
    status_ = status;
    return true;
  }

  void Over() { status_ = OkStatus(); }

  // What the daemon, or the way to it, said last; OK while it answers.
  const Status& status() const { return status_; }

 private:
  Console* console_;
  Status status_;
};

}  // namespace delayd::cli
