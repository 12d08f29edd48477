// Quotas as clients meet them, on the real sockets.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

using ::testing::HasSubstr;

const std::string kShop = "s0123456789abcdef";
const std::string kOther = "o0123456789abcdef";

class QuotaTest : public ::testing::Test {
 protected:
  void Start(const std::string& settings) {
    const std::string config = daemon_.Write("config.yaml", settings);
    ASSERT_TRUE(daemon_.Start({"--config", config, "--api-listen", "127.0.0.1:0"}));
  }

  ProcessResult EnqueueWith(const std::string& token) {
    const std::string file = daemon_.Write("token", token + "\n");
    return daemon_.Ctl({"--server", daemon_.TcpAddress(), "--token-file", file, "enqueue", "x"});
  }

  Daemon daemon_;
};

TEST_F(QuotaTest, AUserIsRefusedAboveItsQuotaAlsoAfterAKill) {
  const std::string tokens =
      daemon_.Write("tokens", "enqueue " + kShop + " shop\nenqueue " + kOther + " other\n");
  const std::string settings =
      "limits: { jobs_per_user: 2 }\naccess: { token_file: " + YamlText(tokens) + " }\n";
  Start(settings);
  EXPECT_EQ(EnqueueWith(kShop).exit_code, 0);
  EXPECT_EQ(EnqueueWith(kShop).exit_code, 0);
  daemon_.Kill();
  Start(settings);
  const ProcessResult refused = EnqueueWith(kShop);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("user token:shop has 2 jobs stored and may have 2"));
  EXPECT_EQ(EnqueueWith(kOther).exit_code, 0);
  daemon_.CtlOk({"cancel", "1"});
  EXPECT_EQ(EnqueueWith(kShop).exit_code, 0);
  EXPECT_THAT(daemon_.CtlOk({"stats"}), HasSubstr("quota_refusals"));
  daemon_.CtlOk({"verify"});
}

TEST_F(QuotaTest, AQueueIsFullAndAReloadMakesRoom) {
  Start("queues: { orders: { max_jobs: 1 } }\n");
  daemon_.CtlOk({"enqueue", "--queue", "orders", "x"});
  const ProcessResult refused = daemon_.Ctl({"enqueue", "--queue", "orders", "x"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("queue orders holds 1 job and may hold 1"));
  EXPECT_THAT(daemon_.CtlOk({"queues", "-o", "json"}), HasSubstr("\"max_jobs\":1"));
  daemon_.Write(
      "config.yaml",
      "queues: { orders: { max_jobs: 2 } }\nlimits: { idle: 1m }\nmetrics: { queues: 7 }\n");
  daemon_.Signal(SIGHUP);
  daemon_.WaitForLog("the configuration was reloaded");
  daemon_.WaitForLog("what has changed waits for a restart keys=\"metrics.queues limits.idle\"");
  daemon_.CtlOk({"enqueue", "--queue", "orders", "x"});
}

}  // namespace
}  // namespace delayd::test
