#include "cli/line_reader.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace delayd::cli {
namespace {

TEST(LineReaderTest, CountsLinesAndNeedsNoLastNewline) {
  std::istringstream in("a\n\nb\r\nlast");
  LineReader reader(in);
  for (const char* expected : {"a", "", "b\r", "last"}) {
    EXPECT_EQ(reader.Next().value(), expected);
  }
  EXPECT_EQ(reader.number(), 4U);
  EXPECT_EQ(reader.Next().value(), std::nullopt);
  EXPECT_EQ(reader.number(), 4U);
  EXPECT_EQ(reader.bytes_read(), 10U);
}

TEST(LineReaderTest, NothingHasNoLines) {
  std::istringstream in("");
  EXPECT_EQ(LineReader(in).Next().value(), std::nullopt);
}

TEST(LineReaderTest, LinesMayBeLongerThanTheBuffer) {
  const std::string line(1'000'000, 'x');
  std::istringstream in(line + "\n" + line + "y\n");
  LineReader reader(in);
  EXPECT_EQ(reader.Next().value(), line);
  EXPECT_EQ(reader.Next().value(), line + "y");
  EXPECT_EQ(reader.Next().value(), std::nullopt);
}

TEST(LineReaderTest, ALineBeyondTheBoundIsRefusedAndSkipped) {
  std::istringstream in("12345\n123456\nok\n");
  LineReader reader(in, 5);
  EXPECT_EQ(reader.Next().value(), "12345");
  EXPECT_EQ(reader.Next().status().reason(), "body_too_large");
  EXPECT_EQ(reader.number(), 2U);
  EXPECT_EQ(reader.Next().value(), "ok");
}

TEST(LineReaderTest, ALineWithoutEndIsRefusedOnceItIsTooLong) {
  int reads = 0;
  LineReader reader(
      [&reads](char* to, size_t bytes_max) -> StatusOr<size_t> {
        ++reads;
        std::fill_n(to, bytes_max, 'x');
        if (reads == 3) {
          std::string_view("x\nok\n").copy(to, 5);
          return size_t{5};
        }
        return reads > 3 ? 0 : bytes_max;
      },
      10);
  EXPECT_EQ(reader.Next().status().reason(), "body_too_large");
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(reader.number(), 1U);
  EXPECT_EQ(reader.Next().value(), "ok");
  EXPECT_EQ(reader.number(), 2U);
  EXPECT_EQ(reader.Next().value(), std::nullopt);
  EXPECT_EQ(reader.number(), 2U);
}

TEST(LineReaderTest, AByteOrderMarkIsDropped) {
  std::istringstream in("\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n");
  LineReader reader(in);
  EXPECT_EQ(reader.Next().value(), "{}");
  EXPECT_EQ(reader.Next().value(), "\xef\xbb\xbf{}");
}

}  // namespace
}  // namespace delayd::cli
