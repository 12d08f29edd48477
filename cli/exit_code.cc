#include "cli/exit_code.h"

#include "base/check.h"
#include "cli/patience.h"

namespace delayd::cli {

std::span<const ExitCodeMeaning> ExitCodeTable() {
  static constexpr ExitCodeMeaning kTable[] = {
      {kExitOk, "done"},
      {kExitFailed, "failed or only part done"},
      {kExitUsage, "wrong usage or unreadable input"},
      {kExitNotFound, "no such job, key or queue"},
      {kExitRefused, "refused by state (leased, already fired, key conflict)"},
      {kExitUnreachable, "daemon unreachable or not ready"},
      {kExitTimedOut, "timed out"},
      {kExitNotAllowed, "not allowed"},
      {kExitInterrupted, "interrupted (143 and 129: ended by SIGTERM and SIGHUP)"}};
  return kTable;
}

ExitCode ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kInvalidArgument:
      return kExitUsage;
    case StatusCode::kNotFound:
      return kExitNotFound;
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
      return kExitRefused;
    case StatusCode::kResourceExhausted:
      // Too large is the caller's mistake; full, busy or draining is the daemon's
      // trouble.
      return IsTooLarge(status) ? kExitUsage : kExitFailed;
    case StatusCode::kUnavailable:
      if (status.reason() == "interrupted") {
        return kExitInterrupted;
      }
      // A failing disk is not cured by waiting for the daemon to come back.
      return status.reason() == "storage_io" ? kExitFailed : kExitUnreachable;
    case StatusCode::kUnknown:
      // Not kExitUnreachable: a script may take that for "nothing happened, try again".
      return status.reason() == "timed_out" ? kExitTimedOut : kExitFailed;
    case StatusCode::kPermissionDenied:
      return kExitNotAllowed;
    case StatusCode::kDeadlineExceeded:
      return kExitTimedOut;
    case StatusCode::kDataLoss:
    case StatusCode::kInternal:
      return kExitFailed;
  }
  DELAYD_CHECK(false);
}

ExitCode Combine(ExitCode so_far, ExitCode next, bool first) {
  return first || so_far == next ? next : kExitFailed;
}

}  // namespace delayd::cli
