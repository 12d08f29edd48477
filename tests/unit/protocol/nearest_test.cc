#include "protocol/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace delayd::protocol {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"delay", "due", "payload", "queue"};

TEST(NearestTest, FindsTheWordBehindASlip) {
  EXPECT_EQ(Nearest("dealy", kWords), "delay");
  EXPECT_EQ(Nearest("pay_load", kWords), "payload");
  EXPECT_EQ(Nearest("queu", kWords), "queue");
  EXPECT_EQ(Nearest("Due", kWords), "due");
}

TEST(NearestTest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(Nearest("topic", kWords), "");
  const std::string_view options[] = {"--help", "--in", "--state"};
  EXPECT_EQ(Nearest("--delay", options), "");
  EXPECT_EQ(Nearest("--stat", options), "--state");
  EXPECT_EQ(Nearest("--inn", options), "--in");
  EXPECT_EQ(DidYouMean("topic", kWords), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), kWords), "");
}

TEST(NearestTest, QuotedTextIsOneShortLine) {
  EXPECT_EQ(Quoted("a\nb\x7f"), "'a\\x0ab\\x7f'");
  EXPECT_EQ(Quoted(std::string(100, 'x')).size(), 64 + 2 + 3);
  // No character is cut in two, and none turns the line around.
  EXPECT_EQ(Quoted(std::string(63, 'x') + "\xc3\xa4"), "'" + std::string(63, 'x') + "...'");
  EXPECT_EQ(Quoted("a\u202e"), "'a\\xe2\\x80\\xae'");
}

}  // namespace
}  // namespace delayd::protocol
