// tests/unit/daemon/router_fixture.h — requests as a router reads them: into a command, or a
// refusal.
#pragma once

#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "daemon/http/router.h"
#include "tests/support/plain_report.h"
#include "tests/unit/daemon/now.h"

namespace delayd::http {

// Of a body that is read in one step.
inline Routed RouteOf(const Router& router,
                      const Request& request,
                      const FoundRoute& found,
                      const Now& now) {
  protocol::JobSpecLines lines;
  return router.Route(request, found, now, &lines);
}

class RouterTest : public ::testing::Test {
 protected:
  Routed Route(const std::string& method,
               const std::string& target,
               const std::string& body = "",
               const std::string& type = "application/json") {
    const Request request{
        .method = method, .target = target, .content_type = body.empty() ? "" : type, .body = body};
    return RouteOf(router_, request, Router::Find(request), kNow);
  }

  template <typename Command>
  Command CommandOf(const std::string& method,
                    const std::string& target,
                    const std::string& body = "",
                    const std::string& type = "application/json") {
    auto routed = Route(method, target, body, type);
    const Order* order = std::get_if<Order>(&routed);
    EXPECT_NE(order, nullptr) << std::get<Response>(routed).body;
    if (order == nullptr || !std::holds_alternative<Command>(order->command)) {
      ADD_FAILURE() << method << " " << target << " is another command";
      return {};
    }
    return std::get<Command>(order->command);
  }

  Response RefusalOf(const std::string& method,
                     const std::string& target,
                     const std::string& body = "",
                     const std::string& type = "application/json") {
    auto routed = Route(method, target, body, type);
    EXPECT_TRUE(std::holds_alternative<Response>(routed)) << method << " " << target;
    return std::holds_alternative<Response>(routed) ? std::get<Response>(routed) : Response{};
  }

  Router router_{RouterOptions{.service = &test::kPlainReport}};
};

}  // namespace delayd::http
