// cli/patience.h — how long an import waits for a daemon that is away, or for room under a quota or
// on the disk.
//
// What:    one wait at a time: Wait again and again until it went well or time is over, then Reset.
// Errors:  what `sleep` returns, when it is interrupted.
// Threads: one owner.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::cli {

// For one answer. A batch of large jobs on a slow disk takes longer than one job.
inline constexpr Millis kImportTimeout{30'000};
inline constexpr Millis kRetryForDefault{30'000};

// A quota is reached: there is room again when others are done.
bool NeedsRoom(const Status& status);

// Of a single job; of a batch it may be one of them, or their sum.
bool IsTooLarge(const Status& status);

// The same request may go well later: the daemon is away, or somebody makes room on its disk.
bool MayGoWellLater(const Status& status);

class Patience {
 public:
  // `sleep` not OK: stop waiting, and stop.
  Patience(const Clock* clock,
           Millis retry_for,
           std::function<Status(Millis)> sleep,
           std::function<void(const std::string&)> say)
      : clock_(clock), retry_for_(retry_for), sleep_(std::move(sleep)), say_(std::move(say)) {}

  // Something went well: the next wait begins anew.
  void Reset() { tries_ = 0; }

  // True: it was slept, try again. False: time is over. `words` are for the user.
  StatusOr<bool> Wait(const Status& why, const std::string& words);

 private:
  const Clock* clock_;
  Millis retry_for_;
  std::function<Status(Millis)> sleep_;
  std::function<void(const std::string&)> say_;
  int tries_ = 0;
  BootTime give_up_{};
  bool room_told_ = false;
};

}  // namespace delayd::cli
