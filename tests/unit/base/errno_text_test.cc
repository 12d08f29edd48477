#include "base/errno_text.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayd {
namespace {

using ::testing::HasSubstr;

TEST(ErrnoTextTest, WhatTheUnitClosesHasItsCure) {
  EXPECT_THAT(ServiceCure(EROFS, "/srv/delayd"), HasSubstr("ReadWritePaths="));
  EXPECT_THAT(ServiceCure(EACCES, "/home/me/jobs"), HasSubstr("ProtectHome=no"));
  EXPECT_THAT(ServiceCure(EACCES, "/run/user/1000/d.sock"), HasSubstr("ProtectHome=no"));
  EXPECT_EQ(ServiceCure(EACCES, "/srv/delayd"), "") << "its owner and mode";
  EXPECT_EQ(ServiceCure(EACCES, "/homeless"), "");
  EXPECT_EQ(ServiceCure(ENOSPC, "/home/me/jobs"), "");
}

}  // namespace
}  // namespace delayd
