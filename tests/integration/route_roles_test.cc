// Every route of the API, asked with every role. A route that is not in the table here fails: who
// adds one says who may use it.
#include <array>
#include <cctype>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "protocol/client.h"
#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"
#include "tests/support/json_members.h"

namespace delayd::test {
namespace {

// What a route needs; the roles in the order of their rights.
enum Needs { kNothing, kRead, kEnqueue, kAdmin };

const std::map<std::string, Needs> kRules = {
    {"GET /healthz", kNothing},
    {"GET /readyz", kNothing},

    {"GET /metrics", kRead},
    {"GET /openapi.json", kRead},
    {"GET /v1/forecast", kRead},
    {"GET /v1/jobs", kRead},
    {"GET /v1/jobs/{id}", kRead},
    {"GET /v1/queues", kRead},
    {"GET /v1/queues/{queue}", kRead},
    {"GET /v1/queues/{queue}/jobs/by-key/{key}", kRead},
    {"GET /v1/stats", kRead},

    {"POST /v1/jobs", kEnqueue},
    {"POST /v1/jobs:cancel", kEnqueue},
    {"POST /v1/jobs:kick", kEnqueue},
    {"POST /v1/jobs:reschedule", kEnqueue},
    {"DELETE /v1/jobs/{id}", kEnqueue},
    {"PATCH /v1/jobs/{id}", kEnqueue},
    {"POST /v1/jobs/{id}/kick", kEnqueue},
    {"POST /v1/jobs/{id}/lease", kEnqueue},
    {"DELETE /v1/queues/{queue}/jobs/by-key/{key}", kEnqueue},
    {"PATCH /v1/queues/{queue}/jobs/by-key/{key}", kEnqueue},
    {"POST /v1/queues/{queue}/jobs/by-key/{key}/kick", kEnqueue},
    {"POST /v1/queues/{queue}/jobs/by-key/{key}/lease", kEnqueue},
    {"POST /v1/queues/{queue}/kick", kEnqueue},
    {"POST /v1/queues/{queue}/lease", kEnqueue},
    {"POST /v1/queues/{queue}/pause", kEnqueue},
    {"POST /v1/queues/{queue}/resume", kEnqueue},
    {"POST /v1/jobs:cancel-by-id", kEnqueue},
    {"POST /v1/leases:ack", kEnqueue},
    {"POST /v1/leases/{token}/ack", kEnqueue},
    {"POST /v1/leases/{token}/bury", kEnqueue},
    {"POST /v1/leases/{token}/extend", kEnqueue},
    {"POST /v1/leases/{token}/nack", kEnqueue},

    {"POST /v1/admin/backup", kAdmin},
    {"POST /v1/admin/drain", kAdmin},
    {"POST /v1/admin/verify", kAdmin},
    {"POST /v1/clock/accept", kAdmin},
};

struct Caller {
  std::string role;
  Needs has;
  std::string token;
};

const std::array<Caller, 4> kCallers = {{{"none", kNothing, ""},
                                         {"read", kRead, "r0123456789abcdef"},
                                         {"enqueue", kEnqueue, "e0123456789abcdef"},
                                         {"admin", kAdmin, "a0123456789abcdef"}}};

class RouteRolesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string tokens;
    for (const Caller& caller : kCallers) {
      tokens += (caller.token.empty() ? "#" : "") + caller.role + " " + caller.token + "\n";
    }
    const std::string config = daemon_.Write(
        "config.yaml",
        "access: { token_file: " + YamlText(daemon_.Write("tokens", tokens)) + " }\n");
    ASSERT_TRUE(daemon_.Start({"--config", config, "--api-listen", "127.0.0.1:0"}));
  }

  // The answer over TCP, where only the token counts.
  int Ask(const Caller& caller, const std::string& method, const std::string& target) {
    auto client = protocol::Client::Create(daemon_.TcpAddress());
    EXPECT_TRUE(client.ok());
    (*client)->UseToken(caller.token);
    const bool body = method == "POST" || method == "PATCH";
    const auto answer = (*client)->Call(
        method, target, body ? "application/json" : "", body ? "{}" : "", Millis(30'000));
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? answer->status : 0;
  }

  Daemon daemon_;
};

// "/v1/jobs/{id}" -> "/v1/jobs/1"
std::string WithOnes(std::string path) {
  for (size_t open = path.find('{'); open != std::string::npos; open = path.find('{')) {
    path.replace(open, path.find('}', open) - open + 1, "1");
  }
  return path;
}

TEST_F(RouteRolesTest, EachRouteIsServedToItsRolesAndToNoOther) {
  const protocol::HttpResponse document = HttpCall(daemon_, "GET", "/openapi.json");
  ASSERT_EQ(document.status, 200);
  size_t asked = 0;
  for (const auto& [path, operations] : test::Members(test::Members(document.body).at("paths"))) {
    for (const auto& [name, operation] : test::Members(operations)) {
      std::string method = name;
      for (char& c : method) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      }
      const std::string route = method + " " + path;
      const auto rule = kRules.find(route);
      ASSERT_NE(rule, kRules.end()) << route << " has no rule: say in kRules who may use it";
      ++asked;
      for (const Caller& caller : kCallers) {
        const int status = Ask(caller, method, WithOnes(path));
        const bool refused = status == 401 || status == 403;
        EXPECT_EQ(refused, caller.has < rule->second)
            << route << " for " << caller.role << " is answered " << status;
        EXPECT_NE(status, 405) << route;
      }
    }
  }
  EXPECT_EQ(asked, kRules.size()) << "a rule for a route that is no more";
}

}  // namespace
}  // namespace delayd::test
