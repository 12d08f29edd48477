// tests/support/plain_report.h — a daemon that has nothing to say about itself but that all is
// well.
#pragma once

#include "base/time.h"
#include "daemon/http/service_report.h"

namespace delayd::test {

class PlainReport final : public http::ServiceReport {
 public:
  http::Response Metrics(const Now& /*now*/) const override { return {.body = "{}"}; }

  http::Response Health(const Now& /*now*/) const override {
    return {.body = R"({"status":"ok","version":"1.2.3"})"};
  }

  http::Response Readiness(const Now& /*now*/) const override {
    return {.body = R"({"status":"ready","version":"1.2.3"})"};
  }
};

inline const PlainReport kPlainReport{};

}  // namespace delayd::test
