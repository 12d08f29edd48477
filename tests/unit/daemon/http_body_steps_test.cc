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

constexpr size_t kJobs = 5;

std::string JobsOfHalfAStep() {
  std::string body;
  for (size_t i = 0; i < kJobs; ++i) {
    body += "{\"payload\":\"" + std::string(kBodyStepBytes / 2, 'x') + "\"}\n";
  }
  return body;
}

std::string Post(const std::string& body, const std::string& header = "") {
  return "POST /v1/jobs HTTP/1.1\r\nHost: d\r\nContent-Type: application/x-ndjson\r\n" + header +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// All clients together may send too much meanwhile.
TEST(HttpBodyStepsTest, BetweenTwoStepsItCanBeRefused) {
  const ReaderOptions options;
  const Router router{RouterOptions{.service = &test::kPlainReport}};
  HttpSession session(options, router);
  session.Receive("GET /v1/stats HTTP/1.1\r\nHost: d\r\n\r\n" + Post(JobsOfHalfAStep()));
  const std::optional<SessionRequest> before = session.Next(kNow);
  ASSERT_TRUE(before.has_value());
  EXPECT_FALSE(session.has_untaken());
  EXPECT_FALSE(session.Next(kNow).has_value());
  EXPECT_TRUE(session.has_untaken());
  session.Refuse(Unavailable("too much", "too_much_at_once"));
  EXPECT_FALSE(session.has_untaken());
  EXPECT_FALSE(session.has_more());
  EXPECT_FALSE(session.Next(kNow).has_value());
  EXPECT_LT(session.held_bytes(), 1000U);
  EXPECT_EQ(session.output(), "") << "the answer before it comes first";
  session.Answer(before->tag, {.body = engine::StatsView{}});
  const std::string output(session.output());
  EXPECT_TRUE(output.starts_with("HTTP/1.1 200 OK\r\n")) << output;
  EXPECT_NE(output.find("HTTP/1.1 503 Service Unavailable\r\n"), std::string::npos) << output;
  session.Sent(output.size());
  EXPECT_TRUE(session.finished());
}

// Others have their turn between them.
TEST(HttpBodyStepsTest, ALargeBodyIsReadInSteps) {
  const ReaderOptions options;
  const Router router{RouterOptions{.service = &test::kPlainReport}};
  HttpSession session(options, router);
  const std::string body = JobsOfHalfAStep();
  session.Receive(Post(body, "Connection: close\r\n"));
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
