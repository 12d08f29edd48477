// Many pending jobs, seen page by page.
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

TEST(ListTest, AHundredThousandPendingJobsPageWithoutDoublesOrHoles) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  for (int batch = 0; batch < 100; ++batch) {
    std::string lines;
    for (int i = 0; i < 1000; ++i) {
      const int number = batch * 1000 + i;
      lines += R"({"queue":")" + std::string(number % 10 == 0 ? "few" : "many") + R"(","delay":")" +
               std::to_string(60 + number * 7919 % 3600) + R"(s","payload":")" +
               std::to_string(number) + "\"}\n";
    }
    const protocol::HttpResponse answer =
        HttpCall(daemon, "POST", "/v1/jobs", lines, "application/x-ndjson");
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  for (const auto& [queue, expected] : {std::pair("few", 10'000U), std::pair("many", 90'000U)}) {
    std::istringstream ids(daemon.CtlOk({"list", "--queue", queue, "--all", "-q"}));
    std::set<std::string> seen;
    for (std::string id; std::getline(ids, id);) {
      EXPECT_TRUE(seen.insert(id).second) << id;
    }
    EXPECT_EQ(seen.size(), expected);
  }
}

}  // namespace
}  // namespace delayd::test
