// A token that is changed while a verb runs, and one that can be read only once.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_code.h"
#include "protocol/stats_json.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/cli/fake_daemon.h"

#include <sys/stat.h>

namespace delayd::cli {
namespace {

using ::testing::SizeIs;

class TokenClientTest : public ::testing::Test {
 protected:
  TokenClientTest() { Write("of-yesterday"); }

  void Write(const std::string& token) {
    std::ofstream(file_) << token << '\n';
    EXPECT_EQ(::chmod(file_.c_str(), 0600), 0);
  }

  // Knows the token of today only.
  Answer Serve(const Request& request) {
    if (!written_meanwhile_.empty()) {
      Write(written_meanwhile_);
    }
    return request.token == "of-today"
               ? Ok(protocol::QueueToJson({.name = "orders"}))
               : Ok(R"({"type": "about:blank", "status": 401, "code": "token_needed",
                        "detail": "no such token"})",
                    401);
  }

  Outcome Resume() {
    return Ctl({"--server", "unix:/x", "--token-file", file_, "resume", "orders"},
               {.daemon = [this](const Request& request) { return Serve(request); }});
  }

  const delayd::test::TempDir dir_;
  const std::string file_ = dir_.path() + "/token";
  std::string written_meanwhile_;
};

TEST_F(TokenClientTest, AnotherTokenInTheFileIsShownWhereTheOneThatWasReadIsRefused) {
  written_meanwhile_ = "of-today";
  const Outcome outcome = Resume();
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  ASSERT_THAT(outcome.requests, SizeIs(2));
  EXPECT_EQ(outcome.requests[0].token, "of-yesterday");
  EXPECT_EQ(outcome.requests[1].target, outcome.requests[0].target);
}

TEST_F(TokenClientTest, TheSameTokenIsNotShownAgainNorAThirdOne) {
  EXPECT_THAT(Resume().requests, SizeIs(1));
  written_meanwhile_ = "of-tomorrow";
  const Outcome outcome = Resume();
  EXPECT_EQ(outcome.code, kExitNotAllowed);
  EXPECT_THAT(outcome.requests, SizeIs(2));
}

TEST_F(TokenClientTest, APipeIsReadOnce) {
  std::filesystem::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  std::thread writer([this] { std::ofstream(file_) << "of-yesterday\n"; });
  const Outcome outcome = Resume();
  writer.join();
  EXPECT_EQ(outcome.code, kExitNotAllowed);
  EXPECT_THAT(outcome.requests, SizeIs(1));
}

TEST(TokenOfAPipeTest, ServesEachConnectionOfAVerb) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const std::string_view token = "of-today\n";
  ASSERT_EQ(::write(ends[1], token.data(), token.size()), static_cast<ssize_t>(token.size()));
  ::close(ends[1]);
  const std::string file = "/dev/fd/" + std::to_string(ends[0]);
  const Outcome outcome = Ctl({"--server", "unix:/x", "--token-file", file, "import"},
                              {.daemon = Accept, .input = "{}\n"});
  ::close(ends[0]);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  ASSERT_THAT(outcome.requests, SizeIs(1));
  EXPECT_EQ(outcome.requests[0].token, "of-today");
}

TEST_F(TokenClientTest, AFileThatIsBeingWrittenLeavesTheRefusal) {
  written_meanwhile_ = " ";
  const Outcome outcome = Resume();
  EXPECT_EQ(outcome.code, kExitNotAllowed);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("no such token"));
}

}  // namespace
}  // namespace delayd::cli
