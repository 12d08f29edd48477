#include "protocol/connection.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/unit/protocol/scripted_server.h"

#include <sys/eventfd.h>

namespace delayd::protocol {
namespace {

// Says what it is told to say to each that is sent, byte for byte.
class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest()
      : server_({[](int fd) {
          char buffer[64];
          for (ssize_t count = 0; (count = read(fd, buffer, sizeof buffer)) > 0;) {
            ScriptedServer::Write(fd, std::string(buffer, static_cast<size_t>(count)));
          }
        }}) {
    ServerAddress address;
    address.path = server_.path();
    EXPECT_TRUE(connection_.Open(address, Later()).ok());
  }

  static BootTime Now() { return SystemClock().Sample().boot; }

  static BootTime Later() { return Now() + Millis(60'000); }

  // Returns when the answer lies there, unread.
  void Ask(const std::string& words) {
    size_t sent = 0;
    EXPECT_TRUE(connection_.Send(words, Later(), &sent).ok());
    while (connection_.Idle()) {
    }
  }

  std::string Receive(BootTime deadline) {
    char byte = 0;
    const StatusOr<size_t> count = connection_.Receive(&byte, 1, deadline);
    return count.ok() ? std::string(&byte, *count) : std::string(count.status().reason());
  }

  ScriptedServer server_;
  Connection connection_;
};

// As under a server that says more, faster than it is read.
TEST_F(ConnectionTest, WhatIsToBeReadForEverIsReadUntilTheDeadline) {
  Ask("abc");
  EXPECT_EQ(Receive(Later()), "a");
  EXPECT_EQ(Receive(Now()), "timed_out");
}

// As of a process that was stopped, or a machine that was suspended.
TEST_F(ConnectionTest, AnAnswerThatLayUnreadUntilItsTimeWasOverIsTaken) {
  for (const std::string word : {"a", "b"}) {
    Ask(word);
    EXPECT_EQ(Receive(Now()), word);
  }
}

TEST_F(ConnectionTest, WhoIsToGiveUpMayWaitALittleForWhatComes) {
  const int fd = eventfd(1, EFD_CLOEXEC);
  connection_.GiveUpWhen(fd, Millis(60'000));
  size_t sent = 0;
  EXPECT_TRUE(connection_.Send("a", Later(), &sent).ok());
  EXPECT_EQ(Receive(Later()), "a");
  connection_.GiveUpWhen(fd, Millis(10));
  EXPECT_EQ(Receive(BootTime::max()), "timed_out");
  close(fd);
}

}  // namespace
}  // namespace delayd::protocol
