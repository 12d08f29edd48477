#include "cli/exit_code.h"

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

TEST(ExitCodeTest, EveryStatusHasItsNumber) {
  const std::pair<Status, int> cases[] = {{OkStatus(), 0},
                                          {InvalidArgument("a"), 2},
                                          {NotFound("a"), 3},
                                          {AlreadyExists("a", "key_conflict"), 4},
                                          {FailedPrecondition("a", "lease_lost"), 4},
                                          {ResourceExhausted("a", "payload_too_large"), 2},
                                          {ResourceExhausted("a", "disk_full"), 1},
                                          {ResourceExhausted("a", "draining"), 1},
                                          {Unavailable("a", "unreachable"), 5},
                                          {Unavailable("a", "storage_io"), 1},
                                          {Unavailable("a", "interrupted"), 130},
                                          {Unknown("a", "outcome_unknown"), 1},
                                          {Unknown("a", "timed_out"), 6},
                                          {DeadlineExceeded("a"), 6},
                                          {PermissionDenied("a"), 7},
                                          {DataLoss("a"), 1},
                                          {Internal("a"), 1}};
  for (const auto& [status, code] : cases) {
    EXPECT_EQ(ExitCodeOf(status), code) << status.reason();
  }
}

TEST(ExitCodeTest, ManyObjectsShareACodeOrFail) {
  EXPECT_EQ(Combine(kExitOk, kExitNotFound, true), kExitNotFound);
  EXPECT_EQ(Combine(kExitNotFound, kExitNotFound, false), kExitNotFound);
  EXPECT_EQ(Combine(kExitNotFound, kExitOk, false), kExitFailed);
  EXPECT_EQ(Combine(kExitOk, kExitOk, false), kExitOk);
}

}  // namespace
}  // namespace delayd::cli
