// What monitoring sees of a real daemon, and that nothing reads a metric which is not there.
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/http_call.h"
#include "tests/support/daemon.h"

namespace delayd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Get(const Daemon& daemon, const std::string& target) {
  const protocol::HttpResponse answer = HttpCall(daemon, "GET", target);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.body;
}

// A daemon that has done a bit of everything.
void Exercise(Daemon& daemon) {
  daemon.CtlOk({"enqueue", "--queue", "orders", "--in", "1h", "far"});
  daemon.CtlOk({"enqueue", "--queue", "orders", "now"});
  daemon.CtlOk({"work", "--queue", "orders", "--drain", "--exec", "true"});
  daemon.Ctl({"show", "999"});
}

std::set<std::string> MetricNames(const std::string& page) {
  std::set<std::string> names;
  const std::regex type("# TYPE ([a-zA-Z_]+) (counter|gauge|histogram)");
  for (std::sregex_iterator it(page.begin(), page.end(), type), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST(MetricsTest, CountWhatHasHappened) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Exercise(daemon);
  const std::string page = Get(daemon, "/metrics");
  EXPECT_THAT(page, HasSubstr("delayd_jobs{queue=\"orders\",state=\"scheduled\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("delayd_jobs_enqueued_total 2\n"));
  EXPECT_THAT(page, HasSubstr("delayd_jobs_acked_total 1\n"));
  EXPECT_THAT(page, HasSubstr("delayd_job_lateness_seconds_count 1\n"));
  EXPECT_THAT(page, HasSubstr("route=\"/v1/jobs/*\",code=\"404\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("delayd_ready 1\n"));
  EXPECT_THAT(page, HasSubstr("delayd_disk_reserve_bytes "));
  EXPECT_THAT(page, HasSubstr("delayd_disk_free_bytes "));
  EXPECT_THAT(page, Not(HasSubstr("delayd_user_jobs"))) << "limits.jobs_per_user is off";
  // Figures that come from elsewhere: RocksDB measured an fsync, /proc was read.
  const std::regex fsyncs("delayd_fsync_duration_seconds_count ([0-9]+)");  // one may take no time
  std::smatch match;
  ASSERT_TRUE(std::regex_search(page, match, fsyncs));
  EXPECT_GT(std::stod(match[1]), 0) << "RocksDB measured no fsync";
  ASSERT_TRUE(
      std::regex_search(page, match, std::regex("\nprocess_resident_memory_bytes ([0-9]+)")));
  EXPECT_GT(std::stod(match[1]), 1e6);
  ASSERT_TRUE(std::regex_search(page, match, std::regex("\ndelayd_store_wal_bytes ([0-9]+)")));
  EXPECT_GT(std::stod(match[1]), 0);
}

TEST(MetricsTest, PromtoolHasNothingToSay) {
  if (RunProcess({.argv = {"/bin/sh", "-c", "command -v promtool"}}).exit_code != 0) {
    GTEST_SKIP() << "promtool is not installed; it is in Debian's package prometheus";
  }
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  Exercise(daemon);
  const ProcessResult result =
      RunProcess({.argv = {"promtool", "check", "metrics"}, .stdin_text = Get(daemon, "/metrics")});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out + result.err, "");
  const ProcessResult rules = RunProcess(
      {.argv = {
           "promtool", "check", "rules", DELAYD_SOURCE_DIR "/config/prometheus/delayd.rules.yml"}});
  EXPECT_EQ(rules.exit_code, 0) << rules.out << rules.err;
}

// How many queries of `text` name a metric, all of which must be among `names`.
size_t CountQueries(const std::string& text, const std::set<std::string>& names) {
  const std::regex metric("((delayd|process)_[a-z_]+)(?=[{)\\[,]| [<>=])");
  size_t found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), metric), end; it != end; ++it) {
    const std::string name = std::regex_replace(it->str(), std::regex("_(bucket|sum|count)$"), "");
    EXPECT_TRUE(names.contains(name)) << name;
    ++found;
  }
  return found;
}

TEST(MetricsTest, DashboardAndAlertsQueryNothingThatIsNotThere) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  std::set<std::string> names = MetricNames(Get(daemon, "/metrics"));
  names.insert("delayd_tls_certificate_to_renew");  // with TLS only
  EXPECT_GT(CountQueries(ReadFile(DELAYD_SOURCE_DIR "/config/grafana/delayd.json"), names), 40U);
  const std::string rules = DELAYD_SOURCE_DIR "/config/prometheus/delayd.rules.yml";
  EXPECT_GT(CountQueries(ReadFile(rules), names), 12U);
}

TEST(MetricsTest, EachIsExplainedInTheOperationsManual) {
  Daemon daemon;
  const std::string config = daemon.Write("config.yaml", "limits: { jobs_per_user: 9 }\n");
  ASSERT_TRUE(daemon.Start({"--config", config}));
  const std::string manual = ReadFile(DELAYD_SOURCE_DIR "/docs/operations/metrics.md");
  const std::set<std::string> names = MetricNames(Get(daemon, "/metrics"));
  EXPECT_TRUE(names.contains("delayd_user_jobs"));
  for (const std::string& name : names) {
    EXPECT_THAT(manual, HasSubstr("`" + name + "`"));
  }
}

TEST(HealthTest, AQuietDaemonIsHealthyAndReady) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  EXPECT_THAT(Get(daemon, "/healthz"), HasSubstr(R"("status":"ok")"));
  EXPECT_THAT(Get(daemon, "/readyz"), HasSubstr(R"("status":"ready")"));
}

}  // namespace
}  // namespace delayd::test
