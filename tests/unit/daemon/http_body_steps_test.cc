// A large body is parsed in several steps, between which other connections have their turn.
#include <optional>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "daemon/http/http_session.h"
#include "tests/support/plain_report.h"
#include "tests/unit/daemon/now.h"

namespace delayd::http {
namespace {

// Others have their turn between them.
TEST(HttpBodyStepsTest, ALargeBodyIsReadInSteps) {
  const ReaderOptions options;
  const Router router{RouterOptions{.service = &test::kPlainReport}};
  HttpSession session(options, router);
  constexpr size_t kJobs = 5;
  std::string body;
  for (size_t i = 0; i < kJobs; ++i) {
    body += "{\"payload\":\"" + std::string(kBodyStepBytes / 2, 'x') + "\"}\n";
  }
  const std::string post =
      "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/x-ndjson\r\n"
      "Connection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  session.Receive(post);
  for (size_t step = 1; step <= 2; ++step) {
    EXPECT_FALSE(session.Next(kNow).has_value());
    EXPECT_TRUE(session.has_more());
    EXPECT_TRUE(session.waits_for_room());
    EXPECT_EQ(session.phase(), Session::Phase::kWorking);
    EXPECT_EQ(session.held_bytes(), body.size());
  }
  EXPECT_FALSE(session.NextRead(kNow).has_value());
  session.Stop();  // its answer is still owed
  const std::optional<SessionRequest> request = session.Next(kNow);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(std::get<engine::Enqueue>(request->command).jobs.size(), kJobs);
  EXPECT_FALSE(session.has_more());
  EXPECT_FALSE(session.waits_for_room());
  EXPECT_EQ(session.held_bytes(), 0U);
  EXPECT_FALSE(session.finished());
  session.Answer(request->tag, {.body = engine::Enqueued{{{{.id = JobId{7}}, false}}}});
  EXPECT_TRUE(session.output().starts_with("HTTP/1.1 201 Created")) << session.output();
  session.Sent(session.output().size());
  EXPECT_TRUE(session.finished());
}

}  // namespace
}  // namespace delayd::http
