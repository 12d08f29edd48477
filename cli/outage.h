// cli/outage.h — a daemon that goes away while somebody watches: reported once and waited for.
//
// Errors:  a failure that will not pass by itself ends the watch.
// Threads: one owner.
#pragma once

#include "base/status.h"
#include "cli/console.h"
#include "protocol/problem.h"

namespace delayd::cli {

class Outage {
 public:
  explicit Outage(Console* console) : console_(console) {}

  // Whether to ask again, because the failure may pass (a restart, say). Warns once per outage.
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

  // The last failure of the daemon or the connection; OK while it answers.
  const Status& status() const { return status_; }

 private:
  Console* console_;
  Status status_;
};

}  // namespace delayd::cli
