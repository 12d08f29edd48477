// tests/unit/daemon/beanstalk/session_fixture.h — one client of a real engine, and another that
// looks at the stats.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/unit/daemon/beanstalk/simulated_server.h"

namespace delayd::beanstalk {

class BeanstalkSessionTest : public ::testing::Test {
 protected:
  using Client = SimulatedServer::Client;

  std::string Send(std::string_view bytes) { return server_.Send(client_, bytes); }

  std::string Stats(std::string_view command, std::string_view field) {
    observer_ = observer_ == nullptr ? server_.Connect() : observer_;
    const std::string text = server_.Send(observer_, std::string(command) + "\r\n");
    const size_t at = text.find("\n" + std::string(field) + ": ");
    if (at == std::string::npos) {
      return "no " + std::string(field) + " in " + text;
    }
    const size_t from = at + field.size() + 3;
    return text.substr(from, text.find('\n', from) - from);
  }

  SimulatedServer server_;
  Client* client_ = server_.Connect();
  Client* observer_ = nullptr;
};

}  // namespace delayd::beanstalk
