// Bad input gets one clear line, the right exit code, and loses nothing.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

using ::testing::HasSubstr;

class BadInputTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.Start()); }

  void Expect(const std::vector<std::string>& args,
              int exit_code,
              const std::string& what,
              const std::string& stdin_text = "") {
    const ProcessResult result = daemon_.Ctl(args, stdin_text);
    EXPECT_EQ(result.exit_code, exit_code) << args[0] << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr(what));
    EXPECT_TRUE(result.err.starts_with("delayctl: ")) << result.err;
    EXPECT_EQ(result.out, "") << "data goes to stdout, words to stderr";
  }

  Daemon daemon_;
};

TEST_F(BadInputTest, WrongDurationsAndTimes) {
  Expect({"enqueue", "--in", "30 parsecs", "x"}, 2, "30 parsecs");
  Expect({"enqueue", "--in", "90", "x"}, 2, "90s");
  Expect({"enqueue", "--in", "-5s", "x"}, 2, "-5s");
  Expect({"enqueue", "--at", "soon", "x"}, 2, "soon");
  Expect({"enqueue", "--in", "1s", "--at", "2030-01-01T00:00:00Z", "x"}, 2, "--at");
  EXPECT_EQ(daemon_.CtlOk({"list", "-q"}), "");
}

TEST_F(BadInputTest, NamesAndSizes) {
  Expect({"enqueue", "--queue", "no spaces", "x"}, 2, "queue");
  Expect({"enqueue", "--key", "tab\there", "x"}, 2, "key");
  Expect({"enqueue", "-"}, 2, "payload", std::string((1 << 20) + 1, 'x'));
  Expect({"show", "12x"}, 2, "12x");
  Expect({"show", "999"}, 3, "999");
  Expect({"ack", "nonsense"}, 2, "nonsense");
}

TEST_F(BadInputTest, WrongVerbsAndFlagsGetAHint) {
  Expect({"enqeue", "x"}, 2, "enqueue");
  Expect({"list", "--queu", "x"}, 2, "--queue");
}

TEST_F(BadInputTest, KeyConflict) {
  daemon_.CtlOk({"enqueue", "--in", "1h", "--key", "k", "one"});
  Expect({"enqueue", "--in", "1h", "--key", "k", "two"}, 4, "key");
  EXPECT_EQ(daemon_.CtlOk({"enqueue", "--in", "1h", "--key", "k", "one"}),
            daemon_.CtlOk({"list", "-q"}));
}

TEST_F(BadInputTest, ImportNamesTheBadLineAndLosesNothingBeforeIt) {
  std::string lines;
  for (int i = 1; i <= 9; ++i) {
    lines += i == 7 ? "{\"payload\": oops\n"
                    : "{\"delay\":\"1h\",\"payload\":\"" + std::to_string(i) + "\"}\n";
  }
  const ProcessResult stopped = daemon_.Ctl({"import", "-"}, lines);
  EXPECT_EQ(stopped.exit_code, 2) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("line 7"));
  const std::string ids = daemon_.CtlOk({"list", "-q"});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), '\n') + 1, 6) << "the six lines before it are safe";

  const ProcessResult skipped = daemon_.Ctl({"import", "--continue", "-"}, lines);
  EXPECT_EQ(skipped.exit_code, 1);
  EXPECT_THAT(skipped.err, HasSubstr("line 7"));
  const std::string more = daemon_.CtlOk({"list", "-q"});
  EXPECT_EQ(std::count(more.begin(), more.end(), '\n') + 1, 6 + 8);
}

TEST_F(BadInputTest, NoDaemonIsExitCodeFive) {
  daemon_.Stop();
  Expect({"list"}, 5, daemon_.socket());
}

}  // namespace
}  // namespace delayd::test
