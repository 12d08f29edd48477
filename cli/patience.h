// cli/patience.h — how long an import waits for a daemon that is away, or for room under a quota or
// on the disk.
//
// What:    one wait at a time: call Wait after each failure until the request succeeds or the time
//          is over, then Reset.
// Errors:  whatever `sleep` returns when it is interrupted.
// Threads: one owner.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"

namespace delayd::cli {

// The timeout of one answer. A batch of large jobs on a slow disk takes longer than one job.
inline constexpr Millis kImportTimeout{30'000};
inline constexpr Millis kRetryForDefault{30'000};

// A quota is reached: there will be room when other jobs are done.
bool NeedsRoom(const Status& status);

// The job is too large; in a batch, one of them or their sum is.
bool IsTooLarge(const Status& status);

// The same request may succeed later: the daemon is away, or somebody makes room on its disk or
// mounts it writable.
bool MayGoWellLater(const Status& status);

class Patience {
 public:
  // An error of `sleep` ends the wait and is returned. `warn` is told what is waited for.
  Patience(const Clock* clock,
           Millis retry_for,
           std::function<Status(Millis)> sleep,
           std::function<void(const Status&)> warn)
      : clock_(clock), retry_for_(retry_for), sleep_(std::move(sleep)), warn_(std::move(warn)) {}

  // A request succeeded: the next wait starts afresh.
  void Reset() { tries_ = 0; }

  // True: it has slept, try again. False: the time is over. `words` are for the user.
  StatusOr<bool> Wait(const Status& why, const std::string& words);

 private:
  const Clock* clock_;
  Millis retry_for_;
  std::function<Status(Millis)> sleep_;
  std::function<void(const Status&)> warn_;
  int tries_ = 0;
  BootTime give_up_{};
  bool room_told_ = false;
};

}  // namespace delayd::cli
