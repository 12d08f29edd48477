// Who may do what on the real sockets.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/daemon.h"

#include <sys/stat.h>

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kReadToken = "r0123456789abcdef0123456789abcdef";
const std::string kAdminToken = "a0123456789abcdef0123456789abcdef";
const std::string kOtherToken = "o0123456789abcdef0123456789abcdef";
const std::string kRenewedToken = "p0123456789abcdef0123456789abcdef";

class TokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    daemon_.Write("tokens",
                  "read " + kReadToken + "\nadmin " + kAdminToken + "\nenqueue " + kOtherToken +
                      "\nenqueue " + kRenewedToken + "\n");
    daemon_.Write("read.token", kReadToken + "\n");
    daemon_.Write("other.token", kOtherToken + "\n");
    daemon_.Write("renewed.token", kRenewedToken + "\n");
    daemon_.Write("admin.token", kAdminToken + "\n");
    const std::string config = daemon_.Write(
        "config.yaml", "access: { token_file: " + YamlText(daemon_.Path("tokens")) + " }\n");
    ASSERT_TRUE(daemon_.Start({"--config", config, "--api-listen", "127.0.0.1:0"}));
  }

  ProcessResult Ctl(const std::string& token, std::vector<std::string> args) {
    args.insert(args.begin(), {"--server", daemon_.TcpAddress()});
    if (!token.empty()) {
      args.insert(args.begin(), {"--token-file", daemon_.Path(token)});
    }
    return daemon_.Ctl(args);
  }

  // A delayctl that waits for a job.
  ProcessOptions Waiting(const std::string& token) {
    return daemon_.CtlOptions({"--token-file",
                               daemon_.Path(token),
                               "--server",
                               daemon_.TcpAddress(),
                               "lease",
                               "--wait",
                               "1h"});
  }

  std::string Stats() { return daemon_.CtlOk({"stats", "-o", "json"}); }

  Daemon daemon_;
};

TEST_F(TokenTest, WithoutATokenTcpAnswersWhetherItLivesAndNothingElse) {
  EXPECT_EQ(Ctl("", {"ping"}).exit_code, 0);
  const ProcessResult refused = Ctl("", {"stats"});
  EXPECT_EQ(refused.exit_code, 7) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("--token-file"));
  EXPECT_EQ(daemon_.Ctl({"stats"}).exit_code, 0) << "the kernel vouches for the Unix socket";
}

TEST_F(TokenTest, AReadTokenReadsAndChangesNothing) {
  EXPECT_EQ(Ctl("read.token", {"stats"}).exit_code, 0);
  const ProcessResult refused = Ctl("read.token", {"enqueue", "x"});
  EXPECT_EQ(refused.exit_code, 7) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("role enqueue"));
  EXPECT_EQ(Ctl("read.token", {"clock", "accept"}).exit_code, 7);
}

TEST_F(TokenTest, AnAdminTokenMayDoEverything) {
  EXPECT_EQ(Ctl("admin.token", {"enqueue", "x"}).exit_code, 0);
  EXPECT_EQ(Ctl("admin.token", {"clock", "accept"}).out, "trusted\n");
}

TEST_F(TokenTest, AReloadTakesATokenAway) {
  EXPECT_EQ(Ctl("read.token", {"stats"}).exit_code, 0);
  daemon_.Write("tokens", "admin " + kAdminToken + "\n");
  daemon_.Signal(SIGHUP);
  daemon_.WaitForLog("the tokens were reloaded");
  EXPECT_EQ(Ctl("read.token", {"stats"}).exit_code, 7);
  EXPECT_EQ(Ctl("admin.token", {"stats"}).exit_code, 0);
  daemon_.Write("tokens", "nonsense\n");
  daemon_.Signal(SIGHUP);
  daemon_.WaitForLog("the tokens were not reloaded");
  EXPECT_THAT(daemon_.log(), HasSubstr("config.yaml:1:23: access.token_file: "));
  EXPECT_EQ(Ctl("admin.token", {"stats"}).exit_code, 0);
}

// The file of the start is read, and the new configuration does not name it.
TEST_F(TokenTest, AReloadNamesNoPlaceOfASettingThatWaitsForARestart) {
  daemon_.Write("tokens", "nonsense\n");
  daemon_.Write("config.yaml", "\naccess: { token_file: /elsewhere }\n");
  daemon_.Signal(SIGHUP);
  daemon_.WaitForLog("the tokens were not reloaded");
  EXPECT_THAT(daemon_.log(),
              HasSubstr("detail=\"access.token_file: " + daemon_.Path("tokens") + ":1: "));
}

TEST_F(TokenTest, AReloadRefusesALeaseRequestThatWaitsWithATokenItTakesAway) {
  Process removed(Waiting("admin.token"));
  Process lowered(Waiting("other.token"));
  Process renewed(Waiting("renewed.token"));
  const std::string next = "n0123456789abcdef0123456789abcdef";
  ASSERT_TRUE(WaitUntil([this] { return Member(Stats(), "waiting") == "3"; }));
  daemon_.Write("tokens", "read " + kOtherToken + "\nenqueue " + next + "\n");
  daemon_.Write("renewed.token", next + "\n");
  daemon_.Signal(SIGHUP);
  const ProcessResult refused = removed.Wait();
  EXPECT_EQ(refused.exit_code, 7) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("this token is not known here"));
  const ProcessResult too_low = lowered.Wait();
  EXPECT_EQ(too_low.exit_code, 7) << too_low.err;
  EXPECT_THAT(too_low.err, HasSubstr("role enqueue"));
  daemon_.CtlOk({"enqueue", "x"});
  const ProcessResult served = renewed.Wait();
  EXPECT_EQ(served.exit_code, 0) << "with the token that its file has now: " << served.err;
  EXPECT_EQ(Member(Stats(), "handed_out"), "1");
}

TEST_F(TokenTest, NoTokenIsEverInTheLogOrAnAnswer) {
  daemon_.Write("wrong.token", "w0123456789abcdef0123456789abcdef");
  const ProcessResult refused = Ctl("wrong.token", {"stats"});
  EXPECT_EQ(refused.exit_code, 7);
  EXPECT_THAT(refused.err, Not(HasSubstr("0123456789abcdef")));
  EXPECT_THAT(daemon_.log(), Not(HasSubstr("0123456789abcdef")));
}

TEST_F(TokenTest, ATokenFileThatEverybodyCanReadIsNotUsedByEither) {
  ASSERT_EQ(::chmod(daemon_.Path("read.token").c_str(), 0644), 0);
  const ProcessResult refused = Ctl("read.token", {"stats"});
  EXPECT_EQ(refused.exit_code, 7);
  EXPECT_THAT(refused.err, HasSubstr("chmod"));
  daemon_.Stop();
  ASSERT_EQ(::chmod(daemon_.Path("tokens").c_str(), 0644), 0);
  const ProcessResult start =
      daemon_.StartExpectingFailure({"--config", daemon_.Path("config.yaml")});
  EXPECT_EQ(start.exit_code, 2) << start.err;
  EXPECT_THAT(start.err, HasSubstr("chmod o-rw"));
}

TEST(AccessTest, EveryAddressOfLoopbackAnswersToItsOwnName) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start({"--api-listen", "127.0.0.2:0"}));
  daemon.CtlOk({"--server", daemon.TcpAddress(), "stats"});
}

TEST(AccessTest, LoopbackIsCalledLocalhostToo) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start({"--api-listen", "127.0.0.1:0"}));
  std::string address = daemon.TcpAddress();
  const std::string number = "127.0.0.1";
  ASSERT_THAT(address, HasSubstr(number));
  daemon.CtlOk(
      {"--server", address.replace(address.find(number), number.size(), "localhost"), "stats"});
}

}  // namespace
}  // namespace delayd::test
