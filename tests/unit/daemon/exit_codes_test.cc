#include "daemon/exit_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace delayd {
namespace {

TEST(ExitCodesTest, WhatARestartDoesNotMendHasACodeOfItsOwn) {
  EXPECT_EQ(ExitCodeOf(DataLoss("torn", "damaged_store"), kExitCommitFailed), kExitDamaged);
  EXPECT_EQ(ExitCodeOf(FailedPrecondition("newer", "newer_schema"), kExitDataDir),
            kExitNewerSchema);
  EXPECT_EQ(ExitCodeOf(FailedPrecondition("moved", "data_dir_replaced"), kExitCommitFailed),
            kExitReplaced);
  EXPECT_EQ(ExitCodeOf(Unavailable("busy", "storage_io"), kExitCommitFailed), kExitCommitFailed);
}

TEST(ExitCodesTest, TheUnitLeavesThemToAPerson) {
  EXPECT_THAT(test::ReadFile(DELAYD_SOURCE_DIR "/config/systemd/delayd.service"),
              ::testing::HasSubstr("\nRestartPreventExitStatus=2 4 5 7\n"));
}

}  // namespace
}  // namespace delayd
