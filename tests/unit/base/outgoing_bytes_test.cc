#include "base/outgoing_bytes.h"

#include <gtest/gtest.h>

namespace delayd {
namespace {

TEST(OutgoingBytesTest, LeavesInOrder) {
  OutgoingBytes bytes;
  bytes.tail()->append("hello ");
  bytes.Sent(3);
  bytes.tail()->append("world");
  EXPECT_EQ(bytes.unsent(), "lo world");
  bytes.Sent(8);
  EXPECT_TRUE(bytes.empty());
}

TEST(OutgoingBytesTest, P10WhatHasGoneIsLetGoOfThoughSomethingAlwaysWaits) {
  OutgoingBytes bytes;
  const std::string piece(100'000, 'x');
  bytes.tail()->append(piece);
  for (int i = 0; i < 1000; ++i) {
    bytes.tail()->append(piece);
    bytes.Sent(piece.size());
    ASSERT_EQ(bytes.size(), piece.size());
    ASSERT_LE(bytes.tail()->size(), 4 * piece.size());
  }
}

TEST(OutgoingBytesTest, KeepsLittleWhenNothingWaits) {
  OutgoingBytes bytes(2048);
  bytes.tail()->append(std::string(1'000'000, 'x'));
  bytes.Sent(1'000'000);
  EXPECT_LE(bytes.tail()->capacity(), 2048U);
}

}  // namespace
}  // namespace delayd
