#include "daemon/commit_watch.h"

#include <utility>

#include "daemon/log.h"

namespace delayd {

std::optional<Millis> CommitWatch::Look(std::chrono::steady_clock::time_point began, Millis age) {
  if (std::exchange(began_, began) != began) {
    told_ = Millis(0);
  }
  if (age >= stuck_) {
    if (std::exchange(told_, stuck_) < stuck_) {
      log::Error("a commit is stuck; the disk does not answer, and nothing is stored meanwhile",
                 {{"ms", age.count()}});
    }
    return std::nullopt;
  }
  if (age < late_) {
    return late_;
  }
  if (std::exchange(told_, late_) < late_) {
    log::Warn("a commit is late; all changes wait for the disk", {{"ms", age.count()}});
  }
  return stuck_;
}

}  // namespace delayd
