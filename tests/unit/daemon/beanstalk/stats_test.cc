// What a connection is told of counts, on a real engine.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/daemon/beanstalk/session_fixture.h"

namespace delayd::beanstalk {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(BeanstalkSessionTest, StatsCountWhatCameBeforeThem) {
  EXPECT_EQ(Send("stats-tube a\r\nuse a\r\n"), "NOT_FOUND\r\nUSING a\r\n");
  EXPECT_THAT(Send("stats\r\nuse b\r\nreserve\r\n"), HasSubstr("cmd-use: 1\n"));
}

TEST_F(BeanstalkSessionTest, APutCountsUnlessItsLineSizeOrEndIsRefused) {
  EXPECT_EQ(Send("put x\r\nput 0 0 9 1\r\naXYput 0 0 9 65536\r\n" + std::string(65538, 'b')),
            "BAD_FORMAT\r\nEXPECTED_CRLF\r\nJOB_TOO_BIG\r\n");
  EXPECT_EQ(Stats("stats", "cmd-put"), "0");
  EXPECT_EQ(Stats("stats", "current-producers"), "0");
  server_.Ask(engine::Drain{.on = true});
  EXPECT_EQ(Send("put 0 0 9 1\r\na\r\n"), "DRAINING\r\n");
  EXPECT_EQ(Stats("stats", "cmd-put"), "1");
  EXPECT_EQ(Stats("stats", "current-producers"), "1");
}

TEST_F(BeanstalkSessionTest, StatsHaveTheirFieldsInTheirOrder) {
  Send("put 5 0 9 1\r\na\r\nput 2000 0 9 1\r\nb\r\nreserve-job 99\r\n");  // no worker yet
  const std::string stats = Send("stats\r\n");
  const char* const fields[] = {"current-jobs-urgent: 1",
                                "current-jobs-ready: 2",
                                "current-jobs-reserved: 0",
                                "current-jobs-delayed: 0",
                                "current-jobs-buried: 0",
                                "cmd-put: 2",
                                "cmd-peek: 0",
                                "cmd-peek-ready: 0",
                                "cmd-peek-delayed: 0",
                                "cmd-peek-buried: 0",
                                "cmd-reserve: 0",
                                "cmd-reserve-with-timeout: 0",
                                "cmd-delete: 0",
                                "cmd-release: 0",
                                "cmd-use: 0",
                                "cmd-watch: 0",
                                "cmd-ignore: 0",
                                "cmd-bury: 0",
                                "cmd-kick: 0",
                                "cmd-touch: 0",
                                "cmd-stats: 1",
                                "cmd-stats-job: 0",
                                "cmd-stats-tube: 0",
                                "cmd-list-tubes: 0",
                                "cmd-list-tube-used: 0",
                                "cmd-list-tubes-watched: 0",
                                "cmd-pause-tube: 0",
                                "job-timeouts: 0",
                                "total-jobs: 2",
                                "max-job-size: 65535",
                                "current-tubes: ",
                                "current-connections: 1",
                                "current-producers: 1",
                                "current-workers: 0",
                                "current-waiting: 0",
                                "total-connections: 1",
                                "pid: ",
                                "version: 1.2.3",
                                "rusage-utime: ",
                                "rusage-stime: ",
                                "uptime: 0",
                                "binlog-oldest-index: 0\n",
                                "binlog-current-index: 0\n",
                                "binlog-records-migrated: 0\n",
                                "binlog-records-written: ",
                                "binlog-max-size: 0\n",
                                "draining: false",
                                "id: ",
                                "hostname: ",
                                "os: ",
                                "platform: "};
  size_t at = 0;
  for (const char* field : fields) {
    const size_t found = stats.find("\n" + std::string(field), at);
    ASSERT_NE(found, std::string::npos) << field << " in " << stats;
    at = found + 1;
  }
  EXPECT_THAT(stats, ContainsRegex("\nid: [0-9a-f]{16}\n"));
  for (const char* time : {"utime", "stime"}) {
    EXPECT_THAT(stats, ContainsRegex("\nrusage-" + std::string(time) + ": [0-9]+\\.[0-9]{6}\n"));
  }
}

TEST_F(BeanstalkSessionTest, StatsOfTubeAndJobHaveTheirFieldsInTheirOrder) {
  Send("use q\r\nput 5 0 9 1\r\na\r\nput 5 7 9 1\r\nb\r\ndelete 1\r\nput 5 0 9 1\r\nc\r\n");
  server_.Sleep(Millis(3500));
  EXPECT_THAT(Send("stats-tube q\r\n"),
              HasSubstr("---\nname: q\ncurrent-jobs-urgent: 1\ncurrent-jobs-ready: 1\n"
                        "current-jobs-reserved: 0\ncurrent-jobs-delayed: 1\n"
                        "current-jobs-buried: 0\ntotal-jobs: 3\ncurrent-using: 1\n"
                        "current-watching: 0\ncurrent-waiting: 0\ncmd-delete: 1\n"
                        "cmd-pause-tube: 0\npause: 0\npause-time-left: 0\n"));
  EXPECT_THAT(Send("stats-job 2\r\n"),
              HasSubstr("---\nid: 2\ntube: q\nstate: delayed\npri: 5\nage: 3\ndelay: 7\nttr: 9\n"
                        "time-left: 3\nfile: 0\nreserves: 0\ntimeouts: 0\nreleases: 0\n"
                        "buries: 0\nkicks: 0\n"));
}

TEST_F(BeanstalkSessionTest, ProducersAndWorkersCountWhileTheyAreConnected) {
  Client* const other = server_.Connect();
  for (int once_is_as_twice = 0; once_is_as_twice < 2; ++once_is_as_twice) {
    server_.Send(other, "put 0 60 9 1\r\na\r\nreserve-with-timeout 0\r\n");
  }
  EXPECT_EQ(Stats("stats", "current-producers"), "1");
  EXPECT_EQ(Stats("stats", "current-workers"), "1");
  server_.Close(other);
  EXPECT_EQ(Stats("stats", "current-producers"), "0");
  EXPECT_EQ(Stats("stats", "current-workers"), "0");
}

TEST_F(BeanstalkSessionTest, APauseWithoutAnEndIsNotToldAsNone) {
  Send("put 0 9 9 1\r\na\r\n");
  EXPECT_TRUE(server_.Ask(engine::Pause{.queue = "default"}).status.ok());
  EXPECT_EQ(Stats("stats-tube default", "pause"), "3153600000");
  EXPECT_EQ(Stats("stats-tube default", "pause-time-left"), "3153600000");
  EXPECT_EQ(Send("pause-tube default 0\r\n"), "PAUSED\r\n");
  EXPECT_EQ(Stats("stats-tube default", "pause-time-left"), "0");
}

TEST_F(BeanstalkSessionTest, ATubeWithoutJobsIsForgottenWithItsLastClient) {
  Send("use a\r\nwatch a\r\nwatch b\r\n");
  EXPECT_EQ(Stats("stats-tube a", "current-using"), "1");
  EXPECT_EQ(Stats("stats-tube b", "current-watching"), "1");
  Send("use default\r\n");
  EXPECT_EQ(Stats("stats-tube a", "current-using"), "0");
  Send("use b\r\nignore a\r\nignore b\r\n");
  EXPECT_EQ(Stats("stats-tube b", "current-watching"), "0");
  EXPECT_THAT(Stats("stats-tube a", "name"), HasSubstr("NOT_FOUND"));
  Send("use default\r\n");
  EXPECT_THAT(Stats("stats-tube b", "name"), HasSubstr("NOT_FOUND"));
}

TEST_F(BeanstalkSessionTest, NobodyWaitsForATubeAnyMoreWhoHasGotAJob) {
  EXPECT_EQ(Send("watch a\r\nreserve\r\n"), "WATCHING 2\r\n");
  EXPECT_EQ(Stats("stats-tube a", "current-waiting"), "1");
  server_.Send(observer_, "put 0 0 9 1\r\nx\r\n");
  EXPECT_EQ(Stats("stats-tube a", "current-waiting"), "0");
}

}  // namespace
}  // namespace delayd::beanstalk
