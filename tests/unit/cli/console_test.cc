#include "cli/console.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace delayd::cli {
namespace {

TEST(ConsoleTest, ControlBytesAreEscapedAndTextIsNot) {
  EXPECT_EQ(EscapeControls("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(EscapeControls("a\nb\tc\r", true), "a\nb\tc\\x0d");
  EXPECT_EQ(EscapeControls("gr\xc3\xbc\xc3\x9f \xe2\x98\x95 \xf0\x9f\x98\x80"),
            "gr\xc3\xbc\xc3\x9f \xe2\x98\x95 \xf0\x9f\x98\x80");
  EXPECT_EQ(EscapeControls("\xff\xc3"), "\\xff\\xc3");
  // C1 controls: CSI as one code point.
  EXPECT_EQ(EscapeControls("\xc2\x9b"), "\\xc2\\x9b");
  // Overlong forms of ESC and CSI, a surrogate, and what is above U+10FFFF.
  EXPECT_EQ(EscapeControls("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(EscapeControls("\xf0\x80\x82\x9b"), "\\xf0\\x80\\x82\\x9b");
  // What turns the text behind it around.
  EXPECT_EQ(EscapeControls("a\u202eb\u2069"), "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa9");
  EXPECT_EQ(EscapeControls("\u2027\u202f\u2065\u206a"), "\u2027\u202f\u2065\u206a");
  EXPECT_EQ(EscapeControls("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(EscapeControls("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(ConsoleTest, PayloadBytesAreEscapedOnATerminalOnly) {
  std::ostringstream out;
  std::ostringstream err;
  Console pipe(out, err, {});
  pipe.Bytes("\x1b[2J");
  EXPECT_EQ(out.str(), "\x1b[2J");
  out.str("");
  Console terminal(out, err, {.out_is_terminal = true});
  terminal.Bytes("\x1b[2J");
  EXPECT_EQ(out.str(), "\\x1b[2J");
}

TEST(ConsoleTest, NoMessageObeysAServerThatWritesControls) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, {});
  console.Say("refused ack: \x1b[2J\njob 2 attempt 1: ack");
  console.Warn(Unavailable("away\x1b[2J"));
  EXPECT_EQ(err.str(), "refused ack: \\x1b[2J\\x0ajob 2 attempt 1: ack\naway\\x1b[2J\n");
}

TEST(ConsoleTest, QuietTakesTheWordsButNotTheErrors) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err, {});
  console.set_quiet(true);
  console.Say("done");
  console.Error(NotFound("job 7 is not known\nreally"));
  EXPECT_EQ(err.str(), "delayctl: job 7 is not known\\x0areally\n");
}

// A log on a disk that is full for a while.
class FillingBuffer : public std::stringbuf {
 public:
  bool full = false;

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return full ? 0 : std::stringbuf::xsputn(text, size);
  }
};

TEST(ConsoleTest, WordsGoOnWhenTheLogCanBeWrittenAgain) {
  std::ostringstream out;
  FillingBuffer log;
  std::ostream err(&log);
  Console console(out, err, {});
  log.full = true;
  console.Say("lost");
  log.full = false;
  console.Say("kept");
  EXPECT_EQ(log.str(), "kept\n");
}

TEST(ConsoleTest, ColourOnlyWhenAllowed) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(Console(out, err, {}).Bold("x"), "x");
  EXPECT_EQ(Console(out, err, {.color = true}).Bold("x"), "\x1b[1mx\x1b[0m");
}

}  // namespace
}  // namespace delayd::cli
