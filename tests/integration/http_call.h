// tests/integration/http_call.h — one request over HTTP to a daemon's Unix socket.
//
// Errors:  a test failure when there is no answer; its status is the caller's to judge.
// Threads: one.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "protocol/client.h"
#include "tests/support/daemon.h"

namespace delayd::test {

inline protocol::HttpResponse HttpCall(const Daemon& daemon,
                                       const std::string& method,
                                       const std::string& target,
                                       const std::string& body = "",
                                       const std::string& type = "application/json") {
  const auto client = protocol::Client::Create("unix:" + daemon.socket());
  EXPECT_TRUE(client.ok()) << client.status().message();
  const auto answer =
      (*client)->Call(method, target, body.empty() ? "" : type, body, Millis(30'000));
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? *answer : protocol::HttpResponse{};
}

}  // namespace delayd::test
