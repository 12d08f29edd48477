// tests/integration/side_by_side.h — the same conversation with Debian's beanstalkd and with
// delayd.
//
// What:    where the answers differ the step says so, and docs/protocol.md says why; anything else
//          that differs is a failure. Skipped where beanstalkd is not installed.
// Errors:  test failures.
// Threads: one.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/support/beanstalk_client.h"
#include "tests/support/beanstalkd.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"

namespace delayd::test {

struct Step {
  std::string send;
  size_t replies = 1;
  size_t client = 0;
  // Where the two differ: what delayd answers, and the heading in docs/protocol.md.
  std::optional<std::string> ours;
  std::string why;
};

class SideBySideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Beanstalkd::IsInstalled()) {
      GTEST_SKIP() << Beanstalkd::kWhyNot;
    }
    StartBoth();
  }

  // Also anew, without jobs.
  void StartBoth() {
    daemon_ = std::make_unique<Daemon>();
    ASSERT_TRUE(daemon_->Start({"--config",
                                daemon_->Write("delayd.yaml",
                                               "limits: { payload: 65535 }\nbeanstalk: { socket: " +
                                                   YamlText(OurSocket()) + " }\n")}));
    peer_ = std::make_unique<Beanstalkd>();
  }

  std::string OurSocket() const { return daemon_->Path("b.sock"); }

  // Each step has a millisecond of its own: what is due in the same one has no order.
  static void AwaitNextMillisecond() {
    const SystemClock clock;
    const BootTime after = clock.Sample().boot + Millis(1);
    while (clock.Sample().boot <= after) {
    }
  }

  static std::vector<std::string> Converse(const std::string& socket,
                                           const std::vector<Step>& steps) {
    std::vector<BeanstalkClient> clients;
    std::vector<std::string> answers;
    for (const Step& step : steps) {
      while (clients.size() <= step.client) {
        clients.push_back(BeanstalkClient::Unix(socket));
      }
      BeanstalkClient& client = clients[step.client];
      AwaitNextMillisecond();
      client.Send(step.send);
      std::string answer;
      for (size_t i = 0; i < step.replies; ++i) {
        answer += client.Read();
      }
      answers.push_back(answer);
    }
    return answers;
  }

  void Compare(const std::vector<Step>& steps) {
    const std::vector<std::string> theirs = Converse(peer_->socket(), steps);
    const std::vector<std::string> ours = Converse(OurSocket(), steps);
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string what = steps[i].send.substr(0, 60);
      if (!steps[i].ours) {
        EXPECT_EQ(ours[i], theirs[i]) << "step " << i << ": " << what;
        continue;
      }
      EXPECT_EQ(ours[i], *steps[i].ours) << "step " << i << ": " << what;
      EXPECT_NE(ours[i], theirs[i]) << "step " << i << " differs no more: " << what;
      EXPECT_THAT(ReadFile(DELAYD_PROTOCOL_PAGE), ::testing::HasSubstr(steps[i].why));
      std::printf("difference: %s: %s\n", what.c_str(), steps[i].why.c_str());
    }
  }

  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Beanstalkd> peer_;
};

}  // namespace delayd::test
