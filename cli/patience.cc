#include "cli/patience.h"

#include <algorithm>

#include "cli/backoff.h"
#include "cli/human_time.h"
#include "protocol/problem.h"

namespace delayd::cli {
namespace {

constexpr Millis kRetryEveryMax{2000};
// The daemon's own Retry-After when a quota is reached.
constexpr Millis kRoomEvery{1000};

}  // namespace

bool NeedsRoom(const Status& status) {
  return status.reason() == "queue_full" || status.reason() == "user_full";
}

bool IsTooLarge(const Status& status) {
  return status.reason() == "payload_too_large" || status.reason() == "body_too_large";
}

bool MayGoWellLater(const Status& status) {
  return protocol::MayPass(status) || status.reason() == "disk_full" ||
         status.reason() == "disk_read_only";
}

StatusOr<bool> Patience::Wait(const Status& why, const std::string& words) {
  // After an interrupt, do not announce a wait.
  DELAYD_RETURN_IF_ERROR(sleep_(Millis(0)));
  const BootTime now = clock_->Sample().boot;
  const bool full = NeedsRoom(why);
  if (tries_ == 0) {
    give_up_ = now + retry_for_;
  }
  if (now >= give_up_) {
    return false;
  }
  // A full quota is reported once: thousands of jobs may each have to wait a little for it.
  if (tries_ == 0 && !(full && room_told_)) {
    room_told_ = room_told_ || full;
    warn_(why.WithMessage(words + "; trying for " + RoughDuration(retry_for_)));
  }
  const Millis pause = full ? kRoomEvery : Backoff(tries_, kRetryEveryMax);
  ++tries_;
  DELAYD_RETURN_IF_ERROR(sleep_(std::min<Millis>(pause, give_up_ - now)));
  return true;
}

}  // namespace delayd::cli
