#include "daemon/log.h"

#include <gtest/gtest.h>

namespace delayd::log {
namespace {

TEST(LogTest, TextQuotesWhatHasBlanks) {
  EXPECT_EQ(
      FormatLine(Format::kText, Level::kInfo, "ready", {{"n", 3}, {"dir", "/a"}, {"x", "a b"}}),
      "info ready n=3 dir=/a x=\"a b\"");
}

TEST(LogTest, JsonIsOneObject) {
  EXPECT_EQ(FormatLine(Format::kJson, Level::kError, "no \"way\"", {{"n", -1}, {"s", "x"}}),
            R"({"level":"error","message":"no \"way\"","n":-1,"s":"x"})");
}

TEST(LogTest, NoValueCanBeginANewLine) {
  const std::string line = FormatLine(
      Format::kText, Level::kWarn, "bad\nthing", {{"key", "a\r\n2026 info forged \x1b[31m"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace delayd::log
