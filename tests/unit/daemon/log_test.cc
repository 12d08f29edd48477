#include "daemon/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"

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

// A path of the file system may hold any bytes.
TEST(LogTest, ALineIsUtf8WhateverAValueIs) {
  EXPECT_EQ(FormatLine(Format::kText, Level::kWarn, "m", {{"path", "/\xc3\xa4\xff\xc3"}}),
            "warn m path=/\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(FormatLine(Format::kJson, Level::kWarn, "m", {{"path", "\xff"}}),
            "{\"level\":\"warn\",\"message\":\"m\",\"path\":\"\xef\xbf\xbd\"}");
}

// Or a pipe that is writable would not take it at once, and who logs it would wait for the reader.
TEST(LogTest, ALineIsNoLongerThanAPipeTakesAtOnce) {
  const std::string controls(5000, '\x01');
  for (const Format format : {Format::kText, Format::kJson}) {
    const std::string line =
        FormatLine(format, Level::kWarn, "m", {{"a", controls}, {"b", controls}, {"c", controls}});
    EXPECT_LT(line.size(), PIPE_BUF - 100);
    EXPECT_THAT(line, ::testing::HasSubstr("\\u0001..."));
  }
  EXPECT_EQ(FormatLine(Format::kText, Level::kWarn, "m", {{"a", std::string(5000, 'x')}}),
            "warn m a=" + std::string(1000, 'x') + "...");
  const std::string no_utf8(5000, '\xff');  // each byte becomes three
  EXPECT_LT(
      FormatLine(Format::kJson, Level::kWarn, "m", {{"a", no_utf8}, {"b", no_utf8}, {"c", no_utf8}})
          .size(),
      PIPE_BUF - 100);
}

TEST(LogTest, ALongTextIsCutBetweenCharacters) {
  const std::string text = std::string(999, 'x') + "\xc3\xa4\xc3\xa4";
  EXPECT_EQ(FormatLine(Format::kText, Level::kWarn, "m", {{"a", text}}),
            "warn m a=" + text.substr(0, 1001) + "...");
}

// A path makes it long, and the cure is behind the path.
TEST(LogTest, WhyADaemonEndsThatServesNobodyIsToldWhole) {
  const std::string detail = "/" + std::string(9000, 'x') + ": Permission denied; become its owner";
  ::testing::internal::CaptureStderr();
  Start({.level = Level::kInfo});
  LastError("cannot start", {{"detail", detail}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::EndsWith("error cannot start detail=\"" + detail + "\"\n"));
}

size_t LinesWith(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Stands in for stderr until it goes; nobody reads it but the test.
class FullPipe {
 public:
  FullPipe() : stderr_(::dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_NONBLOCK), 0);
    read_ = UniqueFd(ends[0]);
    const UniqueFd write(ends[1]);
    while (::write(write.get(), "x", 1) == 1) {
    }
    EXPECT_EQ(::fcntl(write.get(), F_SETFL, 0), 0);  // blocks, as stderr does
    EXPECT_EQ(::dup2(write.get(), STDERR_FILENO), STDERR_FILENO);
  }

  ~FullPipe() { ::dup2(stderr_.get(), STDERR_FILENO); }

  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  std::string ReadAll() {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(read_.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  UniqueFd stderr_;
  UniqueFd read_;
};

TEST(LogTest, ALogThatNobodyReadsHoldsUpNobody) {
  FullPipe pipe;
  Start({.level = Level::kInfo});
  std::future<void> written = std::async(std::launch::async, [] {
    Info("one");
    Warn("two");
    Error("three");
  });
  EXPECT_EQ(written.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  pipe.ReadAll();
  written.wait();
  Info("four");
  const std::string log = pipe.ReadAll();
  EXPECT_THAT(log, ::testing::HasSubstr("left out while nobody read the log count=3\n"));
  EXPECT_THAT(log, ::testing::EndsWith("info four\n"));
}

TEST(LogTest, AFloodOfOneMessageIsCutAndCountedAndOthersAreNot) {
  ::testing::internal::CaptureStderr();
  Start({.level = Level::kInfo});
  const auto before = Counts();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    Warn("flood", {{"n", i}});
  }
  const auto took =
      std::chrono::floor<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  Warn("something else");
  for (int i = 0; i < 1000; ++i) {
    Error("a job is damaged", {{"job", i}});
  }
  Debug("below the level");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(LinesWith(log, "warn flood"), 20U * static_cast<size_t>(took.count() + 1));
  EXPECT_EQ(LinesWith(log, "something else"), 1U);
  EXPECT_EQ(LinesWith(log, "a job is damaged"), 1000U) << "each failure is named";
  EXPECT_EQ(LinesWith(log, "below the level"), 0U);
  const auto after = Counts();
  EXPECT_EQ(after[2] - before[2], 1001U) << "metrics count what the log leaves out";
  EXPECT_EQ(after[0] - before[0], 1U);
}

// A thousand lines of this message, all in one second: what the log has of them.
std::string Burst(std::string_view message) {
  std::string log;
  do {
    TellLeftOut();  // of other tests
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 1000; ++i) {
      Warn(message);
    }
    log = ::testing::internal::GetCapturedStderr();
  } while (LinesWith(log, "lines were left out") > 0);  // the next second had begun
  return log;
}

// Or who had many failures at once, and none since, would see the first twenty only.
TEST(LogTest, WhatWasLeftOutIsToldThoughTheMessageDoesNotComeAgain) {
  Start({.level = Level::kInfo});
  Burst("a burst");
  ::testing::internal::CaptureStderr();
  TellLeftOut();
  TellLeftOut();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(LinesWith(log, "warn lines were left out message=\"a burst\""), 1U) << log;
}

TEST(LogTest, WhatWasLeftOutIsCountedThoughNobodyReadsTheLineThatTellsIt) {
  Start({.level = Level::kInfo});
  const size_t told = LinesWith(Burst("a burst before a full pipe"), "warn a burst");
  FullPipe pipe;
  TellLeftOut();
  pipe.ReadAll();
  Info("the pipe is read again");
  EXPECT_THAT(pipe.ReadAll(),
              ::testing::HasSubstr("nobody read the log count=" + std::to_string(1000 - told)));
}

}  // namespace
}  // namespace delayd::log
