#include "protocol/uri.h"

#include <gtest/gtest.h>

#include "tests/unit/protocol/seeded.h"

namespace delayd::protocol {
namespace {

TEST(UriTest, EncodesWhatWouldEndASegment) {
  EXPECT_EQ(PercentEncode("order:1001/a b?&=%"), "order%3A1001%2Fa%20b%3F%26%3D%25");
  EXPECT_EQ(PercentEncode("Az09-._~"), "Az09-._~");
}

TEST(UriTest, AnyBytesComeBack) {
  std::mt19937_64 random = SeededRandom();
  for (int i = 0; i < 1000; ++i) {
    const std::string bytes = RandomBytes(&random, 60);
    EXPECT_EQ(PercentDecode(PercentEncode(bytes)).value(), bytes);
  }
}

TEST(UriTest, AnEscapeMayBeInEitherCase) {
  EXPECT_EQ(PercentDecode("%aA%bB%cC%dD%eE%fF").value(), "\xaa\xbb\xcc\xdd\xee\xff");
}

TEST(UriTest, BrokenEscapesAreRefused) {
  for (const char* text : {"%", "a%2", "%zz", "%2g"}) {
    EXPECT_EQ(PercentDecode(text).status().reason(), "invalid_target") << text;
  }
}

TEST(UriTest, PlusStaysPlus) {
  EXPECT_EQ(PercentDecode("2027-01-01T09:00:00+08:00").value(), "2027-01-01T09:00:00+08:00");
}

}  // namespace
}  // namespace delayd::protocol
