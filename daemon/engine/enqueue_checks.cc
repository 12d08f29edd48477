#include "daemon/engine/enqueue_checks.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/duration_text.h"
#include "base/limits.h"
#include "base/size_text.h"
#include "daemon/engine/lease_checks.h"

namespace delayd::engine {
namespace {

// A history must be one that this store could have written itself.
Status CheckHistory(const std::vector<JobEvent>& history) {
  const bool is_long = std::ranges::any_of(history, [](const JobEvent& event) {
    return event.who.size() > limits::kClientNameBytesMax ||
           event.what.size() > limits::kEventErrorBytesMax;
  });
  if (history.size() > limits::kJobEventsMax || is_long) {
    return InvalidArgument("the history has " + std::to_string(history.size()) +
                               " events; give at most " + std::to_string(limits::kJobEventsMax) +
                               ", with a client and an error of at most " +
                               std::to_string(limits::kEventErrorBytesMax) + " bytes each",
                           "invalid_history");
  }
  return OkStatus();
}

Status CheckPast(const JobPast& past) {
  const uint32_t most =
      std::max({past.attempts, past.timeouts, past.releases, past.buries, past.kicks});
  if (most > limits::kPastFigureMax) {
    return InvalidArgument("a count of " + std::to_string(most) +
                               " from another store is out of range; give attempt, timeouts, "
                               "releases, buries and kicks of 0 to " +
                               std::to_string(limits::kPastFigureMax),
                           "invalid_history");
  }
  return CheckHistory(past.history);
}

}  // namespace

Status CheckDue(const DueSpec& due, WallTime now) {
  if (const auto* after = std::get_if<DueAfter>(&due)) {
    if (after->delay.count() < 0 || after->delay.count() > limits::kDelayMsMax) {
      return OutOfRange(
          "delay", after->delay, Millis(0), Millis(limits::kDelayMsMax), "invalid_delay");
    }
    // Refused and not clamped: a job must not be due at another time than was asked for.
    if (ToMillis(now) + after->delay.count() > limits::kWallMsMax) {
      return InvalidArgument("the delay ends after 2286; use a shorter one", "invalid_delay");
    }
  } else {
    const int64_t at = ToMillis(std::get<DueAt>(due).at);
    if (at < 0 || at > limits::kWallMsMax) {
      return InvalidArgument("due time is out of range; use a time between 1970 and 2286",
                             "invalid_due");
    }
  }
  return OkStatus();
}

Status CheckMove(const std::optional<DueSpec>& due,
                 std::optional<uint32_t> priority,
                 WallTime now) {
  if (!due && !priority) {
    return InvalidArgument("nothing to change; give a delay, a due time or a priority",
                           "invalid_reschedule");
  }
  return due ? CheckDue(*due, now) : OkStatus();
}

Status CheckSpec(const JobSpec& spec, size_t payload_bytes_max, WallTime now) {
  DELAYD_RETURN_IF_ERROR(ValidateQueueName(spec.queue));
  if (!spec.key.empty()) {
    DELAYD_RETURN_IF_ERROR(ValidateKey(spec.key));
  }
  if (spec.payload.size() > payload_bytes_max) {
    return ResourceExhausted(
        "payload has " + std::to_string(spec.payload.size()) + " bytes and at most " +
            FormatSize(payload_bytes_max) +
            " are allowed; store it elsewhere and send a reference, or raise limits.payload",
        "payload_too_large");
  }
  DELAYD_RETURN_IF_ERROR(CheckDue(spec.due, now));
  DELAYD_RETURN_IF_ERROR(CheckLeaseTime(spec.lease));
  if (spec.expires_after &&
      (spec.expires_after->count() < 1 || spec.expires_after->count() > limits::kDelayMsMax)) {
    return OutOfRange("expires_after",
                      *spec.expires_after,
                      Millis(1),
                      Millis(limits::kDelayMsMax),
                      "invalid_expires_after");
  }
  if (spec.touch_delay &&
      (spec.touch_delay->count() < 0 || spec.touch_delay->count() > limits::kDelayMsMax)) {
    return OutOfRange(
        "touch_delay", *spec.touch_delay, Millis(0), Millis(limits::kDelayMsMax), "invalid_delay");
  }
  if (spec.past != nullptr) {
    DELAYD_RETURN_IF_ERROR(CheckPast(*spec.past));
  }
  if (spec.on_conflict != OnConflict::kFail && spec.key.empty()) {
    return InvalidArgument("on_conflict is about the job that has the key; give a key too",
                           "invalid_on_conflict");
  }
  if (spec.on_conflict == OnConflict::kReplace && spec.buried) {
    return InvalidArgument("a job cannot be replaced by a buried one; cancel it instead",
                           "invalid_on_conflict");
  }
  return OkStatus();
}

}  // namespace delayd::engine
